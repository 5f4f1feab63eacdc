"""Which call launched which kernel, and in which operator: the joins that every analysis needs, made once.

All results are row numbers into the trace's tables (int64, -1: none), computed when first asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from probes.trace.columns import ABSENT, I32, I64, Cat, Group, Mask, Table
from probes.trace.nesting import parents_of
from probes.trace.reading.reader import Trace

_NONE = np.int64(-1)
_PORTION: Final = 1 << 18  # rows that are looked at together: what is made on the way stays small


class Links:
    """Joins over one trace. Needs ``correlation`` of GPU and RUNTIME; the rest as each property says."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def launch(self) -> I64:
        """For each GPU row its runtime row: the call of the same correlation id; of several (an id is used again, the
        traces of several processes were merged) the last one that starts before it."""
        gpu, runtime = self.trace.gpu, self.trace[Group.RUNTIME]
        return latest(gpu.ints("correlation"), gpu.start, runtime.ints("correlation"), runtime.start)

    @cached_property
    def first_of_call(self) -> Mask:
        """GPU rows that are the first of their call's: all but the later kernels of a graph replay. Rows without a
        known call count as first."""
        launch = self.launch
        first = np.ones(len(launch), np.bool_)
        known = np.flatnonzero(launch >= 0)
        seen = np.full(len(self.trace[Group.RUNTIME]), np.iinfo(np.int64).max)
        np.minimum.at(seen, launch[known], known)  # the tables are in order of start
        first[known] = seen[launch[known]] == known
        return first

    @cached_property
    def launch_op(self) -> I64:
        """For each runtime row the innermost operator that contains it on its thread. Needs OP."""
        self.trace.let_go()  # of all joins the one that takes the most memory
        return enclosing(self.trace[Group.RUNTIME], self.trace[Group.OP])

    @cached_property
    def op(self) -> I64:
        """For each GPU row the innermost operator that launched it: where its call stands, else by external id
        (``external`` of GPU and OP), which names an operator even when the call was not recorded."""
        launch = self.launch
        found = np.where(launch >= 0, self.launch_op[np.maximum(launch, 0)] if len(self.launch_op) else _NONE, _NONE)
        gpu, ops = self.trace.gpu, self.trace[Group.OP]
        if "external" in gpu and "external" in ops:
            by_id = matching(gpu.ints("external"), ops.ints("external"))
            found = np.where(found >= 0, found, by_id)
        return found

    @cached_property
    def kernels(self) -> Mask:
        """GPU rows that are kernels, not copies or sets."""
        return np.equal(self.trace.gpu.cat, Cat.KERNEL)


def matching(keys: I64, among: I64) -> I64:
    """For each of `keys` the row of `among` that holds it, the last if several do; -1 for none or ABSENT."""
    if not len(among):
        return np.full(len(keys), _NONE)
    order = np.argsort(among, kind="stable")
    values = among[order]
    at = np.searchsorted(values, keys, side="right") - 1
    row = np.maximum(at, 0)
    hit = (at >= 0) & (values[row] == keys) & (keys != ABSENT)
    return np.where(hit, order[row], _NONE)


def enclosing(inner: Table, outer: Table) -> I64:
    """For each row of `inner` the innermost row of `outer` of the same pid and tid that contains its start; -1 for none.

    Linear in both after the tables' own order: one stack a thread, in a vectorised form (`parents`).
    """
    found = np.full(len(inner), _NONE)
    if not len(outer):
        return found
    inner_key, outer_key = _threads(inner, outer)
    outer_rows = {int(outer_key[rows[0]]): rows for rows in groups(outer_key)}
    for ins in groups(inner_key):
        outs = outer_rows.get(int(inner_key[ins[0]]))
        if outs is not None:
            found[ins] = _innermost(inner.start[ins], outer, outs)
    return found


def latest(keys: I64, at: I64, among: I64, start: I64) -> I64:
    """`matching`, but of several rows of `among` with one key the last whose `start` is not behind `at`; the first, if
    all start later (clocks that disagree). `start` ascends."""
    if not len(among):
        return np.full(len(keys), _NONE)
    order = np.argsort(among, kind="stable")
    values = among[order]
    low, high = np.searchsorted(values, keys, side="left"), np.searchsorted(values, keys, side="right") - 1
    # 0 is no correlation id of CUPTI's; where a single call bears it, the writer counts from 0
    hit = (high >= low) & (keys != ABSENT) & ((keys != 0) | (high == low))
    found = np.where(hit, order[np.maximum(high, 0)], _NONE)
    again = np.flatnonzero(hit & (high > low))
    low, high = low[again], high[again]
    while (low < high).any():  # halving: a key's rows stand in order of start
        middle = (low + high + 1) // 2
        before = start[order[middle]] <= at[again]
        low, high = np.where(before, middle, low), np.where(before, high, middle - 1)
    found[again] = order[low]
    return found


def parents(table: Table) -> I64:
    """For each row of `table` the innermost other row of its thread that contains it; -1 at the top."""
    found = np.full(len(table), _NONE)
    key, _ = _threads(table, table)
    end = table.end
    for rows in groups(key):
        up = parents_of(table.start[rows], end[rows])
        found[rows] = np.where(up >= 0, rows[np.maximum(up, 0)], _NONE)
    return found


def groups(key: I64 | I32) -> list[I64]:
    """The rows of each value of `key`, in order of rows: one sort, whatever the number of values."""
    if not len(key):
        return []
    heads = np.flatnonzero(key[1:] != key[:-1]) + 1
    if not len(heads):
        return [np.arange(len(key))]
    if len(heads) * 4 < len(key):  # long runs, as of threads: sorted by numbers that are small enough to be counted
        values, which = np.unique(key[np.append(0, heads)], return_inverse=True)
        if len(values) <= 1 << 16:
            small = np.repeat(which.astype(np.uint16), np.diff(heads, prepend=0, append=len(key)))
            return np.split(np.argsort(small, kind="stable"), np.cumsum(np.bincount(small))[:-1])
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _threads(a: Table, b: Table) -> tuple[I32, I32]:
    """One number for each (pid, tid), the same in both tables. By runs: what follows one another is mostly of one thread."""
    parts = []
    for pid, tid in ((t.ids("pid"), t.ids("tid")) for t in (a, b)):
        heads = np.flatnonzero((pid[1:] != pid[:-1]) | (tid[1:] != tid[:-1])) + 1
        heads = np.append(0, heads) if len(pid) else heads
        parts.append((pid[heads].astype(np.int64) << 32 | tid[heads], np.diff(heads, append=len(pid))))
    (one, first), (two, second) = parts
    which = np.unique(np.concatenate([one, two]), return_inverse=True)[1].astype(np.int32)
    return np.repeat(which[: len(one)], first), np.repeat(which[len(one) :], second)


def holding(points: I64, table: Table, rows: I64 | None = None) -> I64:
    """Which of `rows` (all) hold any of `points`, whatever their thread: row numbers in order."""
    points = points if (points[1:] >= points[:-1]).all() else np.sort(points)
    behind = np.append(points, np.iinfo(np.int64).max)
    found = []
    for low in range(0, len(table) if rows is None else len(rows), _PORTION):
        part = np.arange(low, min(low + _PORTION, len(table))) if rows is None else rows[low : low + _PORTION]
        start = table.start[part]
        found.append(part[behind[np.searchsorted(points, start)] < start + table.dur[part]])
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _innermost(points: I64, outer: Table, rows: I64) -> I64:
    """For each point the last of `rows` (of one thread) that began at or before it and is still open.

    Most operators hold no launch and can enclose nothing: without them there is little left to nest.
    """
    rows = holding(points, outer, rows)
    start = outer.start[rows]
    end = start + outer.dur[rows]
    nest = parents_of(start, end)
    parts = [_open_at(points[i : i + _PORTION], start, end, nest) for i in range(0, len(points), _PORTION)]
    found = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return np.where(found >= 0, rows[found], _NONE) if len(rows) else found


def _open_at(points: I64, start: I64, end: I64, nest: I64) -> I64:
    found = np.full(len(points), _NONE)
    here = np.searchsorted(start, points, side="right") - 1
    which = np.flatnonzero(here >= 0)
    while len(which):  # up the parents until one is still open: as many rounds as operators nest
        row = here[which]
        inside = points[which] < end[row]
        found[which[inside]] = row[inside]
        which, row = which[~inside], row[~inside]
        here[which] = nest[row]
        which = which[nest[row] >= 0]
    return found
