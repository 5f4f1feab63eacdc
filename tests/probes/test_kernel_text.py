"""The kernel log of a machine as text: which sources there are, and where their clocks lie."""

from __future__ import annotations

import pytest

from knowledge.observation import Clock, Status
from probes.host import CallKind, ReplayHost, Reply
from probes.kernel_text import KernelText, kernel_texts
from probes.live._kernel_sources import DMESG, JOURNAL

NOON = 1_790_000_000 * 10**9
LINE = b"kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"


def host(*replies: Reply, as_of: int | None = NOON) -> ReplayHost:
    return ReplayHost("oak", replies, as_of)


def file(path: str, data: bytes, status: Status = Status.OK) -> Reply:
    return Reply(CallKind.FILE, (path,), status, data)


def command(argv: tuple[str, ...], data: bytes, status: Status = Status.OK, detail: str = "") -> Reply:
    return Reply(CallKind.COMMAND, argv, status, data, detail=detail)


def readable(h: ReplayHost) -> list[KernelText]:
    return [t for t in kernel_texts(h) if t.data]


def test_the_journal_is_first_and_called_as_people_know_it() -> None:
    h = host(
        command(JOURNAL, b"2026-09-21T12:00:00.000001+0000 " + LINE),
        command(DMESG, b"kern  :err   : 2026-09-21T12:00:00,000001+00:00 NVRM: Xid (PCI:0000:3b:00): 79, pid=1, x\n"),
        file("/var/log/kern.log", b"Sep 21 12:00:00 oak " + LINE),
    )
    assert [t.title for t in readable(h)] == ["journalctl -k", "dmesg -x --time-format iso"]


def test_a_ring_buffer_is_placed_by_the_boot() -> None:
    h = host(
        file("/dev/kmsg", b"6,0,1000000,-;hello\n4,1,2000000,-;" + LINE), file("/proc/stat", b"btime 1790000000\n")
    )
    (ring,) = readable(h)
    assert ring.spot(None)(10**9, Clock.BOOT) == (1_790_000_001 * 10**9, Clock.REALTIME)
    assert [o.fact for o in ring.found if o.source.line == 2] == ["xid"]


def test_a_syslog_file_is_read_where_nothing_else_answers_and_placed_by_the_zone() -> None:
    h = host(
        command(JOURNAL, b"", Status.DENIED, "journalctl: permission denied"),
        file("/var/log/kern.log", b"Sep 21 12:00:00 oak " + LINE), file("/etc/localtime", b"", Status.UNSUPPORTED),
    )  # fmt: skip
    (log,) = readable(h)
    assert log.title == "/var/log/kern.log"
    at, clock = log.spot(8 * 30 * 86_400 * 10**9 + 946_684_800 * 10**9)(946_684_800 * 10**9, Clock.YEARLESS)
    assert clock is Clock.REALTIME
    assert at > 946_684_800 * 10**9


def test_what_cannot_be_read_says_why() -> None:
    texts = list(kernel_texts(host(command(JOURNAL, b"", Status.DENIED, "journalctl: permission denied"))))
    assert not [t for t in texts if t.data]
    assert all(t.why for t in texts)
    assert any("permission denied" in t.why for t in texts)


@pytest.mark.parametrize("as_of", [None, NOON])
def test_without_a_time_of_the_recording_there_is_text_all_the_same(as_of: int | None) -> None:
    (log,) = readable(host(file("/dev/kmsg", b"4,1,2000000,-;" + LINE), as_of=as_of))
    assert log.spot(None)(5, Clock.BOOT) == (5, Clock.BOOT)
