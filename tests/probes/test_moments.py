"""Lines between outputs that say when they were taken, and lines that look alike and are none."""

from __future__ import annotations

from knowledge.observation import Clock, Observation, Source, node
from probes.moments import dated, moment_of, moments, of_name
from tests.cases import each

HOUR = 3600 * 10**9
THREE = 1_793_674_800_000_000_000  # 2026-11-03 03:00 UTC


@each("line", [
    "Tue Nov  3 03:00:00 UTC 2026", "Tue Nov 3 03:00:00 AM UTC 2026", "Tue  3 Nov 03:00:00 UTC 2026", "2026-11-03T03:00:00Z",
    "2026-11-03 11:00:00+08:00", "2026年 11月 03日 星期二 03:00:00 UTC", "root@gpu07 2026-11-03 03:00:00Z:~# ibstat",
])  # fmt: skip
def test_a_time_in_utc(line: str) -> None:
    found = moment_of(line)
    assert found is not None
    assert (found.clock, found.value) == (Clock.REALTIME, THREE)


@each("line", [
    "=== 2026-11-03 03:00 ibstat ===", "# 2026-11-03 03:00", "2026/11/03 03:00:00", "at 2026-11-03 03:00:", "第一次 2026-11-03 03:00",
    "Every 2.0s: nvidia-smi nvlink -e            gpu07: Tue Nov  3 03:00:00 2026",
])  # fmt: skip
def test_a_time_of_an_unnamed_zone(line: str) -> None:
    found = moment_of(line)
    assert found is not None
    assert (found.clock, found.value) == (Clock.LOCAL, THREE)


@each("line", ["=== 03:00 ===", "--- 03:00 ibstat ---", "03:00:", "## before (03:00)", "第二次 03:00:00"])
def test_a_clock_without_a_date(line: str) -> None:
    found = moment_of(line)
    assert found is not None
    assert (found.clock, found.value) == (Clock.DAY, 3 * HOUR)


@each("line", [
    "2026-11-03 03:00:00 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1", "Nov  3 03:00:00 gpu07 kernel: NVRM: Xid", "03:00.0 VGA",
    "[Tue Nov  3 03:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "Uptime 10:00:00", "ETA 03:00",
    "Timestamp                                              : Tue Nov  3 03:00:00 2026", "GPU 00000000:3B:00.0", "link is 03:00:11",
    "[2026-11-03 03:00:00] INFO step 5 loss 3.2", "| 0   N/A  03:00 |", "=== 03:00 gpu07 kernel: link down ===", "25:00", "2026-13-41 03:00",
])  # fmt: skip
def test_no_line_of_an_output_or_a_log_is_one(line: str) -> None:
    assert moment_of(line) is None


def test_a_clock_that_steps_back_is_that_of_the_next_day() -> None:
    text = "23:50\nvalue\n00:10\nvalue\n"
    told = [Observation("node.gpu.count", node(), 8, source=Source("x", "f", line)) for line in (2, 4)]
    assert [o.at for o in dated(told, moments(text))] == [23 * HOUR + 50 * HOUR // 60, 24 * HOUR + 10 * HOUR // 60]


def test_what_has_a_time_keeps_it_and_what_stands_ahead_of_all_times_gets_none() -> None:
    text = "value\n=== 03:00 ===\nvalue\n"
    early = Observation("node.gpu.count", node(), 8, source=Source("x", "f", 1))
    timed = Observation("node.gpu.count", node(), 8, source=Source("x", "f", 3), at=5, clock=Clock.BOOT)
    assert dated([early, timed], moments(text)) == [early, timed]


@each(
    "name",
    [
        "nvlink-20261103-0300.txt",
        "/a/ibstat.2026-11-03T03:00:00.log",
        "perfquery_2026-11-03_03-00.txt",
        "n1.202611030300.txt",
    ],
)
def test_a_file_may_have_its_time_in_its_name(name: str) -> None:
    assert [(at.clock, at.at) for at in of_name(name).times] == [(Clock.LOCAL, THREE)]


@each(
    "name",
    [
        "nvlink-e.txt",
        "ibstat-20261103.txt",
        "job-20261399-0300.txt",
        "case-120261103030012.txt",
        "/20261103-0300/ibstat.txt",
    ],
)
def test_other_numbers_in_a_name_are_no_time(name: str) -> None:
    assert not of_name(name).times
