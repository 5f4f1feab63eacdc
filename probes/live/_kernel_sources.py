"""Where a machine keeps its kernel log: the journal, the ring buffer, files of a syslog daemon, crash dumps.

Each source gives `Part`: what stands in it, on UTC where that can be told, and the span of time
that it covers from end to end. The probe puts them together.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias

from knowledge.lazy import lazy
from knowledge.observation import Clock, Observation, Status, node
from knowledge.record import dataclass
from probes.host import Host, Reply
from probes.live._fetch import log, reason, status_of
from probes.parse import kernel_log
from probes.parse._logtime import DAY, SECOND, parse_iso

LINES = 50_000  # of the journal: some 5 MB; a chatty node writes as many in a week
# --system: journals of users hold no kernel line and would make the journal look older than it is. -a: names of
# processes that cannot be printed stand in XID lines, and would hide them. No host name: it may have changed since.
JOURNAL = (
    "journalctl", "--system", "--no-pager", "-a", "-o", "short-iso-precise", "--no-hostname", "-n", str(LINES), "_TRANSPORT=kernel",
)  # fmt: skip
OLD_JOURNAL = ("journalctl", "-k", "-o", "short-iso", "--no-pager")  # before systemd 234; also of older bundles
BOOTS = ("journalctl", "--system", "--no-pager", "--utc", "--list-boots")
KMSG = "/dev/kmsg"
STAT = "/proc/stat"
ZONE = "/etc/localtime"
DMESG = ("dmesg", "-x", "--time-format", "iso")
OLD_DMESG = ("dmesg",)  # BusyBox knows no options
FILES = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
OLDER = 9  # rotated files of one name that are read at most
CRASHES = (
    "/sys/fs/pstore/dmesg-*", "/var/lib/systemd/pstore/*/dmesg.txt", "/var/lib/systemd/pstore/*/*/dmesg.txt",
    "/var/crash/*/dmesg.*", "/var/crash/*/vmcore-dmesg.txt",
)  # fmt: skip
REMEDIES = {
    "journal": "the journal needs membership in group systemd-journal or adm",
    "ring": "the ring buffer needs CAP_SYSLOG or kernel.dmesg_restrict=0",
    "files": "the files of the syslog daemon need membership in group adm, or root",
}

# IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY
#   0 22222222222222222222222222222222 Sat 2026-11-21 01:58:56 UTC Sat 2026-11-21 05:58:56 UTC
_BOOT = lazy(
    r"^ *-?\d+ [0-9a-f]{32} .{0,8}?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC).{1,8}?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)",
    re.MULTILINE,
)
_HINT = "not seeing messages from other users and the system"
_NO_FILES = "No journal files were"  # ... found, or opened due to insufficient permissions
_OPTION = lazy(
    r"unrecognized option|invalid option|unknown option|unknown output format|unknown time format", re.IGNORECASE
)
# 6,3973,227996636,-;msg
_RECORD = re.compile(rb"^\d{1,6},(\d{1,19}),(\d{1,18})[,;]", re.MULTILINE)
_BTIME = lazy(r"^btime (\d{1,12})$", re.MULTILINE)
_CUT = re.compile(rb"^\[gpudiag: \d+ bytes in the middle were left out\]\n", re.MULTILINE)
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Spot: TypeAlias = Callable[[int, Clock], tuple[int, Clock]]


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is asked about, ns UTC. `tail`: only what is new since; the caller has seen the rest."""

    since: int
    until: int
    tail: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one source gave. `start` and `end` (ns UTC) are None when it covers no span from end to end."""

    kind: str  # "journal", "ring", "files", "crash"
    reply: Reply
    found: tuple[Observation, ...] = ()
    start: int | None = None
    end: int | None = None
    status: Status = Status.OK
    why: str = ""  # why it gives nothing, or not all

    @property
    def readable(self) -> bool:
        """Whether it holds output of the kernel."""
        return any(o.fact == "log.kernel.readable" and o.status is Status.OK for o in self.found)


def _refused(kind: str, reply: Reply, status: Status | None = None, why: str = "") -> Part:
    return Part(kind, reply, status=status or status_of(reply), why=why or reason(reply))


def _read(kind: str, reply: Reply, host: Host, span: Span | None, spot: Spot | None = None) -> Part:
    """The log in a reply. Times are moved to UTC by `spot`; those of the machine's zone by what it tells of that."""
    found = log(reply, host, kernel_log.FORMAT)
    covering = found
    cut = _CUT.search(reply.data) if reply.cut and reply.status is Status.OK else None
    if cut:  # what stands behind the gap is a log without one
        covering = log(replace(reply, data=reply.data[cut.end() :], cut=False), host, kernel_log.FORMAT)
    if span and spot is None and {o.clock for o in found} & {Clock.LOCAL, Clock.YEARLESS}:
        zone = zone_of(host)
        times = [t for o in found if o.clock is Clock.YEARLESS for t in (o.at, o.window and o.window[1]) if t]
        spot = of_zone(zone, span.until, max(times, default=None)) if zone else None
    if spot:
        found, covering = [moved(o, spot) for o in found], [moved(o, spot) for o in covering]
    windows = [o.window for o in covering if o.status is Status.NONE_SEEN and o.window and o.clock is Clock.REALTIME]
    part = Part(kind, reply, tuple(found))
    if windows:
        part = replace(part, start=min(w[0] for w in windows), end=max(w[1] for w in windows))
    if reply.whole and part.readable:
        return part
    why = reason(reply) if not reply.whole else f"{reply.title}: holds no line of a kernel log"
    return replace(part, status=status_of(reply), why=why)


def moved(o: Observation, spot: Spot) -> Observation:
    """`o` with times that are not of UTC moved there."""
    if o.clock not in (Clock.BOOT, Clock.LOCAL, Clock.YEARLESS):
        return o
    window = o.window and (spot(o.window[0], o.clock)[0], spot(o.window[1], o.clock)[0])
    at, clock = spot(o.at, o.clock) if o.at is not None else (None, o.clock)
    return replace(o, at=at, clock=clock, window=window)


# --- the journal --------------------------------------------------------------------------


def journal(host: Host, span: Span | None, deadline: float) -> Iterator[Part]:
    """The journal of all boots. One that holds no line of the kernel, as in a container, covers nothing."""
    tail = span is not None and span.tail
    argv = (*JOURNAL[:7], "--since", f"@{span.since // SECOND}", JOURNAL[-1]) if span and tail else JOURNAL
    reply = host.run(argv, deadline=deadline)
    if reply.status is Status.NOT_ASKED or _OPTION.search(reply.errors[:4096]):
        reply = host.run(OLD_JOURNAL, deadline=deadline)
    if fault := journal_fault(reply):
        yield _refused("journal", reply, *fault)
        return
    part = _read("journal", reply, host, span)
    if span and reply.whole and not part.readable and tail:
        newest = host.run((*JOURNAL[:8], "1", JOURNAL[-1]), deadline=deadline)
        part = replace(_read("journal", newest, host, span), reply=reply)
        part = replace(part, found=tuple(o for o in part.found if o.fact == "log.kernel.readable"))
    yield _journal_span(part, host, span, deadline) if span and part.readable else part


def journal_fault(reply: Reply) -> tuple[Status, str] | None:
    """Why journalctl does not see the system's journal, though it may end well."""
    if _HINT in reply.errors or (_NO_FILES in reply.errors and "permission" in reply.errors):
        return Status.DENIED, f"{reply.call[0]}: this user does not see the messages of the system"
    if _NO_FILES in reply.errors:
        return Status.UNSUPPORTED, f"{reply.call[0]}: there are no journal files"
    return None


def journal_kept(host: Host, deadline: float) -> tuple[int, int] | None:
    """First and last time (ns UTC) of anything in the journal; None when that cannot be told."""
    boots = host.run(BOOTS, deadline=deadline)
    times = [stamp.value for pair in _BOOT.findall(boots.text) for text in pair if (stamp := parse_iso(text))]
    return (min(times), max(times)) if times and boots.whole else None


def _journal_span(part: Part, host: Host, span: Span, deadline: float) -> Part:
    """The span that the journal covers: kernels are silent for days, and other lines show that it was kept."""
    if not part.reply.whole:  # the window of the lines, if any, is all that is sure
        return part
    kept = journal_kept(host, deadline)
    if kept is None:
        return replace(part, start=span.since, end=span.until) if span.tail else part
    full = not span.tail and part.reply.call == JOURNAL and part.reply.data.count(b"\n") >= LINES
    return replace(part, start=part.start if full else kept[0], end=max(kept[1], part.end or 0))


# --- the ring buffer ----------------------------------------------------------------------


def ring(host: Host, span: Span | None, deadline: float) -> Iterator[Part]:
    """/dev/kmsg, whose numbers tell what was overwritten; dmesg where there is none."""
    spot = _since_boot(host) if span else None
    reply = host.read(KMSG)
    records = list(_RECORD.finditer(reply.data)) if reply.status is Status.OK else []
    if records:
        yield _kmsg(reply, records, host, span, spot)
        return
    if reply.status is Status.OK:
        yield _refused("ring", reply, Status.UNSUPPORTED, f"{KMSG}: holds no records")
    elif reply.status is not Status.NOT_ASKED:
        yield _refused("ring", reply)
    reply = host.run(DMESG, deadline=deadline)
    if reply.status is Status.NOT_ASKED or (not reply.whole and _OPTION.search(reply.errors[:4096])):
        reply = host.run(OLD_DMESG, deadline=deadline)
    yield _dmesg(_read("ring", reply, host, span, spot), host, span)


def _dmesg(part: Part, host: Host, span: Span | None) -> Part:
    """The whole ring buffer as it is now; its head is lost when it does not open with the boot."""
    if not part.readable or not span or not part.reply.whole:
        return part
    if part.start is not None and part.end is not None:
        part = replace(part, end=max(part.end, part.reply.started or 0))
    if any(o.fact == "log.kernel.truncated_head" for o in part.found):
        return part
    source = next(o.source for o in part.found if o.fact == "log.kernel.readable")
    boots = any(o.fact == "boot" and (o.source.line or 99) <= 5 for o in part.found)
    lost = Observation(
        "log.kernel.truncated_head", node(host.name), not boots, source=source, at=part.start,
        clock=Clock.NONE if part.start is None else Clock.REALTIME, excerpt=part.reply.text[:200].partition("\n")[0],
    )  # fmt: skip
    return replace(part, found=(*part.found, lost))


def _kmsg(reply: Reply, records: Sequence[re.Match[bytes]], host: Host, span: Span | None, spot: Spot | None) -> Part:
    numbers = [int(r[1]) for r in records]
    last = max((i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1), default=0)
    # Whether a record is missing is told by their numbers, so that a gap of ours is one like the kernel's own.
    part = _read("ring", replace(reply, cut=False), host, span, spot)
    whole = numbers[0] == 0 and last == 0
    found = tuple(o for o in part.found if o.fact != "log.kernel.truncated_head" or not part.readable)
    if part.readable:
        first = int(records[last][2]) * 1000
        source = next(o.source for o in part.found if o.fact == "log.kernel.readable")
        at, clock = spot(first, Clock.BOOT) if spot else (first, Clock.BOOT)
        head = Observation(
            "log.kernel.truncated_head", node(host.name), not whole, source=source, at=at, clock=clock,
            excerpt=reply.data[records[0].start() :].split(b"\n", 1)[0].decode("utf-8", "replace")[:200],
        )  # fmt: skip
        found = (*found, head)
        if clock is Clock.REALTIME:
            boot = spot(0, Clock.BOOT)[0] if spot and whole else at
            return replace(part, found=found, start=boot, end=reply.started or part.end)
    return replace(part, found=found)


def boot_time(host: Host) -> int | None:
    """When the machine was started, ns UTC: to a second or so, and more by what the clock was set since."""
    found = _BTIME.search(host.read(STAT).text)
    return int(found[1]) * SECOND if found else None


def _since_boot(host: Host) -> Spot | None:
    """Seconds since boot as UTC."""
    start = boot_time(host)
    if start is None:
        return None
    return lambda at, clock: (start + at, Clock.REALTIME) if clock is Clock.BOOT else (at, clock)


# --- files of a syslog daemon -------------------------------------------------------------


def files(host: Host, span: Span | None, deadline: float) -> Iterator[Part]:  # noqa: ARG001 - files need no deadline
    """The first of the usual files that holds kernel output; then those rotated away from it, newest first."""
    for path in FILES:
        part = _file(host, host.read(path), span)
        yield part
        older = _rotated(host, path) if span else []
        if not part.readable and not (older and part.reply.status is Status.OK):
            continue
        any_, newer = part.readable, part.start
        for name in older:
            part = _file(host, host.read(name), span)
            if newer is not None and part.end is not None:  # it was rotated away when the newer one began
                part = replace(part, end=max(part.end, newer))
            any_, newer = any_ or part.readable, part.start
            yield part
        if any_:
            return


def _file(host: Host, reply: Reply, span: Span | None) -> Part:
    if reply.cut and reply.data.startswith(_PACKED):
        return _refused("files", reply, Status.FAILED, f"{reply.title}: too large to be unpacked here")
    return _read("files", reply, host, span)


def zone_of(host: Host) -> tzinfo | None:
    """The machine's zone; UTC where none is set; None when that cannot be told."""
    reply = host.read(ZONE)
    if reply.status is Status.UNSUPPORTED:
        return UTC
    from zoneinfo import ZoneInfo  # files without a zone are rare

    try:
        return ZoneInfo.from_file(io.BytesIO(reply.data))
    except (ValueError, EOFError, IndexError, OverflowError, UnicodeDecodeError):
        return None


def of_zone(zone: tzinfo, until: int, latest: int | None) -> Spot:
    """Times of a zone as UTC. Those without a year lie in the newest year that is not ahead of `until`, by a day at most."""

    def local(at: int, shift: int) -> int:
        seconds, fraction = divmod(at, SECOND)
        moment = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=zone)
        if shift:
            try:
                moment = moment.replace(year=moment.year + shift)
            except ValueError:  # February 29
                moment = moment.replace(year=moment.year + shift, month=3, day=1)
        away = moment - _EPOCH
        return (away.days * 86_400 + away.seconds) * SECOND + fraction

    shift = 0
    if latest is not None:
        year = (_EPOCH + timedelta(seconds=latest // SECOND)).year
        shift = (_EPOCH + timedelta(seconds=until // SECOND)).year + 1 - year
        while local(latest, shift) > until + DAY:
            shift -= 1

    def spot(at: int, clock: Clock) -> tuple[int, Clock]:
        if clock not in (Clock.LOCAL, Clock.YEARLESS):
            return at, clock
        return local(at, shift if clock is Clock.YEARLESS else 0), Clock.REALTIME

    return spot


def _rotated(host: Host, path: str) -> list[str]:
    """Older files of that name, newest first: ``.1``, ``.2.gz``, or ``-20261101.xz``."""
    name = re.compile(re.escape(path) + r"(?:\.(\d{1,3})|-(\d{8})(?:-?(\d{2,10}))?)(?:\.(?:gz|zst|xz|bz2))?")
    found = [(m, p) for p in host.files(f"{path}*") if (m := name.fullmatch(p))]
    found.sort(key=lambda item: (int(item[0][1] or 0), *(-int(n or 0) for n in item[0].groups()[1:]), item[1]))
    return [p for _, p in found[:OLDER]]


# --- what a crash left --------------------------------------------------------------------

# dmesg-efi-157133762601001    /var/lib/systemd/pstore/1571337626/dmesg.txt    /var/crash/202611200958/dmesg.202611200958
# /var/crash/127.0.0.1-2026-11-20-09:58:13/vmcore-dmesg.txt
_PSTORE = lazy(r"/dmesg-efi(?:_pstore)?-(\d{10})(\d{2})\d{3}$|/pstore/(\d{10})\d*/")
_DUMP = lazy(r"/(?:\S*?-)?(20\d\d)-?(\d\d)-?(\d\d)-?(\d\d):?(\d\d)(?::?(\d\d))?/")


def crashes(host: Host, span: Span | None, deadline: float) -> Iterator[Part]:  # noqa: ARG001 - files need no deadline
    """The last words of kernels that crashed within the span: seconds of an earlier boot, placed by the name of the dump."""
    if span is None:
        return
    dumps: dict[int, list[tuple[int, str]]] = {}
    zone: tzinfo | None = None
    for path in sorted({p for pattern in CRASHES for p in host.files(pattern)}):
        if stored := _PSTORE.search(path):
            dumps.setdefault(int(stored[1] or stored[3]) * SECOND, []).append((-int(stored[2] or 0), path))
        elif dated := _DUMP.search(path):
            zone = zone or zone_of(host) or UTC
            try:
                year, month, day, hour, minute, second = (int(n or 0) for n in dated.groups())
                moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
            except ValueError:
                continue
            dumps.setdefault(int(moment.timestamp()) * SECOND, []).append((0, path))
    for at in sorted((at for at in dumps if span.since <= at <= span.until), reverse=True)[:3]:
        yield _crash(host, at, [path for _, path in sorted(dumps[at])])


def _crash(host: Host, at: int, paths: Sequence[str]) -> Part:
    """Parts of one dump are numbered from its end."""
    replies = [host.read(path) for path in paths]
    bad = next((r for r in replies if not r.whole), None)
    if bad is not None:
        return _refused("crash", bad)
    joined = replace(replies[-1], data=b"".join(r.data if r.data.endswith(b"\n") else r.data + b"\n" for r in replies))
    part = _read("crash", joined, host, None)
    last = max((o.window[1] for o in part.found if o.window and o.clock is Clock.BOOT), default=None)
    if last is None:
        return replace(part, start=None, end=None)
    moved = _read(
        "crash", joined, host, None, lambda t, c: (at - last + t, Clock.REALTIME) if c is Clock.BOOT else (t, c)
    )
    return replace(moved, start=None, end=None)  # the end of one boot, of which the head is mostly lost
