"""Boots of a log, however it tells them, and wall clocks that were set while it was written."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.observation import Clock, Event, Observation
from probes.base import Context, lines_of
from probes.parse.kernel_log import parse
from tests.cases import each

SECOND = 10**9
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
LINUX = "Linux version 5.15.0-112-generic (x@y) (gcc 11) #122-Ubuntu SMP"
MARK = "-- Boot 4d9a1c0f7d3b4f6e8a2b1c3d4e5f6a7b --"


def read(text: str, host: str = "") -> list[Observation]:
    """Events of a log, in its order."""
    return [o for o in parse(lines_of(text), Context(source="kern.log", host=host)) if isinstance(o.value, Event)]


def boots(text: str) -> list[tuple[str, int | None]]:
    """Host and line of each boot."""
    return [(o.subject.host, o.source.line) for o in read(text) if o.fact == "boot"]


@dataclass(frozen=True)
class Log:
    """A log, and the lines (with their hosts) at which a node boots."""

    name: str
    text: str
    boots: tuple[tuple[str, int], ...]


def journal(at: int, boot: str, message: str) -> str:
    """One record of ``journalctl -o json``."""
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": str(at * 10**6),
            "_TRANSPORT": "kernel",
            "_HOSTNAME": "n1",
            "_BOOT_ID": boot,
            "MESSAGE": message,
        }
    )


LOGS = [
    Log("named by the kernel", f"[5000.1] {XID}\n[    0.000000] {LINUX}\n[7.0] a", (("", 2),)),
    Log("marked by the journal", f"Nov 23 02:40:11 n1 kernel: {XID}\n{MARK}\nNov 23 02:55:03 n1 kernel: a", (("n1", 2),)),
    Log("marked by an old journal", f"Nov 23 02:40:11 n1 kernel: {XID}\n-- Reboot --\nNov 23 02:55:03 n1 kernel: a", (("n1", 2),)),
    Log("told twice, once", f"Nov 23 02:40:11 n1 kernel: a\n{MARK}\nNov 23 02:55:03 n1 kernel: {LINUX}\nNov 23 02:55:04 n1 kernel: b", (("n1", 3),)),
    Log("the mark, then the kernel's name some lines on",
        f"Nov 23 02:40:11 n1 kernel: a\n{MARK}\nNov 23 02:55:03 n1 kernel: microcode: b\nNov 23 02:55:03 n1 kernel: {LINUX}", (("n1", 2),)),
    Log("the same, far down in a log",
        "Nov 23 02:40:11 n1 kernel: a\n" * 90 + f"{MARK}\nNov 23 02:55:03 n1 kernel: microcode: b\nNov 23 02:55:03 n1 kernel: {LINUX}", (("n1", 91),)),
    Log("two boots", f"Nov 23 01:00:00 n1 kernel: {LINUX}\nNov 23 02:00:00 n1 kernel: a\nNov 23 03:00:00 n1 kernel: {LINUX}", (("n1", 1), ("n1", 3))),
    Log("ids of the journal", "\n".join([journal(1000, "a", XID), journal(1100, "a", "x"), journal(1500, "b", "y"), journal(1600, "b", "z")]), (("n1", 3),)),
    Log("seconds that start over beside a wall clock",
        "Nov 23 02:40:11 n1 kernel: [ 5000.1] a\nNov 23 02:55:03 n1 kernel: [   12.5] b\nNov 23 02:55:09 n1 kernel: [   18.5] c", (("n1", 2),)),
    Log("seconds that start over at the beginning", "[5000.1] a\n[5001.1] a\n[5002.1] a\n[0.5] b\n[1.5] c\n[2.5] c", (("", 4),)),
    Log("only its own node boots", f"Nov 23 02:40:11 n1 kernel: a\nNov 23 02:41:00 n2 kernel: {LINUX}\nNov 23 02:42:00 n1 kernel: b", (("n2", 2),)),
    # what is no boot
    Log("somebody speaks of it", f"Nov 23 02:40:11 n1 app[7]: {LINUX}\nNov 23 02:40:12 n1 kernel: a", ()),
    Log("two nodes without their names", "".join(f"[{1000 + i}.0] a\n[{5 + i}.0] b\n" for i in range(4)), ()),
    Log("lines out of order", "[1000.4] a\n[1000.1] b\n[1000.6] c\n[1001.0] c", ()),
    Log("read backwards", f"[20.0] d\n[12.0] c\n[5.0] b\n{MARK}\n[5000.0] a\n[4000.0] a", ()),
    Log("a syslog daemon prints the ring buffer once more",
        "Nov 23 02:40:11 n1 kernel: [90000.1] a\n"
        + "".join(f"Nov 23 02:41:00 n1 kernel: [{10000 * i:5d}.1] {LINUX if not i else 'a'}\n" for i in range(9)), ()),
]  # fmt: skip


@each("log", LOGS, ids=lambda log: log.name)
def test_a_boot_is_found_however_it_is_told_and_told_once(log: Log) -> None:
    assert boots(log.text) == list(log.boots)


def test_a_mark_has_the_time_of_the_first_line_of_its_boot() -> None:
    (boot,) = [o for o in read(LOGS[1].text) if o.fact == "boot"]
    first = read(f"Nov 23 02:55:03 n1 kernel: {XID}")[0]
    assert (boot.at, boot.clock) == (first.at, Clock.YEARLESS)
    assert boot.excerpt == MARK


def test_a_mark_that_stands_backwards_has_no_time() -> None:
    text = f"Nov 23 02:55:03 n1 kernel: b\n{MARK}\nNov 23 02:40:11 n1 kernel: {XID}"
    assert [(o.at, o.clock) for o in read(text) if o.fact == "boot"] == [(None, Clock.NONE)]


def test_the_name_of_the_kernel_belongs_to_the_boot_that_was_marked_before() -> None:
    (boot,) = [o for o in read(LOGS[4].text) if o.fact == "boot"]
    assert isinstance(boot.value, Event)
    assert boot.value.get("version") == "5.15.0-112-generic"


@dataclass(frozen=True)
class Line:
    """One line: seconds since the boot, and by how much the wall clock was set ahead of it (s)."""

    ticks: int
    set: int


@given(
    st.lists(
        st.builds(Line, st.integers(0, 5000), st.sampled_from([0, 0, 0, 7200, -3600, 86400, -700])),
        min_size=2,
        max_size=12,
        unique_by=lambda line: line.ticks,
    )
)
def test_lines_of_one_boot_are_as_far_apart_as_their_seconds_say(drawn: list[Line]) -> None:
    """Whatever the wall clock was set to between them; a clock that is set back by less than passed meanwhile cannot be told."""
    lines, offset, out, last = sorted(drawn, key=lambda line: line.ticks), 1_700_000_000, [], None
    for line in lines:
        jump = line.set if last is None or not -(line.ticks - last) <= line.set < 0 else 0
        offset, last = offset + jump, line.ticks
        out.append(f"{offset + line.ticks}.000000 n1 kernel: [{line.ticks}.000000] {XID}")
    at = [o.at for o in read("\n".join(out)) if o.fact == "xid"]
    assert [(t or 0) - (at[0] or 0) for t in at] == [(line.ticks - lines[0].ticks) * SECOND for line in lines]
    assert at[-1] == (offset + lines[-1].ticks) * SECOND  # the clock that was set last is right


def test_a_node_that_slept_keeps_its_times() -> None:
    said = [
        (1000, 100, XID),
        (1001, 101, "PM: suspend entry (deep)"),
        (9000, 102, "PM: suspend exit"),
        (9001, 103, XID),
    ]
    text = "\n".join(f"{1_700_000_000 + wall}.000000 n1 kernel: [{ticks}.000000] {word}" for wall, ticks, word in said)
    at = [o.at for o in read(text) if o.fact == "xid"]
    assert (at[1] or 0) - (at[0] or 0) == 8001 * SECOND


def test_each_reset_that_a_driver_tells_of_is_an_event_of_its_own() -> None:
    said = "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from {} to {}"
    nvidia = f"[1.0] {said.format('0x0 (None)', '0x1 (GPU Reset Required)')}\n[9.0] {said.format('0x1 (GPU Reset Required)', '0x0 (None)')}"
    amd = "[1.0] amdgpu 0000:65:00.0: amdgpu: GPU reset begin!\n[2.0] amdgpu 0000:65:00.0: amdgpu: GPU reset(1) {}"
    told = {}
    for text in (nvidia, amd.format("succeeded!"), amd.format("failed")):
        found = derive(parse(lines_of(text), Context(source="kern.log")))
        told[text] = [(str(o.subject), o.source.line) for o in derive(found) if o.fact == "gpu_reset"]
    assert list(told.values()) == [[("gpu 0000:3b:00.0", 2)], [("gpu 0000:65:00.0", 1)], []]
