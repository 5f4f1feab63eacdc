"""``top`` and ``uptime``: what a head tells, what it leaves open, and that a machine at rest is no trouble."""

from __future__ import annotations

from knowledge.observation import Observation
from probes.base import Context
from probes.parse import ps
from probes.parse.top import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import capture, check_any, parse, value

WELL = """top - 14:02:11 up 21 min,  1 user,  load average: {}, 2.58, 1.59
Tasks: 900 total,   3 running, 897 sleeping,   0 stopped,   0 zombie
%Cpu(s):  2.0 us,  1.0 sy,  0.0 ni, {} id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
MiB Mem : 1031919.0 total, 601200.0 free, 60000.0 used,   2638.0 buff/cache
MiB Swap:      0.0 total,      0.0 free,      0.0 used. 957000.0 avail Mem

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
  41236 ana       20   0  120.0g  40.0g   1.0g {} 100.0   2.0 100:00.00 python
"""
UPTIME = " 14:02:11 up 10 days,  3:04,  2 users,  load average: {}, 780.58, 500.59\n"


def notes(text: str) -> list[str]:
    assert FORMAT.sniff(text) > 0
    assert FORMAT.unread is not None
    return [str(why) for _, why in FORMAT.unread(text)]


def test_a_head_tells_load_waits_memory_and_zombies() -> None:
    got = parse(FORMAT, "other/top.txt")
    assert [value(got, f"node.load.{n}") for n in ("1m", "5m", "15m")] == [190.52, 180.58, 150.59]
    assert value(got, "node.uptime") == (10 * 24 + 3) * 3600 + 4 * 60
    assert (value(got, "node.cpu.iowait"), value(got, "node.processes.zombie")) == (77.0, 40)
    assert (value(got, "node.memory.available.share"), value(got, "node.swap.total")) == (0.1, 0.0)
    assert (value(got, "node.tasks.blocked"), value(got, "process.state", "41234")) == (2, "blocked")
    assert value(got, "process.cpu", "41236") == 1.0


def test_of_several_rounds_the_last_counts() -> None:
    got: list[Observation] = FORMAT.parse(
        WELL.format("90.00", "1.0", "D") + WELL.format("3.00", "97.0", "R"), Context("x")
    )
    assert value(got, "node.load.1m") == 3.0
    assert value(got, "process.state") == "running"


@each(
    ("text", "said"),
    [
        (WELL.format("3.52", "97.0", "R"), []),
        (WELL.format("210.03", "1.0", "R"), []),  # busy CPUs: a load that is at work
        (WELL.format("912.03", "97.0", "R"), ["a load of 912.03 while the CPUs rest for 97 %"]),
        (WELL.format("3.52", "97.0", "D"), ["state D (no signal reaches it): python (pid 41236)"]),
        (UPTIME.format("0.52"), []),
        (UPTIME.format("890.52"), ["whether a load of 890.52 is much is not told"]),
        ("  Tasks: 214, 1630 thr; 3 running\n  Load average: 190.52 180.58 150.59 \n", ["whether a load of 190.52"]),
    ],
)  # fmt: skip
def test_what_a_head_leaves_open_is_said(text: str, said: list[str]) -> None:
    found = notes(text)
    assert len(found) == len(said)
    assert all(part in why for part, why in zip(said, found, strict=True))


AUX = "ana      41234  0.0  2.0 123456789 40000000 ?   {}   08:00 100:00 {}\n"


@each(
    ("text", "notes"),
    [
        (AUX.format("Dl", "python train.py"), 1),
        (AUX.format("Rl", "python train.py"), 0),
        (AUX.format("D", "[kworker/3:1+events]"), 0),
        ("  PID STAT WCHAN    COMMAND\n    7 D    nfs_wait python\n", 0),
        ("  PID STAT COMMAND\n    7 D    /usr/bin/python3 train.py\n", 1),
    ],
)  # fmt: skip
def test_a_blocked_program_of_which_nobody_says_why(text: str, notes: int) -> None:
    assert ps.FORMAT.sniff(text) > 0
    assert ps.FORMAT.unread is not None
    assert len(ps.FORMAT.unread(text)) == notes


@each(
    "text",
    [
        "",
        "top of the list\n",
        "load average: 1.00, 2.00, 3.00\n",
        "x 1 2 3 R 08:00 python\n",
        capture("other/free.txt"),
    ],
)
def test_other_texts_are_none(text: str) -> None:
    check_any(FORMAT, text)
    assert FORMAT.sniff(text) == 0
    assert ps.FORMAT.sniff(text) == 0
