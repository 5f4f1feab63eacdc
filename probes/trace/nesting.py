"""Which interval of a thread stands in which: parents, depths and self times, without a loop over events.

Intervals are in the tables' order (start, longer first among equals), several threads one behind the other.
Partial overlaps are understood as a stack does: what begins within another is its child, even when it ends later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probes.trace.columns import I64, Mask

NO_PARENT = -1


def parents_of(start: I64, end: I64, first: Mask | None = None) -> I64:
    """For each interval the row of the innermost earlier one that is still open when it begins; -1 at the top.

    `start` and `end` in ns, in order of start and longer first among equals; `first` marks the rows at which
    another thread begins (none: one thread). An interval is open up to its end, excluded; for an empty interval,
    included. So the parent of j is the last i < j with end[i] > start[j] (>= when j is empty).

    All rows jump at once from candidate to candidate's candidate: what a candidate has passed has ended for all
    behind it as well. n log n at worst, about linear for real call stacks.
    """
    n = len(start)
    found: NDArray[np.int32] = np.arange(-1, n - 1, dtype=np.int32)
    if not n:
        return found.astype(np.int64)
    heads = np.array([0]) if first is None else np.union1d([0], np.flatnonzero(first))
    need = start + (end > start)
    found[_tops(need, end, heads)] = NO_PARENT
    rows = np.flatnonzero(found >= 0).astype(np.int32)
    rows = rows[end[rows - 1] < need[rows]]
    while len(rows):
        further = found[found[rows]]
        found[rows] = further
        # a row never passes its thread's beginning: the rows without a parent are known, and one of them is before it
        rows = rows[end[further] < need[rows]]
    return found.astype(np.int64)


def _tops(need: I64, end: I64, heads: I64) -> Mask:
    """Rows that begin when all earlier ones of their thread have ended."""
    top = np.zeros(len(need), np.bool_)
    for low, high in zip(heads.tolist(), [*heads[1:].tolist(), len(need)], strict=True):
        reach = np.maximum.accumulate(end[low:high])
        top[low] = True
        np.less(reach[:-1], need[low + 1 : high], out=top[low + 1 : high])
    return top


def callers_of(end: I64, parent: I64, slack: int = 2000) -> I64:
    """`parent`, but of what outlives its parent by more than `slack` ns the innermost ancestor that it does not outlive.

    What a frame calls ends before it does; a range (``ProfilerStep``) that begins within a call and outlives it is
    not called by it. Two microseconds are what rounding to whole ones makes of one (older traces).
    """
    found = parent.copy()
    rows = np.flatnonzero(parent >= 0)
    rows = rows[end[rows] > end[parent[rows]] + slack]
    while len(rows):
        found[rows] = parent[found[rows]]
        rows = rows[found[rows] >= 0]
        rows = rows[end[rows] > end[found[rows]] + slack]
    return found


def depths(parent: I64) -> NDArray[np.int32]:
    """How many ancestors each row has. `parent` may point anywhere as long as nothing is its own ancestor."""
    up = parent.astype(np.int32)
    found = (up >= 0).astype(np.int32)
    rows = np.flatnonzero(up >= 0).astype(np.int32)
    while len(rows):  # after k rounds: the depth within the last 2**k ancestors
        at = up[rows]
        step, further = found[at], up[at]
        found[rows] += step
        up[rows] = further
        rows = rows[further >= 0]
    return found


def reaches(end: I64, parent: I64) -> I64:
    """The end of each row or of what stands in it, whichever is later, ns. `end` itself for clean nesting."""
    found = end
    rows = np.flatnonzero(parent >= 0)
    rows = rows[end[rows] > end[parent[rows]]]
    while len(rows):  # up the parents, until they are no longer outlived
        if found is end:
            found = end.copy()
        above = np.unique(parent[rows])
        np.maximum.at(found, parent[rows], found[rows])
        rows = above[parent[above] >= 0]
        rows = rows[found[rows] > found[parent[rows]]]
    return found


def self_times(start: I64, end: I64, parent: I64, reach: I64) -> I64:
    """Time of each row in which nothing within it was open, ns; together the union of all rows, exactly."""
    found = end - start
    inner = np.flatnonzero(parent >= 0)
    above = parent[inner]
    np.subtract.at(found, above, np.minimum(reach[inner], end[above]) - start[inner])
    return found
