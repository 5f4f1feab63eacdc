"""The kernel log of a machine: real journals, ring buffers, rotated files and crash dumps, and tools that misbehave."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Event, Observation, Status, node
from probes.bundle import BundleHost, write
from probes.host import CallKind, Host, RecordingHost, ReplayHost, Reply, listing
from probes.live import ProbeRequest
from probes.live._kernel_sources import BOOTS, DMESG, JOURNAL, OLD_DMESG
from probes.live.kernel_log import PROBE
from probes.live_host import LiveHost

S, HOUR, DAY = 10**9, 3600 * 10**9, 86_400 * 10**9
NOW = 1_795_000_000 * S  # 2026-11-18 11:06:40 UTC
BOOT = NOW - 5 * HOUR
XID79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."


def xid(code: int, gpu: int = 0x3B) -> str:
    return f"NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid={code}, name=a, Graphics Exception"


# --- what sources print -------------------------------------------------------------------


def iso_line(at: int, text: str) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // S)) + f".{at % S // 1000:06d}+0000 kernel: {text}"


def journal_text(lines: Iterable[tuple[int, str]]) -> bytes:
    return "".join(iso_line(at, text) + "\n" for at, text in lines).encode() or b"-- No entries --\n"


def boots_text(*spans: tuple[int, int]) -> bytes:
    head = "IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY\n"
    stamp = "%a %Y-%m-%d %H:%M:%S UTC"
    rows = (
        f"{i - len(spans) + 1:3d} {i:032x} {time.strftime(stamp, time.gmtime(a // S))} {time.strftime(stamp, time.gmtime(b // S))}\n"
        for i, (a, b) in enumerate(spans)
    )
    return (head + "".join(rows)).encode()


def kmsg_text(lines: Iterable[tuple[int, str]], first: int = 0, boot: int = BOOT) -> bytes:
    rows = (f"4,{n},{(at - boot) // 1000},-;{text}\n SUBSYSTEM=pci\n" for n, (at, text) in enumerate(lines, first))
    return "".join(rows).encode()


def syslog_line(at: int, text: str, host: str = "n1") -> str:
    day = time.strftime("%b %e %H:%M:%S", time.gmtime(at // S))
    return f"{day} {host} kernel: [{12.5:12.6f}] {text}\n"


def stat_text(boot: int = BOOT) -> bytes:
    return f"cpu  1 2 3\nbtime {boot // S}\nprocesses 4\n".encode()


def file(path: str, data: bytes = b"", status: Status = Status.OK, detail: str = "") -> Reply:
    return Reply(CallKind.FILE, (path,), status, data, started=NOW, detail=detail)


def ran(argv: tuple[str, ...], data: bytes = b"", code: int = 0, stderr: bytes = b"") -> Reply:
    return Reply(CallKind.COMMAND, argv, data=data, exit_code=code, stderr=stderr, started=NOW)


ABSENT = [
    Reply(CallKind.COMMAND, argv, Status.UNSUPPORTED, detail=f"{argv[0]} is not installed")
    for argv in (JOURNAL, BOOTS, DMESG, OLD_DMESG)
] + [
    file(p, status=Status.UNSUPPORTED)
    for p in ("/dev/kmsg", "/etc/localtime", "/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
]


def machine(*replies: Reply, as_of: int | None = NOW) -> ReplayHost:
    """A machine of which what is not told is absent."""
    told = {r.key: r for r in (*ABSENT, file("/proc/stat", stat_text()), *replies)}
    return ReplayHost("n1", told.values(), as_of)


def collect(host: Host, **options: str) -> list[Observation]:
    return PROBE.collect(ProbeRequest(5.0, options), host)


def codes(found: Iterable[Observation]) -> list[int | None]:
    return [o.value.code for o in found if o.fact == "xid" and isinstance(o.value, Event)]


def window(found: Iterable[Observation], fact: str = "xid") -> tuple[int, int] | None:
    [none] = [o for o in found if o.fact == fact and o.status is Status.NONE_SEEN]
    assert none.clock is Clock.REALTIME
    assert none.subject == node("n1")
    return none.window


def head(found: Iterable[Observation]) -> Observation:
    [o] = [o for o in found if o.fact == "log.kernel.truncated_head"]
    return o


# --- the journal --------------------------------------------------------------------------


def test_silence_of_a_journal_is_covered_as_far_as_it_was_kept() -> None:
    lines = [(NOW - 3 * DAY, "Linux version 5.15"), (NOW - 2 * DAY, XID79)]
    boots = boots_text((NOW - 20 * DAY, NOW - DAY), (NOW - DAY + HOUR, NOW - 60 * S))
    found = collect(machine(ran(JOURNAL, journal_text(lines)), ran(BOOTS, boots)))
    assert codes(found) == [79]
    assert window(found) == (NOW - 7 * DAY, NOW - 60 * S)
    young = collect(machine(ran(JOURNAL, journal_text(lines)), ran(BOOTS, boots_text((NOW - 4 * DAY, NOW - 60 * S)))))
    assert window(young) == (NOW - 4 * DAY, NOW - 60 * S)
    unknown = collect(machine(ran(JOURNAL, journal_text(lines)), ran(BOOTS, b"", 1, b"Failed\n")))
    assert window(unknown) == (NOW - 3 * DAY, NOW - 2 * DAY)


def test_what_is_older_than_a_week_is_history() -> None:
    lines = [(NOW - 8 * DAY, xid(48)), (NOW - 6 * DAY, xid(79))]
    found = collect(machine(ran(JOURNAL, journal_text(lines)), ran(BOOTS, boots_text((NOW - 20 * DAY, NOW)))))
    assert codes(found) == [79]


def test_a_journal_without_a_line_of_the_kernel_covers_nothing() -> None:
    """As in a container with a journal of its own."""
    found = collect(machine(ran(JOURNAL, journal_text([])), ran(BOOTS, boots_text((NOW - 20 * DAY, NOW)))))
    assert not any(o.status.answered for o in found)
    assert "holds no line of a kernel log" in found[0].detail


def test_a_journal_that_holds_more_lines_than_are_read_covers_those_it_gives() -> None:
    many = [(NOW - DAY + i * S, "usb 1-1: reset") for i in range(50_000)]
    found = collect(machine(ran(JOURNAL, journal_text(many)), ran(BOOTS, boots_text((NOW - 20 * DAY, NOW)))))
    assert window(found) == (NOW - DAY, NOW)


# --- the ring buffer ----------------------------------------------------------------------


def test_the_ring_buffer_tells_whether_its_head_was_overwritten() -> None:
    lines = [(BOOT, "Linux version 5.15"), (BOOT + 2 * HOUR, XID79)]
    whole = collect(machine(file("/dev/kmsg", kmsg_text(lines))))
    assert codes(whole) == [79]
    assert head(whole).value is False
    assert window(whole) == (BOOT, NOW)
    [event] = [o for o in whole if o.fact == "xid" and isinstance(o.value, Event)]
    assert (event.at, event.clock) == (BOOT + 2 * HOUR, Clock.REALTIME)
    wrapped = collect(machine(file("/dev/kmsg", kmsg_text(lines[1:], first=812))))
    assert (head(wrapped).value, head(wrapped).at) == (True, BOOT + 2 * HOUR)
    assert window(wrapped) == (BOOT + 2 * HOUR, NOW)


def test_records_that_were_overwritten_while_they_were_read_are_a_gap() -> None:
    early, late = [(BOOT, "Linux version 5.15"), (BOOT + HOUR, XID79)], [(BOOT + 3 * HOUR, "usb 1-1: reset")]
    found = collect(machine(file("/dev/kmsg", kmsg_text(early) + kmsg_text(late, first=900))))
    assert codes(found) == [79]
    assert window(found) == (BOOT + 3 * HOUR, NOW)
    assert head(found).value is True


def test_dmesg_stands_in_for_a_ring_buffer_that_has_no_file() -> None:
    iso = "".join(
        f"kern  :warn  : {iso_line(at, '').split(' ')[0]} {t}\n"
        for at, t in [(BOOT, "Linux version 5"), (NOW - HOUR, XID79)]
    )
    found = collect(machine(ran(DMESG, iso.replace(".", ",", 2).encode())))
    assert codes(found) == [79]
    assert window(found) == (BOOT, NOW)
    assert head(found).value is False
    late = collect(machine(ran(DMESG, iso.split("\n")[1].replace(".", ",", 1).encode())))
    assert head(late).value is True
    busybox = ran(DMESG, code=1, stderr=b"dmesg: unrecognized option '--time-format'\nBusyBox v1.36.1\n")
    plain = f"[    0.000000] Linux version 5\n[ 7200.000000] {XID79}\n".encode()
    found = collect(machine(busybox, ran(OLD_DMESG, plain)))
    assert codes(found) == [79]
    assert window(found) == (BOOT, NOW)


# --- several sources ----------------------------------------------------------------------


def test_what_the_journal_and_the_ring_buffer_tell_counts_once() -> None:
    lines = [(BOOT + HOUR, xid(31)), (BOOT + HOUR + S, xid(31)), (BOOT + 2 * HOUR, xid(13)), (NOW - HOUR, XID79)]
    drift = [(at + 3 * S, text) for at, text in lines]
    journal = (ran(JOURNAL, journal_text(lines[2:])), ran(BOOTS, boots_text((BOOT + 2 * HOUR, NOW - 30 * S))))
    found = collect(machine(*journal, file("/dev/kmsg", kmsg_text([(BOOT, "Linux version 5.15"), *drift]))))
    assert sorted(c or 0 for c in codes(found)) == [13, 31, 31, 79]
    assert window(found) == (BOOT, NOW)
    assert head(found).value is False


def test_a_journal_that_stopped_is_completed_by_the_ring_buffer() -> None:
    lines = [(BOOT, "Linux version 5.15"), (NOW - HOUR, XID79)]
    stopped = (ran(JOURNAL, journal_text(lines[:1])), ran(BOOTS, boots_text((NOW - 9 * DAY, NOW - 2 * HOUR))))
    found = collect(machine(*stopped, file("/dev/kmsg", kmsg_text(lines))))
    assert codes(found) == [79]
    assert window(found) == (NOW - 7 * DAY, NOW)


def test_a_journal_of_this_boot_and_a_file_of_the_one_before() -> None:
    """As on machines whose journal is kept in memory: the fault that made somebody reboot stands in the file only."""
    lines = [(BOOT, "Linux version 5.15"), (NOW - HOUR, "usb 1-1: reset")]
    before = [(NOW - 9 * DAY, "Linux version 5.15"), (BOOT - HOUR, XID79)]
    text = "".join(syslog_line(at, t) for at, t in (*before, *lines)).encode()
    found = collect(machine(
        ran(JOURNAL, journal_text(lines)), ran(BOOTS, boots_text((BOOT, NOW))), file("/dev/kmsg", kmsg_text(lines)),
        file("/var/log/messages", text),
    ))  # fmt: skip
    [event] = [o for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    assert (event.at, event.clock, event.source.call) == (BOOT - HOUR, Clock.REALTIME, "/var/log/messages")
    assert window(found) == (NOW - 7 * DAY, NOW)
    assert sum(o.fact == "boot" and isinstance(o.value, Event) for o in found) == 1


@given(
    st.lists(st.integers(0, 6 * 24 * 60), min_size=1, max_size=12, unique=True).map(sorted),
    st.integers(0, 6 * 24 * 60), st.integers(0, 6 * 24 * 60), st.integers(-2, 2),
)  # fmt: skip
def test_wherever_the_sources_overlap_each_event_counts_once(
    minutes: list[int], journal: int, ring: int, drift: int
) -> None:
    start = NOW - 6 * DAY - HOUR
    events = [(start + m * 60 * S, xid(10 + i)) for i, m in enumerate(minutes)]
    lines = [(start - 2 * DAY, "Linux version 5.15"), *events, (NOW - 60 * S, "usb 1-1: reset")]
    j = [(at, t) for at, t in lines if at >= start + journal * 60 * S]
    r = [(at + drift * S, t) for at, t in lines if at >= start + ring * 60 * S]
    f = "".join(syslog_line(at, t) for at, t in lines).encode()
    first = len(lines) - len(r)
    found = collect(machine(
        ran(JOURNAL, journal_text(j)), ran(BOOTS, boots_text((start + journal * 60 * S, NOW))),
        file("/proc/stat", stat_text(start - 2 * DAY)), file("/dev/kmsg", kmsg_text(r, first, start - 2 * DAY)),
        file("/var/log/kern.log", f),
    ))  # fmt: skip
    assert sorted(c or 0 for c in codes(found)) == [10 + i for i in range(len(events))]
    assert window(found) == (NOW - 7 * DAY, NOW)


# --- files --------------------------------------------------------------------------------


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda d: d, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard.ZstdCompressor().compress,
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("names", [("kern.log.1", "kern.log.2"), ("kern.log-20261117", "kern.log-20261114")])
def test_rotated_files_are_read_newest_first_as_far_as_it_takes(
    tmp_path: Path, ending: str, names: tuple[str, str]
) -> None:
    folder = tmp_path / "var/log"
    folder.mkdir(parents=True)
    (folder / "kern.log").write_text(syslog_line(NOW - HOUR, xid(13)))
    (folder / (names[0] + ending)).write_bytes(PACK[ending](syslog_line(NOW - 2 * DAY, xid(31)).encode()))
    (folder / (names[1] + ending)).write_bytes(
        PACK[ending]((syslog_line(NOW - 9 * DAY, xid(48)) + syslog_line(NOW - 3 * DAY, XID79)).encode())
    )
    (folder / "kern.log.offset").write_text(syslog_line(NOW - HOUR, xid(99)))
    (folder / "kern.log.3").write_text(syslog_line(NOW - 10 * DAY, xid(99)))
    found = live(tmp_path, tmp_path / "bin")
    assert codes(found) == [13, 31, 79]
    assert window(found) == (NOW - 7 * DAY, NOW - HOUR)
    assert {o.source.call for o in found if isinstance(o.value, Event)} == {
        f"/var/log/{name}" for name in ("kern.log", names[0] + ending, names[1] + ending)
    }


def test_lines_without_a_year_lie_in_the_zone_of_the_machine_and_in_the_last_year() -> None:
    new_year = 1_798_761_600 * S  # 2027-01-01 00:00 UTC
    lines = [(new_year - 3 * HOUR, xid(31)), (new_year + 30 * HOUR, xid(13))]
    as_of = new_year + 40 * HOUR
    tokyo = Path("/usr/share/zoneinfo/Asia/Tokyo")
    if not tokyo.exists():
        pytest.skip("no time zones are installed")
    text = "".join(syslog_line(at + 9 * HOUR, t) for at, t in lines).encode()
    found = collect(machine(file("/var/log/kern.log", text), file("/etc/localtime", tokyo.read_bytes()), as_of=as_of))
    assert [o.at for o in found if o.fact == "xid" and isinstance(o.value, Event)] == [at for at, _ in lines]


def test_an_empty_file_that_was_just_rotated_does_not_end_the_search() -> None:
    found = collect(machine(
        file("/var/log/kern.log"), listing("/var/log/kern.log*", ["/var/log/kern.log", "/var/log/kern.log.1"]),
        file("/var/log/kern.log.1", syslog_line(NOW - HOUR, XID79).encode()),
    ))  # fmt: skip
    assert codes(found) == [79]


# --- what a crash left --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/sys/fs/pstore/dmesg-efi-{unix}01001", "/var/lib/systemd/pstore/{unix}/dmesg.txt", "/var/crash/{date}/dmesg.{date}",
             "/var/crash/127.0.0.1-{dashed}/vmcore-dmesg.txt"],
)  # fmt: skip
def test_the_last_words_of_a_kernel_that_crashed(path: str) -> None:
    crash = NOW - 6 * HOUR
    when = time.gmtime(crash // S)
    place = path.format(
        unix=crash // S, date=time.strftime("%Y%m%d%H%M", when), dashed=time.strftime("%Y-%m-%d-%H:%M:%S", when)
    )
    last = f"Panic#2 Part1\n<4>[  900.000000] {XID79}\n<0>[  960.000000] Kernel panic - not syncing: dead\n".encode()
    journal = (
        ran(JOURNAL, journal_text([(BOOT, "Linux version 5.15")])),
        ran(BOOTS, boots_text((NOW - 9 * DAY, crash - HOUR), (BOOT, NOW))),
    )
    found = collect(machine(*journal, file(place, last)))
    events = {o.fact: o for o in found if isinstance(o.value, Event)}
    assert {"xid", "kernel_panic", "boot"} == set(events)
    at = events["kernel_panic"].at
    assert at is not None
    assert abs(at - crash) <= 60 * S
    assert events["xid"].at == at - 60 * S
    old = collect(machine(*journal, file(place, last), as_of=NOW + 20 * DAY))
    assert codes(old) == []


def test_a_crash_dump_alone_reassures_nobody() -> None:
    last = f"Panic#2 Part1\n<4>[  900.000000] {XID79}\n<0>[  960.000000] Kernel panic - not syncing: dead\n".encode()
    found = collect(machine(file(f"/sys/fs/pstore/dmesg-efi-{(NOW - HOUR) // S}01001", last)))
    assert codes(found) == [79]
    assert not any(o.status is Status.NONE_SEEN for o in found)
    assert {o.status for o in found if o.fact == "sxid"} == {Status.UNSUPPORTED}


def test_parts_of_a_crash_dump_are_put_in_order() -> None:
    parts = {
        2: f"Panic#1 Part2\n<4>[  900.000000] {XID79}\n",
        1: "Panic#1 Part1\n<0>[  960.000000] Kernel panic - not syncing: dead\n",
    }
    unix = (NOW - HOUR) // S
    files = [file(f"/sys/fs/pstore/dmesg-efi-{unix}{n:02d}001", text.encode()) for n, text in parts.items()]
    found = collect(machine(*files, file("/dev/kmsg", kmsg_text([(BOOT, "Linux version 5.15")]))))
    assert {o.fact: o.at for o in found if isinstance(o.value, Event) and o.fact != "boot"} == {
        "xid": NOW - HOUR - 60 * S, "kernel_panic": NOW - HOUR,
    }  # fmt: skip


# --- nobody may read ----------------------------------------------------------------------


def test_a_user_without_privileges_is_told_which_one_and_one_command() -> None:
    hint = b"Hint: You are currently not seeing messages from other users and the system.\n      Users in groups 'adm', 'systemd-journal' can see all messages.\n"
    denied = [
        ran(JOURNAL, b"", 1, hint + b"No journal files were opened due to insufficient permissions.\n"),
        file("/dev/kmsg", status=Status.DENIED, detail="/dev/kmsg: Operation not permitted"),
        ran(DMESG, b"", 1, b"dmesg: read kernel buffer failed: Operation not permitted\n"),
        file("/var/log/kern.log", status=Status.DENIED, detail="/var/log/kern.log: Permission denied"),
    ]
    found = collect(machine(*denied))
    assert {o.fact for o in found} == {"log.kernel.readable", "xid", "sxid"}
    assert {o.status for o in found} == {Status.DENIED}
    for part in (
        "systemd-journal or adm",
        "CAP_SYSLOG or kernel.dmesg_restrict=0",
        "run sudo gpudiag check",
        "/var/log/kern.log: Permission denied",
    ):
        assert part in found[0].detail
    own = collect(machine(ran(JOURNAL, journal_text([]), 0, hint), *denied[1:]))
    assert {o.status for o in own} == {Status.DENIED}


def test_sources_that_are_not_there_take_a_few_words() -> None:
    denied = file("/dev/kmsg", status=Status.DENIED, detail="/dev/kmsg: Operation not permitted")
    found = collect(machine(denied))
    assert found[0].detail == (
        "/dev/kmsg: Operation not permitted; there is no journal, no syslog file; "
        "the ring buffer needs CAP_SYSLOG or kernel.dmesg_restrict=0: run sudo gpudiag check"
    )
    none = collect(machine())
    assert none[0].detail == "there is no journal, no ring buffer, no syslog file"


def test_where_only_a_source_of_less_reach_may_be_read_it_says_what_would_reach_further() -> None:
    hint = ran(
        JOURNAL,
        b"-- No entries --\n",
        0,
        b"Hint: You are currently not seeing messages from other users and the system.\n",
    )
    found = collect(machine(hint, file("/dev/kmsg", kmsg_text([(NOW - HOUR, "usb 1-1: reset")], first=7))))
    assert window(found) == (NOW - HOUR, NOW)
    assert head(found).value is True
    assert "systemd-journal" in head(found).detail
    assert "CAP_SYSLOG" not in head(found).detail


# --- tools that misbehave, as real processes ----------------------------------------------


def tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def live(root: Path, binaries: Path, deadline: float = 5.0, cap: int = 32 << 20, **options: str) -> list[Observation]:
    """What the probe sees on a live host under `root`; a recording and a bundle of it must say the same."""
    for name in ("journalctl", "dmesg"):
        if not (binaries / name).exists():
            tool(binaries, name, "echo 'command not found' >&2; exit 127")
    environ = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    with LiveHost("n1", root=str(root), environ=environ, as_of=NOW, cap=cap) as host:
        recording = RecordingHost(host)
        request = ProbeRequest(deadline, options)
        found = PROBE.collect(request, recording)
        again = PROBE.collect(request, ReplayHost("n1", recording.replies, NOW))
        bundle = binaries / "bundle.tar.gz"
        write(bundle, "n1", recording.replies, NOW, "0")
        assert repr(found) == repr(again) == repr(PROBE.collect(request, BundleHost(bundle)))
    return found


def rooted(root: Path, lines: Iterable[tuple[int, str]]) -> None:
    for path, data in (("dev/kmsg", kmsg_text(lines)), ("proc/stat", stat_text())):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


LINES = [(BOOT, "Linux version 5.15"), (NOW - HOUR, XID79)]


@pytest.mark.process
@pytest.mark.parametrize(
    "script",
    [
        "trap '' TERM; while :; do sleep 1; done",
        "head -c 2000000 /dev/urandom",
        "echo 'Segmentation fault' >&2; kill -SEGV $$",
        "yes 'Nov 18 10:00:00 not a kernel line at all, nor any daemon' | head -c 40000000",
        "exit 0",
    ],
    ids=["hangs", "garbage", "dies", "prints 40 MB", "silent"],
)
def test_a_journal_that_misbehaves_costs_only_itself(tmp_path: Path, script: str) -> None:
    rooted(tmp_path, LINES)
    tool(tmp_path / "bin", "journalctl", script)
    found = live(tmp_path, tmp_path / "bin", deadline=1.0)
    assert codes(found) == [79]
    assert window(found)[0] == BOOT  # type: ignore[index]


@pytest.mark.process
def test_a_journal_longer_than_is_kept_is_covered_from_behind_the_gap(tmp_path: Path) -> None:
    """Head and tail are kept: events of both count, and only the tail says that nothing else occurred."""
    rooted(tmp_path, [])
    early, late = iso_line(NOW - 6 * DAY, xid(48)), iso_line(NOW - HOUR, XID79)
    noise = iso_line(NOW - 3 * DAY, "x" * 900)
    tool(
        tmp_path / "bin", "journalctl",
        f"case \"$*\" in *list-boots*) exit 1;; esac; echo '{early}'; yes '{noise}' | head -n 10000; yes '{iso_line(NOW - DAY, 'usb 1-1: reset')}' | head -n 40000; echo '{late}'",
    )  # fmt: skip
    found = live(tmp_path, tmp_path / "bin", deadline=60.0, cap=2 << 20)  # 9 and 2.5 MB are printed
    assert codes(found) == [48, 79]
    assert window(found) == (NOW - DAY, NOW - HOUR)


@pytest.mark.process
def test_all_that_hangs_is_said_within_the_deadlines(tmp_path: Path) -> None:
    for name in ("journalctl", "dmesg"):
        tool(tmp_path / "bin", name, "sleep 600")
    found = live(tmp_path, tmp_path / "bin", deadline=0.5)
    assert {o.status for o in found} == {Status.TIMEOUT}


# --- the real thing -----------------------------------------------------------------------


def export(lines: Iterable[tuple[int, str, str, str]]) -> bytes:
    """Journal export format: time, boot, transport and message. Bytes that cannot be printed are told by their length."""
    out = []
    for at, boot, transport, text in lines:
        fields = {
            "__REALTIME_TIMESTAMP": at // 1000, "__MONOTONIC_TIMESTAMP": max(1, (at - NOW) // 1000 + 10**12), "_BOOT_ID": boot,
            "_TRANSPORT": transport, "SYSLOG_IDENTIFIER": "kernel" if transport == "kernel" else "cron", "PRIORITY": 4,
            "_MACHINE_ID": "0123456789abcdef0123456789abcdef", "_HOSTNAME": "localhost",
        }  # fmt: skip
        data = text.encode()
        message = b"MESSAGE\n" + len(data).to_bytes(8, "little") + data
        out.append("".join(f"{k}={v}\n" for k, v in fields.items()).encode() + message + b"\n\n")
    return b"".join(out)


@pytest.fixture
def real_journal(tmp_path: Path, require: Callable[[str], str]) -> Callable[..., Path]:
    """Puts a journal file of the given lines below the root, where the real ``journalctl`` of the folder finds it."""
    program, remote = require("journalctl"), require("journal-remote")

    def make(lines: Iterable[tuple[int, str, str, str]]) -> Path:
        folder = tmp_path / "var/log/journal/0123456789abcdef0123456789abcdef"
        folder.mkdir(parents=True)
        (tmp_path / "export").write_bytes(export(lines))
        subprocess.run(
            [remote, "-o", folder / "system.journal", tmp_path / "export"], check=True, capture_output=True, timeout=30
        )
        tool(tmp_path / "bin", "journalctl", f'exec {program} "$@"')
        return tmp_path / "bin"

    return make


ONE, TWO = "1" * 32, "2" * 32


@pytest.mark.process
def test_a_node_that_rebooted_after_a_fault_still_tells(tmp_path: Path, real_journal: Callable[..., Path]) -> None:
    name = "pyth\x01on é"
    binaries = real_journal([
        (NOW - 3 * DAY, ONE, "kernel", "Linux version 5.15.0-100-generic"),
        (NOW - 6 * HOUR, ONE, "kernel", f"NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name={name}, GPU has fallen off the bus."),
        (BOOT, TWO, "kernel", "Linux version 5.15.0-100-generic"),
        (NOW - 2 * HOUR, TWO, "kernel", "two\nlines of one message"),
        (NOW - 2 * HOUR, TWO, "syslog", "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, quoted by a program"),
        (NOW - HOUR, TWO, "kernel", xid(13)),
        (NOW - 60 * S, TWO, "syslog", "the last word"),
    ])  # fmt: skip
    found = live(tmp_path, binaries)
    assert codes(found) == [79, 13]
    assert window(found) == (NOW - 3 * DAY, NOW - 60 * S)
    assert sum(o.fact == "boot" and isinstance(o.value, Event) for o in found) == 2
    [lost, _] = [o for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    assert (lost.at, lost.subject.host) == (NOW - 6 * HOUR, "n1")
    assert "GPU has fallen off the bus" in lost.excerpt


@pytest.mark.process
def test_a_watcher_reads_only_what_is_new(tmp_path: Path, real_journal: Callable[..., Path]) -> None:
    binaries = real_journal([
        (NOW - 3 * DAY, ONE, "kernel", "Linux version 5.15.0-100-generic"), (NOW - HOUR, ONE, "kernel", xid(13)),
        (NOW - 60 * S, ONE, "kernel", XID79), (NOW - 1 * S, ONE, "syslog", "the last word"),
    ])  # fmt: skip
    rooted(tmp_path, [(NOW - 50 * S, xid(99))])
    new = live(tmp_path, binaries, since=str(NOW - 90 * S))
    assert codes(new) == [79]
    assert window(new) == (NOW - 90 * S, NOW - 1 * S)
    quiet = live(tmp_path, binaries, since=str(NOW - 30 * S))
    assert codes(quiet) == []
    assert window(quiet) == (NOW - 30 * S, NOW - 1 * S)
    tool(tmp_path / "bin", "journalctl", "exit 1")
    ring = live(tmp_path, binaries, since=str(NOW - 55 * S))
    assert codes(ring) == [99]


@pytest.mark.process
def test_a_container_s_journal_gives_way_to_the_ring_buffer(tmp_path: Path, real_journal: Callable[..., Path]) -> None:
    rooted(tmp_path, LINES)
    found = live(tmp_path, real_journal([(NOW - HOUR, ONE, "syslog", "hello")]))
    assert codes(found) == [79]
    assert window(found)[0] == BOOT  # type: ignore[index]


@pytest.mark.process
def test_the_ring_buffer_of_this_machine() -> None:
    """A line that is written to /dev/kmsg is read back; the window reaches from the boot, or the oldest record, to now."""
    line = f"gpudiag: a test of process {os.getpid()} writes this line"
    try:
        with Path("/dev/kmsg").open("w") as stream:
            stream.write(f"{line}\n")
    except OSError as error:
        pytest.skip(f"/dev/kmsg cannot be written here: {error}")
    with LiveHost("n1") as host:
        reply = host.read("/dev/kmsg")
        if line not in reply.text:
            pytest.skip("the kernel does not keep what programs write")
        found = collect(without_commands(host))
        now, booted = host.as_of or 0, int(host.read("/proc/stat").text.partition("btime ")[2].split()[0]) * S
    number, seconds = re.findall(rf"(?m)^\d+,(\d+),(\d+),[^;]*;{re.escape(line)}$", reply.text)[-1]
    assert int(number) > 0
    assert abs(booted + int(seconds) * 1000 - now) < 300 * S
    start, end = window(found)  # type: ignore[misc]
    assert end >= now
    first = int(re.findall(r"(?m)^\d+,(\d+),\d+,", reply.text)[0])
    assert head(found).value is (first > 0)
    if first == 0:
        assert start == max(booted, now - 7 * DAY)


def without_commands(host: LiveHost) -> Host:
    """The machine without journalctl and dmesg."""

    class Without:
        name, as_of = host.name, host.as_of
        read, files, snapshot = host.read, host.files, host.snapshot

        @staticmethod
        def run(argv: Iterable[str], *, deadline: float) -> Reply:
            return Reply(CallKind.COMMAND, tuple(argv), Status.UNSUPPORTED, detail="not installed")

    return Without()


@pytest.mark.process
def test_an_ordinary_user_on_this_machine() -> None:
    """The probe in a process without privileges: it answers, or says which one it lacks."""
    python = Path("/usr/bin/python3.11")
    if os.geteuid() != 0 or not python.exists():
        pytest.skip("only root can become somebody else, and the system's Python 3.11 is needed")
    script = (
        "from probes.live_host import LiveHost\nfrom probes.live import ProbeRequest\nfrom probes.live.kernel_log import PROBE\n"
        "with LiveHost('n1') as h:\n    out = PROBE.collect(ProbeRequest(5.0), h)\n"
        "o = out[0]; print(o.fact, o.status, o.detail)\n"
    )
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    done = subprocess.run(
        [str(python), "-B", "-c", script], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=60,
        cwd="/", env={"PYTHONPATH": f"{Path(__file__).parents[3]}:{packages}", "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr or "PermissionError" in done.stderr:
        pytest.skip("an ordinary user cannot read this checkout or its packages")
    assert done.returncode == 0, done.stderr
    if " denied " in done.stdout:
        assert "run sudo gpudiag check" in done.stdout
        assert "CAP_SYSLOG or kernel.dmesg_restrict=0" in done.stdout


def test_without_a_time_the_first_source_that_answers_is_all() -> None:
    lines = [(NOW - 30 * DAY, xid(48)), (NOW - HOUR, XID79)]
    host = machine(ran(JOURNAL, journal_text(lines)), file("/dev/kmsg", kmsg_text([(NOW, xid(13))])), as_of=None)
    assert codes(collect(host)) == [48, 79]
    cut = replace(ran(JOURNAL, journal_text(lines)), cut=True, detail="5 bytes in the middle were left out")
    found = collect(machine(cut, as_of=None))
    assert {o.status for o in found if o.fact == "sxid"} == {Status.FAILED}
