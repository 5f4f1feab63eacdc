"""Boots, loads of the driver, and wall clocks that were set: what divides the time of a log.

A boot is told by a line (``Linux version``, ``-- Boot ... --``), by the journal's id of it, or by seconds since the boot
that start over. One that is announced twice is one. Where the order of the lines is not the order of their times, or a
syslog daemon printed the ring buffer once more, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from knowledge.observation import Clock
from knowledge.record import dataclass
from probes.parse._kernel_common import LOADING, Reading, from_kernel, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

# Linux version 5.15.0-91-generic (buildd@lcy02) (gcc ...) #101-Ubuntu SMP ...
_VERSION = r"Linux version (\S{1,120})"
_WALL = (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS)
_SLEPT = ("PM: suspend", "ACPI: PM: Waking")  # the seconds since the boot stand still meanwhile
SLACK = 5 * SECOND  # lines of several CPUs may be printed this far out of order
# Wall clock and seconds since the boot may part by this much without anybody setting a clock: a syslog daemon stamps
# what the kernel said before it was up, and booting takes minutes; beyond that a clock drifts by less than 1 in 1000.
JUMP = 300 * SECOND
DRIFT = 1000
# Seconds that start over prove a boot, where there is no wall clock beside them, only at its very beginning.
EARLY = 60 * SECOND
_SAME = 100  # lines within which a second announcement means the same boot


def straighten(entries: Iterable[Entry]) -> None:
    """Give lines ahead of a jump of the wall clock the times that the clock behind it would have shown.

    The seconds since the boot cannot be set. Within one boot of one host they say how far apart two lines are.
    """
    hosts: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.at is not None and entry.clock in _WALL:
            hosts.setdefault(entry.host, []).append(entry)
    for own in hosts.values():
        steps = _steps(own)
        for entry, shift in zip(own, accumulate(steps), strict=False):
            entry.at = (entry.at or 0) + shift


def _steps(own: Sequence[Entry]) -> list[int]:
    """By how much more each line is to be moved than the one before it, in ns."""
    steps = [0] * (len(own) + 1)
    begun, last, slept = 0, None, False
    for i, entry in enumerate(own):
        ticks = entry.ticks
        slept = slept or entry.message.startswith(_SLEPT)
        if entry.boots or (ticks is not None and last is not None and ticks + SLACK < (last.ticks or 0)):
            begun, last, slept = i, None, False
        if ticks is None:
            continue
        if last is not None and (jump := _jump(last, entry, slept)):
            steps[begun] += jump
            steps[i] -= jump
        last, slept = entry, False
    return steps


def _jump(last: Entry, entry: Entry, slept: bool) -> int:
    """By how much the wall clock was set between two lines of one boot, in ns."""
    if last.clock is not entry.clock:
        return 0
    wall, ticks = (entry.at or 0) - (last.at or 0), (entry.ticks or 0) - (last.ticks or 0)
    jump = wall - ticks
    if ticks <= 0 < wall:  # seconds that stand still tell of no clock
        return 0
    if abs(jump) <= max(JUMP, ticks // DRIFT):
        return 0
    # Lines of a ring buffer that was printed once more stand at one time; only a clock that goes back was set back.
    return jump if (wall < 0 if jump < 0 else not slept) else 0


@dataclass(slots=True)
class _Boot:
    """One boot: the line that announces it, and what tells of it."""

    entry: Entry
    host: str
    version: str = ""
    by_seconds: bool = False  # seconds that start over, with no wall clock beside them, are all that tells of it
    repeated: bool = False  # its seconds pass faster than its wall clock: old lines, printed once more


@dataclass(slots=True)
class _Run:
    """The boot of one host that is being read."""

    top: int = 0  # the most seconds since the boot so far, in ns
    boot_id: str = ""
    last: Entry | None = None  # the last line with a time
    boot: _Boot | None = None


def read(reading: Reading) -> None:
    """Boots, and loads of NVIDIA's driver."""
    for entry in reading.entries:
        if "NVRM: loading" in entry.message and from_kernel(entry) and (found := rx(LOADING).search(entry.message)):
            reading.event("driver_loaded", reading.node(entry), entry, {"version": found[1]})
    if reading.backwards:
        return
    found_ = _boots(reading)
    guessed = [b for b in found_ if b.by_seconds]
    for boot in found_:
        # Seconds that start over again and again may be those of several machines whose names are lost.
        if not boot.repeated and not (boot.by_seconds and len(guessed) > 1):
            reading.event("boot", reading.node(boot.entry), boot.entry, {"version": boot.version})


def _boots(reading: Reading) -> list[_Boot]:
    boots: list[_Boot] = []
    runs: dict[str, _Run] = {}
    mark: Entry | None = None
    for entry in reading.entries:
        if entry.boots and entry.stamp is None and entry.message.startswith("-- "):
            mark = entry
            continue
        run = runs.setdefault(reading.host(entry), _Run())
        boot = _announced(reading, run, entry, mark)
        if boot is not None:
            run.boot, run.top = boot, 0
            boots.append(boot)
        elif entry.boots and run.boot is not None and (found := rx(_VERSION).match(entry.message)):
            run.boot.version = found[1]
        mark = mark if boot is None and entry.stamp is None else None
        _follow(run, entry)
    return boots


def _announced(reading: Reading, run: _Run, entry: Entry, mark: Entry | None) -> _Boot | None:
    """The boot that `entry` is the first line of; None when it goes on with what was there."""
    host = reading.host(entry)
    if entry.boots:
        if mark is None and _same(run.boot, entry):
            return None
        found = rx(_VERSION).match(entry.message)
        return _Boot(entry, host, found[1] if found else "")
    if mark is not None and entry.stamp is not None:
        return _Boot(_placed(mark, entry, run.last), host)
    if entry.boot_id and run.boot_id and entry.boot_id != run.boot_id:
        return _Boot(_placed(entry, entry, run.last), host)
    if entry.ticks is not None and entry.ticks + SLACK < run.top:
        if entry.clock is Clock.BOOT:
            return _Boot(entry, host, by_seconds=True) if entry.ticks < EARLY else None
        return _Boot(entry, host) if _started_since(run.last, entry) else None
    return None


def _same(boot: _Boot | None, entry: Entry) -> bool:
    """Whether a line that names the kernel belongs to a boot that was told of just before, without its name."""
    near = boot is not None and entry.number - boot.entry.number <= _SAME
    return near and boot is not None and not boot.version and within(boot.entry, entry, EARLY)


def _placed(line: Entry, first: Entry, last: Entry | None) -> Entry:
    """`line` at the time of the first line of its boot; without a time where that is not later than what stands before."""
    later = last is None or (last.clock is first.clock and (last.at or 0) <= (first.at or 0) + SLACK)
    return replace(line, at=first.at if later else None, clock=first.clock if later else Clock.NONE, host=first.host)


def _started_since(last: Entry | None, entry: Entry) -> bool:
    """Whether the boot that `entry` counts its seconds from lies behind the line before."""
    if last is None or last.at is None or entry.at is None or last.clock is not entry.clock:
        return False
    return entry.at - (entry.ticks or 0) + SLACK >= last.at


def _follow(run: _Run, entry: Entry) -> None:
    """Go on behind `entry`."""
    run.boot_id = entry.boot_id or run.boot_id
    if entry.ticks is not None:
        run.top = max(run.top, entry.ticks)
    if entry.at is None:
        return
    run.last, boot = entry, run.boot
    if boot is not None and entry.ticks is not None and entry.clock in _WALL and boot.entry.clock is entry.clock:
        passed = entry.at - (boot.entry.at or 0)
        boot.repeated = boot.repeated or entry.ticks - (boot.entry.ticks or 0) > passed + max(JUMP, passed // DRIFT)
