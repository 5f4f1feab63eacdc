"""Sets of intervals as two sorted int64 arrays (start, end), half open, in nanoseconds.

All functions are exact and vectorised: n log n in the number of intervals, no loop in Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probes.trace.columns import I64

_NONE: I64 = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """Disjoint, non-touching, ascending intervals [start, end)."""

    start: I64
    end: I64

    @property
    def total(self) -> int:
        """Their length together, ns."""
        return int((self.end - self.start).sum())


NOTHING = Intervals(_NONE, _NONE)


def union(start: I64, end: I64) -> Intervals:
    """The union of intervals in any order; empty ones (end <= start) vanish."""
    keep = end > start
    if not keep.all():
        start, end = start[keep], end[keep]
    if not len(start):
        return NOTHING
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.empty(len(start), np.bool_)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])  # touching intervals are one
    heads = np.flatnonzero(first)
    return Intervals(start[heads], reach[np.append(heads[1:] - 1, len(start) - 1)])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What is in both.

    No point lies in more than two of the intervals, so of all starts and all ends in order the i-th end and the
    (i+1)-th start bound a part that is in both, whenever that start comes first.
    """
    if not len(a.start) or not len(b.start):
        return NOTHING
    start = np.sort(np.concatenate([a.start, b.start]), kind="stable")[1:]  # two ascending runs: merged in linear time
    end = np.sort(np.concatenate([a.end, b.end]), kind="stable")[:-1]
    both = start < end
    return Intervals(start[both], end[both])


def complement(a: Intervals, start: int, end: int) -> Intervals:
    """What of [start, end) is not in `a`."""
    a = clip(a, start, end)
    low = np.concatenate([np.array([start], np.int64), a.end])
    high = np.concatenate([a.start, np.array([end], np.int64)])
    keep = high > low
    return Intervals(low[keep], high[keep])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What is in `a` and not in `b`."""
    if not len(a.start) or not len(b.start):
        return a
    return intersect(a, complement(b, int(a.start[0]), int(a.end[-1])))


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """What of `a` is in [start, end)."""
    low, high = np.maximum(a.start, start), np.minimum(a.end, end)
    keep = high > low
    return Intervals(low[keep], high[keep])


def covered(a: Intervals, points: I64) -> I64:
    """For each point the length of `a` before it, ns. Differences of two points are overlaps: an exact prefix sum."""
    if not len(a.start):
        return np.zeros(len(points), np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(a.end - a.start)])
    at = np.searchsorted(a.start, points, side="right")
    last = np.maximum(at - 1, 0)
    over = np.where(at > 0, np.maximum(a.end[last] - points, 0), 0)
    return before[at] - over


def overlap(a: Intervals, start: I64, end: I64) -> I64:
    """For each of the intervals [start, end) how much of it is in `a`, ns."""
    return covered(a, end) - covered(a, start)
