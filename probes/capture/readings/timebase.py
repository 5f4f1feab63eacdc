"""One time base for all parts of a capture: CLOCK_MONOTONIC of the machine, in ns.

Samplers and stacks use it as it is. Realtime (profiler traces, the driver's samples) is mapped through pairs of clocks that
were read together at both ends of the window: by the straight line between them, since NTP slews the one against the
other; where it was set in between, nobody knows when, and the error says so.

Joins are functions of plain arrays: `at` ascending, values with NaN for what is missing, windows as rows of begin and end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knowledge.record import dataclass

Times = NDArray[np.int64]
Values = NDArray[np.float64]
Windows = NDArray[np.int64]  # rows of begin and end

SLEW = 500e-6  # the kernel slews its clock by at most 500 ppm (adjtimex); what is more was a step
# What kineto's own clock may be off against realtime: it reads the time stamp counter and converts it by pairs that it
# measures itself. Seen with torch 2.13 on x86-64: each of 350 events lay within the Python call that made it, 140 us long.
KINETO_ERROR = 100_000


@dataclass(frozen=True, slots=True)
class Pair:
    """The clocks at one moment, ns."""

    realtime: int
    monotonic: int
    boottime: int
    error: int = 0  # half of what reading them took


@dataclass(frozen=True, slots=True)
class Base:
    """Clocks at both ends of a window."""

    first: Pair
    last: Pair

    @property
    def span(self) -> int:
        """Between the two, ns."""
        return self.last.monotonic - self.first.monotonic

    @property
    def drift(self) -> int:
        """How much realtime gained on monotonic between the two, ns."""
        return (self.last.realtime - self.first.realtime) - self.span

    @property
    def stepped(self) -> bool:
        """Realtime was set in between: more than slewing can do."""
        return abs(self.drift) > SLEW * max(self.span, 0) + self.first.error + self.last.error + 1000

    @property
    def slept(self) -> int:
        """How long the machine was suspended in between, ns."""
        gained = (self.last.boottime - self.first.boottime) - self.span
        return gained if gained > self.first.error + self.last.error + 1000 else 0

    @property
    def error(self) -> int:
        """At most so far off is a mapped realtime, ns."""
        return max(self.first.error, self.last.error) + (abs(self.drift) if self.stepped else 0)

    def from_realtime(self, times: ArrayLike) -> Times:
        """Monotonic for realtime, ns; within `error`."""
        real = np.asarray(times, np.int64)
        gone = real - self.first.realtime
        length = self.last.realtime - self.first.realtime
        if length <= 0 or self.stepped:
            return np.asarray(gone + self.first.monotonic, np.int64)
        correction = np.rint(gone.astype(np.float64) * (self.drift / length)).astype(np.int64)
        return np.asarray(gone + self.first.monotonic - correction, np.int64)

    def from_boottime(self, times: ArrayLike) -> Times:
        """Monotonic for times since boot (field 22 of /proc/PID/stat, in ns), as of the window's begin."""
        return np.asarray(times, np.int64) - (self.first.boottime - self.first.monotonic)

    def from_trace(self, times: ArrayLike, base_ns: int) -> tuple[Times, int]:
        """Monotonic for times of a profiler's trace, ns, and the error.

        `base_ns` is the trace's ``baseTimeNanoseconds`` (`probes.trace.reading.reader.Trace.base_ns`): what to add to its
        times for realtime.
        """
        return self.from_realtime(np.asarray(times, np.int64) + base_ns), self.error + KINETO_ERROR


def pair() -> Pair:
    """The clocks now: the tightest of five tries."""
    best: Pair | None = None
    for _ in range(5):
        before = time.monotonic_ns()
        real, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        after = time.monotonic_ns()
        error = (after - before + 1) // 2
        if best is None or error < best.error:
            best = Pair(real, (before + after) // 2, boot, error)
    assert best is not None
    return best


def base(clocks: object) -> Base | None:
    """From `clocks` of a document: two of ``{"realtime", "monotonic", "boottime"[, "error"]}``; None when they are not."""
    if not isinstance(clocks, Sequence) or len(clocks) < 2:
        return None
    ends = [_pair(clocks[0]), _pair(clocks[-1])]
    return Base(ends[0], ends[1]) if ends[0] and ends[1] and ends[1].monotonic >= ends[0].monotonic else None


def _pair(read: object) -> Pair | None:
    if not isinstance(read, Mapping):
        return None
    values = [read.get(name, 0 if name == "error" else None) for name in ("realtime", "monotonic", "boottime", "error")]
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 62 for v in values):
        return None
    return Pair(*values)


# --- joins --------------------------------------------------------------------------------


def column(values: object, count: int | None = None) -> Values:
    """A series of a document as floats, NaN for what is missing; all NaN where it could not be read at all."""
    if not isinstance(values, list):
        return np.full(count or 0, np.nan)
    plain = [v if isinstance(v, int | float) and not isinstance(v, bool) else np.nan for v in values]
    found = np.array(plain, np.float64)
    if count is None or len(found) == count:
        return found
    return np.concatenate([found[:count], np.full(max(count - len(found), 0), np.nan)])


def times(values: object) -> Times:
    """Times of a document; empty when they are none, or go backwards."""
    if not isinstance(values, list) or not all(isinstance(v, int) and 0 <= v < 1 << 62 for v in values):
        return np.zeros(0, np.int64)
    found = np.array(values, np.int64)
    return found if np.all(np.diff(found) >= 0) else np.zeros(0, np.int64)


def windows(ends: ArrayLike) -> Windows:
    """Iterations as windows, from the times at which each ended: one less than there are ends."""
    found = np.asarray(ends, np.int64).ravel()
    return np.stack([found[:-1], found[1:]], axis=1) if len(found) > 1 else np.zeros((0, 2), np.int64)


def slowest(ends: ArrayLike) -> int | None:
    """The number of the longest iteration in `windows(ends)`; None when there is none."""
    found = windows(ends)
    return int(np.argmax(found[:, 1] - found[:, 0])) if len(found) else None


def means(at: ArrayLike, values: Any, spans: ArrayLike) -> Values:
    """Mean of a gauge within each window: each value holds until the next one is read. NaN where none was known."""
    when, known = _known(at, values)
    wanted = _spans(spans)
    if not len(when):
        return np.full(len(wanted), np.nan)
    origin = when[0]
    steps = np.append(np.diff(when).astype(np.float64), 0.0) * known
    area = np.concatenate([[0.0], np.cumsum(steps)])[: len(when)]

    def until(moments: Times) -> Values:
        index = np.clip(np.searchsorted(when, moments, side="right") - 1, 0, len(when) - 1)
        return np.asarray(area[index] + known[index] * (moments - when[index]).astype(np.float64))

    begin, end = np.maximum(wanted[:, 0], origin), np.maximum(wanted[:, 1], origin)
    length = (end - begin).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(length > 0, (until(end) - until(begin)) / length, np.nan)
    low, high = float(known.min()), float(known.max())
    return np.asarray(np.clip(found, low, high))  # rounding must not leave what was read


def increments(at: ArrayLike, counter: Any, spans: ArrayLike) -> Values:
    """How much a cumulative counter grew within each window, by the straight line between two readings.

    A counter that fell was reset, and counts from 0 again. NaN for windows that the readings do not cover at all; of one
    that they cover in part, what is covered.
    """
    when, known = _known(at, counter)
    wanted = _spans(spans)
    if len(when) < 2:
        return np.full(len(wanted), np.nan)
    steps = np.diff(known)
    grown = np.concatenate([[0.0], np.cumsum(np.where(steps >= 0, steps, known[1:]))])
    axis = (when - when[0]).astype(np.float64)
    moments = np.clip((wanted - when[0]).astype(np.float64), 0.0, axis[-1])
    found = np.interp(moments[:, 1], axis, grown) - np.interp(moments[:, 0], axis, grown)
    seen = (wanted[:, 1] > when[0]) & (wanted[:, 0] < when[-1])
    return np.asarray(np.where(seen, np.maximum(found, 0.0), np.nan))


def covered(at: ArrayLike, counter: Any, spans: ArrayLike) -> Values:
    """How much of each window the readings cover, ns."""
    when, _ = _known(at, counter)
    wanted = _spans(spans)
    if len(when) < 2:
        return np.zeros(len(wanted))
    begin, end = np.clip(wanted[:, 0], when[0], when[-1]), np.clip(wanted[:, 1], when[0], when[-1])
    return np.asarray(np.maximum(end - begin, 0), np.float64)


def rates(at: ArrayLike, counter: Any, spans: ArrayLike) -> Values:
    """`increments` a second of what is covered; NaN where nothing is."""
    length = covered(at, counter, spans)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(length > 0, increments(at, counter, spans) * 1e9 / length, np.nan))


def _known(at: ArrayLike, values: Any) -> tuple[Times, Values]:
    """The times at which a value was read, and the values."""
    when = np.asarray(at, np.int64).ravel()
    found = column(values) if isinstance(values, list) else np.asarray(values, np.float64).ravel()
    count = min(len(when), len(found))
    keep = np.isfinite(found[:count])
    return when[:count][keep], found[:count][keep]


def _spans(spans: ArrayLike) -> Windows:
    return np.asarray(spans, np.int64).reshape(-1, 2)
