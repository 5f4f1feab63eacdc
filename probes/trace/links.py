"""Which call launched which kernel, and in which operator: the joins that every analysis needs, made once.

All results are row numbers into the trace's tables (int64, -1: none), computed when first asked for.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from probes.trace.columns import ABSENT, I64, Cat, Group, Mask, Table
from probes.trace.nesting import parents_of
from probes.trace.reader import Trace

_NONE = np.int64(-1)


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
            found[ins] = _innermost(inner.start[ins], outer.start[outs], outer.end[outs], outs)
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


def groups(key: I64) -> list[I64]:
    """The rows of each value of `key`, in order of rows: one sort, whatever the number of values."""
    if not len(key):
        return []
    if key[0] == key[-1] and (key == key[0]).all():
        return [np.arange(len(key))]
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _threads(a: Table, b: Table) -> tuple[I64, I64]:
    """One number for each (pid, tid), the same in both tables."""
    return a.ids("pid").astype(np.int64) << 32 | a.ids("tid"), b.ids("pid").astype(np.int64) << 32 | b.ids("tid")


def _innermost(points: I64, start: I64, end: I64, rows: I64) -> I64:
    """For each point the last interval that began at or before it and is still open."""
    found = np.full(len(points), _NONE)
    nest = parents_of(start, end)
    here = np.searchsorted(start, points, side="right") - 1
    which = np.flatnonzero(here >= 0)
    while len(which):  # up the parents until one is still open: as many rounds as operators nest
        row = here[which]
        inside = points[which] < end[row]
        found[which[inside]] = rows[row[inside]]
        which, row = which[~inside], row[~inside]
        here[which] = nest[row]
        which = which[nest[row] >= 0]
    return found
