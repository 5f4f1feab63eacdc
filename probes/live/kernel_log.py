"""The kernel log: the journal of all boots, the ring buffer, files of a syslog daemon, what a crash left.

Each covers another span of time. The probe takes them in this order, until `LOOKBACK` is covered: a node that
rebooted after a fault must still tell. What two of them tell counts once. Without a time of the recording
(`Host.as_of`) spans cannot be compared, and the first source that answers is all.

Option ``since`` (ns UTC, for a watcher): only events from then on, read from the journal's cursor there and, where
there is no journal, from the ring buffer. A line can reach the journal a moment late: ask from a few seconds
ahead of the last answer's window end, and leave out what has the same fact, subject, time and excerpt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, Subject, node
from probes.host import Host, iso
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import missing
from probes.live._kernel_sources import (
    FILES,
    KMSG,
    OLD_DMESG,
    OLD_JOURNAL,
    REMEDIES,
    Part,
    Span,
    crashes,
    files,
    journal,
    ring,
)  # fmt: skip
from probes.parse import kernel_log
from probes.parse._logtime import DAY, SECOND

COMMANDS = (OLD_JOURNAL, OLD_DMESG)  # what older bundles hold
MAIN = ("log.kernel.readable", "xid", "sxid")
LOOKBACK = 7 * DAY  # the longest time that rules look back by default
BORDER = 10 * SECOND  # the ring buffer's clock drifts against UTC: near its ends a span is not trusted to be whole
TWIN = 120 * SECOND  # the same line in two sources differs by no more than this
_Source: TypeAlias = Callable[[Host, Span | None, float], Iterator[Part]]
NAMES = {"journal": "journal", "ring": "ring buffer", "files": "syslog file", "crash": "crash dump"}
_ABSENT = frozenset({Status.UNSUPPORTED, Status.NOT_ASKED})


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Events of the last seven days, and the window in which there were no others; else why no source tells."""
    span = _span(request, host)
    parts = _parts(host, span, request.deadline)
    logs = [p for p in parts if p.kind != "crash"]
    if not any(p.readable for p in logs):  # the last words of a crash are worth telling, and reassure nobody
        return [
            *(o for p in parts if p.kind == "crash" for o in p.found if isinstance(o.value, Event)),
            *_unread(logs, host),
        ]
    if span is None:
        return list(next(p for p in parts if p.readable).found)
    return _joined(parts, host, span)


def _span(request: ProbeRequest, host: Host) -> Span | None:
    since = request.options.get("since", "")
    if since.isdecimal():
        return Span(int(since), max(host.as_of or 0, int(since)), tail=True)
    return None if host.as_of is None else Span(host.as_of - LOOKBACK, host.as_of)


def _parts(host: Host, span: Span | None, deadline: float) -> list[Part]:
    """What the sources give, as many of them as it takes. The ring buffer is read beside a journal that may have stopped."""
    parts: list[Part] = []
    order: tuple[_Source, ...] = (journal, ring, files, crashes)
    for source in order:
        for part in source(host, span, deadline):
            parts.append(part)
            if span is None and part.readable:
                return parts
            if source is files and _reach(parts, span) <= _since(span):
                break
        if span and span.tail and any(p.readable for p in parts):
            return parts
        if source is ring and _reach(parts, span) <= _since(span):
            return [*parts, *crashes(host, span, deadline)]
    return parts


def _since(span: Span | None) -> int:
    return span.since if span else 0


def _reach(parts: Iterable[Part], span: Span | None) -> int:
    """From when on everything is covered."""
    starts = [p.start for p in parts if p.start is not None]
    return min(starts, default=(span.until if span else 1))


# --- together -----------------------------------------------------------------------------


def _joined(parts: Sequence[Part], host: Host, span: Span) -> list[Observation]:
    """Events and states of all parts, each once; then the window in which nothing else occurred."""
    out: list[Observation] = []
    told: dict[object, list[int]] = {}
    # What can be placed in time comes first: a ring buffer whose boot has no known time repeats it.
    parts = sorted(parts, key=lambda p: p.start is None and p.kind != "crash")
    for place, part in enumerate(parts):
        own = [o for o in part.found if _kept(o, part.kind, parts[:place], told, span)]
        for o in own:
            told.setdefault(_key(o), []).append(o.at if o.at is not None and o.clock is Clock.REALTIME else 0)
        out += own
    return [*out, *_windows(parts, host, span)]


def _kept(o: Observation, kind: str, before: Sequence[Part], told: dict[object, list[int]], span: Span) -> bool:
    """Whether an observation is neither too old nor told by a better source already."""
    crash = kind == "crash"  # it holds what was not written anywhere else any more
    if o.status is not Status.OK or o.fact.startswith("log.kernel."):
        return o.status is Status.FAILED and o.fact == "xid" and bool(o.excerpt)  # a line that is cut off
    if not isinstance(o.value, Event):
        return _key(o) not in told
    if o.at is None or o.clock is not Clock.REALTIME:
        return _key(o) not in told
    if o.at < span.since:
        return False
    if not crash and any(_inside(o.at, p) for p in before):
        return False
    apart = 5 * TWIN if crash else TWIN
    return not before or not any(abs(at - o.at) <= apart or not at for at in told.get(_key(o), ()))


def _inside(at: int, part: Part) -> bool:
    return part.start is not None and part.end is not None and part.start + BORDER <= at <= part.end - BORDER


def _key(o: Observation) -> object:
    value = o.value
    if not isinstance(value, Event):
        return o.fact, o.subject
    return o.fact, o.subject, value.code, repr(sorted(value.fields.items()))


def _windows(parts: Sequence[Part], host: Host, span: Span) -> Iterator[Observation]:
    """For each host that the logs name: that they are readable, whether the head is lost, and what did not occur when."""
    subjects: dict[Subject, list[Part]] = {}
    for part in parts:
        for o in part.found:
            if (
                o.fact == "log.kernel.readable"
                and o.status is Status.OK
                and part not in subjects.setdefault(o.subject, [])
            ):
                subjects[o.subject].append(part)
    for subject, own in subjects.items():
        source = next(o.source for p in own for o in p.found if o.fact == "log.kernel.readable")
        yield Observation("log.kernel.readable", subject, True, source=source)
        yield from _head(own, parts, subject, span)
        covering = [p for p in own if p.start is not None and p.end is not None]
        if not covering:
            yield from _unplaced(own, subject, source)
            continue
        window = max(_covered(covering), span.since), max(p.end or 0 for p in covering)
        calls = "; ".join(dict.fromkeys(p.reply.title for p in covering))
        source = replace(source, call=calls, line=None)
        # of other vendors' drivers only those that speak in one of the logs
        speaking = {o.fact for p in covering for o in p.found}.intersection(kernel_log.VENDOR_EVENTS)
        for fact in (*kernel_log.KERNEL_EVENTS, *sorted(speaking)):
            yield Observation(
                fact, subject, None, Status.NONE_SEEN, source, at=window[1], clock=Clock.REALTIME, window=window,
                detail=kernel_log.NONE,
            )  # fmt: skip
    if node(host.name) not in subjects:
        yield from missing(
            ("log.kernel.readable",),
            host,
            parts[0].reply,
            kernel_log.FORMAT,
            Status.FAILED,
            "no source names this host",
        )


def _unplaced(own: Sequence[Part], subject: Subject, source: Source) -> Iterator[Observation]:
    """Of logs that cannot be placed in time: what a whole one says, on its own clock; else why nothing is sure."""
    whole = next((p for p in own if p.status is Status.OK), None)
    if whole:
        yield from (o for o in whole.found if o.status is Status.NONE_SEEN and o.subject == subject)
        return
    why = f"not whole: {own[0].why}"
    yield from (Observation(f, subject, None, own[0].status, source, detail=why) for f in kernel_log.KERNEL_EVENTS)


def _covered(covering: Sequence[Part]) -> int:
    """From when on one source or another covers the time without a gap, up to the latest end."""
    spans = sorted(((p.start or 0, p.end or 0) for p in covering), key=lambda s: -s[1])
    start = spans[0][0]
    for other in spans[1:]:
        if other[1] >= start - TWIN:
            start = min(start, other[0])
    return start


def _head(own: Sequence[Part], parts: Sequence[Part], subject: Subject, span: Span) -> Iterator[Observation]:
    """Whether the log begins amid a boot, within the time that is asked about; and which source would reach further."""
    heads = [o for p in own for o in p.found if o.fact == "log.kernel.truncated_head"]
    if not heads:
        return
    o = heads[0]
    starts = [p.start for p in own if p.start is not None]
    reached = bool(starts) and min(starts) <= span.since
    if o.value is True and (reached or (o.clock is Clock.REALTIME and starts and min(starts) + BORDER < (o.at or 0))):
        o = replace(o, value=False)
    denied = [p for p in parts if p.status is Status.DENIED]
    if not reached and starts and denied:
        o = replace(o, detail=f"ahead of {iso(min(starts) // SECOND * SECOND)}: {_why(denied)}")
    yield o.about(subject)


# --- nothing could be read ----------------------------------------------------------------


def _unread(parts: Sequence[Part], host: Host) -> list[Observation]:
    """Why no source tells anything of the kernel; what daemons said there is given all the same."""
    said = next((p.found for p in parts if any(o.status is Status.OK for o in p.found)), ())
    refused = [p for p in parts if p.why]
    asked = {p.status for p in refused}
    order = (Status.DENIED, Status.TIMEOUT, Status.FAILED, Status.UNSUPPORTED)
    status = next((s for s in order if s in asked), Status.NOT_ASKED)
    first = parts[0].reply
    absent = missing(MAIN, host, first, kernel_log.FORMAT, status, _why(refused))
    return [*(o for o in said if o.fact not in MAIN or o.status is Status.OK), *absent]


def _why(refused: Sequence[Part]) -> str:
    """The reasons of the sources that exist, and which do not; where a privilege is lacking, which, and what has it."""
    there = dict.fromkeys(p.why for p in refused if p.status is not Status.UNSUPPORTED)
    known = {p.kind for p in refused if p.status is not Status.UNSUPPORTED}
    absent = list(dict.fromkeys(NAMES[p.kind] for p in refused if p.kind not in known))
    rest = ", no ".join(absent)
    said = [*there, *([f"there is no {rest}"] if rest else [])]
    reasons = "; ".join(said)
    kinds = dict.fromkeys(p.kind for p in refused if p.status is Status.DENIED)
    remedies = ", ".join(REMEDIES[kind] for kind in kinds if kind in REMEDIES)
    return f"{reasons}; {remedies}: run sudo gpudiag check" if remedies else reasons


PROBE = ProbeSpec(
    name="kernel-log",
    title=Text(
        "kernel log (journal, /dev/kmsg or dmesg, syslog files, crash dumps)",
        "内核日志（journal、/dev/kmsg 或 dmesg、syslog 文件、崩溃转储）",
    ),
    provides=kernel_log.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(
        binaries=("journalctl", "dmesg"),
        privileges=("CAP_SYSLOG", "group systemd-journal", "group adm"),
        files=(KMSG, *FILES),
    ),
    cost=Cost.CHEAP,
)
