"""Waits of devices and file servers from two readings, and the space of Lustre's targets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse.filesystems_snapshot import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import all_of, status, value
from tests.probes.parse.test_filesystems_snapshot import NUMBERS, document
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

DISK = "43 27 8:1 / /data rw,relatime - xfs /dev/sdb1 rw"


def read(text: str) -> list[Observation]:
    got = FORMAT.parse(text, Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def disk(before: str, after: str, seconds: Any = 0.5) -> list[Observation]:
    lines = [f"8 1 sdb1 {figures}" for figures in (before, after)]
    return read(
        document(mounts=[{"line": DISK, "statvfs": NUMBERS}], disks={"seconds": seconds, "devices": {"8:1": lines}})
    )


def nfs(first: list[str], second: list[str], mount: str = "/data") -> list[Observation]:
    return read(document(nfs=[{"mount": mount, "seconds": 0.5, "first": first, "second": second}]))


def test_waits_are_means_over_what_ended() -> None:
    got = disk("100 0 800 50 200 0 1600 400 0 300 450", "110 0 880 70 240 0 1920 8400 6 790 8470")
    assert (value(got, "fs.read.wait"), value(got, "fs.write.wait")) == (2.0, 200.0)
    assert (value(got, "fs.device.busy"), value(got, "fs.device.stalled")) == (98.0, False)


def test_a_device_that_ends_nothing() -> None:
    got = disk("100 0 800 50 200 0 1600 400 4 300 450", "100 0 800 50 200 0 1600 400 9 800 450")
    assert (value(got, "fs.device.stalled"), value(got, "fs.device.busy")) == (True, 100.0)
    assert status(got, "fs.write.wait") is status(got, "fs.read.wait") is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    "line", ["43 27 0:52 / /data rw - nfs4 filer-1:/data rw,hard", "44 27 0:33 / /tmp rw - tmpfs tmpfs rw"]
)
def test_what_has_no_device_tells_nothing_of_one(line: str) -> None:
    got = read(
        document(
            mounts=[{"line": line, "statvfs": NUMBERS}],
            disks={"seconds": 0.5, "devices": {"8:1": ["8 1 sdb1 1", "8 1 sdb1 1"]}},
        )
    )
    assert not all_of(got, "fs.write.wait")


def xprt(sent: int, received: int) -> str:
    return f"xprt: tcp 731 0 1 0 0 {sent} {received} 0 9 0 2 0 0"


def test_round_trips_are_those_of_the_window() -> None:
    got = nfs(
        [xprt(1000, 1000), "READ: 1000 1000 0 9 9 10 2000 2100 0", "GETATTR: 50000 50000 0 9 9 1 1 2 0"],
        [xprt(1100, 1100), "READ: 1040 1040 0 9 9 50 12000 12200 0", "GETATTR: 50050 50050 0 9 9 1 1 2 0"],
    )
    assert value(got, "fs.rpc.requests.recent") == 40  # of data; names of files are asked for all the time
    assert (value(got, "fs.rpc.round_trip.recent"), value(got, "fs.rpc.queue.recent")) == (250.0, 1.0)
    assert value(got, "fs.rpc.round_trip") == round(12000 / 1040, 2)
    assert (value(got, "fs.rpc.errors.recent"), value(got, "fs.rpc.unanswered")) == (0, False)


def test_a_quiet_mount_has_no_round_trip_now() -> None:
    same = [xprt(7, 7), "WRITE: 3 3 0 9 9 1 6 7 0"]
    got = nfs(same, same)
    assert status(got, "fs.rpc.round_trip.recent") is Status.NOT_APPLICABLE
    assert (value(got, "fs.rpc.round_trip"), value(got, "fs.rpc.unanswered")) == (2.0, False)


WRITE = "WRITE: 3 3 0 9 9 1 6 7 0"


@each(
    ("readings", "expected"),
    [
        ([(90, 80), (96, 80), (96, 80)], True),
        ([(90, 80), (96, 80), (99, 80)], True),
        ([(90, 80), (96, 80), (96, 86)], False),  # they had been sent a moment before the second look
        ([(90, 80), (96, 80)], False),
        ([(90, 90), (96, 95)], False),
        ([(2739061800, 2738767649), (2739061800, 2738767649)], False),  # idle: what was lost in years is never answered
    ],
)
def test_requests_that_nothing_comes_back_for(readings: list[tuple[int, int]], expected: bool) -> None:
    lines = dict(zip(("first", "second", "third"), ([xprt(*reading), WRITE] for reading in readings), strict=False))
    assert value(read(document(nfs=[{"mount": "/data", "seconds": 0.5, **lines}])), "fs.rpc.unanswered") is expected


def test_connections_are_added_up() -> None:
    lines = [[xprt(5, 5), xprt(sent, 8)] for sent in (9, 11, 11)]
    record = {"mount": "/data", "seconds": 0.5, **dict(zip(("first", "second", "third"), lines, strict=True))}
    assert value(read(document(nfs=[record])), "fs.rpc.unanswered") is True


def test_errors_are_unknown_to_old_kernels() -> None:
    old = [xprt(5, 5), "READ: 1 1 0 9 9 1 6 7"]
    assert status(nfs(old, old), "fs.rpc.errors.recent") is Status.UNSUPPORTED


@pytest.mark.parametrize(
    ("options", "expected"), [("rw,hard", False), ("rw,soft,timeo=50", True), ("rw,softerr", True)]
)
def test_mounts_that_give_up(options: str, expected: bool) -> None:
    line = f"43 27 0:52 / /data rw,relatime - nfs4 filer-1:/data {options}"
    assert value(read(document(mounts=[{"line": line, "statvfs": NUMBERS}])), "fs.soft") is expected


def target(**texts: Any) -> list[Observation]:
    where = "/sys/fs/lustre/osc/scratch-OST0003-osc-ffff8881a2b3c000"
    return read(
        document(
            lustre=[{"path": f"{where}/{k}", **(v if isinstance(v, dict) else {"text": v})} for k, v in texts.items()]
        )
    )


def test_the_space_of_a_target() -> None:
    got = target(kbytestotal="104857600\n", kbytesavail="1048576\n", active="1\n")
    names = ("size", "available", "used.share", "active")
    assert [value(got, f"fs.target.{n}", "scratch-OST0003") for n in names] == [102400, 1024, 99.0, True]
    assert value(target(active="0"), "fs.target.active") is False


def test_a_target_that_does_not_answer() -> None:
    got = target(
        kbytestotal={"hung": "read(/sys/...)", "seconds": 1.0}, kbytesavail={"error": "not reached before the deadline"}
    )
    assert status(got, "fs.target.size") is status(got, "fs.target.available") is Status.TIMEOUT
    assert not all_of(got, "fs.target.used.share")


WORDS = st.lists(
    st.sampled_from(["0", "1", "97", "8", "x", "-1", "9" * 25, "READ:", "xprt:", "tcp", "rdma"]), max_size=14
).map(" ".join)


@given(
    before=WORDS,
    after=WORDS,
    seconds=st.one_of(st.none(), st.integers(-2, 2), st.floats(allow_nan=False), st.text(max_size=3)),
)
def test_no_figures_break_it(before: str, after: str, seconds: Any) -> None:
    disk(before, after, seconds)
    nfs([before], [after])
    target(kbytestotal=before, kbytesavail=after, active=before)
