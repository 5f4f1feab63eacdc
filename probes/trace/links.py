"""Which call launched which kernel, and in which operator: the joins that every analysis needs, made once.

All results are row numbers into the trace's tables (int64, -1: none), computed when first asked for.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from probes.trace.columns import ABSENT, I64, Cat, Group, Mask, Table
from probes.trace.reader import Trace

_NONE = np.int64(-1)


class Links:
    """Joins over one trace. Needs ``correlation`` of GPU and RUNTIME; the rest as each property says."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def launch(self) -> I64:
        """For each GPU row its runtime row: the call of the same correlation id, the last one that starts before it."""
        gpu, runtime = self.trace.gpu, self.trace[Group.RUNTIME]
        return matching(gpu.ints("correlation"), runtime.ints("correlation"))

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
    for key in np.unique(inner_key):
        ins, outs = np.flatnonzero(inner_key == key), np.flatnonzero(outer_key == key)
        if len(outs):
            found[ins] = _innermost(inner.start[ins], outer.start[outs], outer.end[outs], outs)
    return found


def parents(table: Table) -> I64:
    """For each row of `table` the innermost other row of its thread that contains it; -1 at the top."""
    found = np.full(len(table), _NONE)
    key, _ = _threads(table, table)
    for one in np.unique(key):
        rows = np.flatnonzero(key == one)
        found[rows] = _nesting(table.start[rows], table.end[rows], rows)
    return found


def _threads(a: Table, b: Table) -> tuple[I64, I64]:
    """One number for each (pid, tid), the same in both tables."""
    return a.ids("pid").astype(np.int64) << 32 | a.ids("tid"), b.ids("pid").astype(np.int64) << 32 | b.ids("tid")


def _nesting(start: I64, end: I64, rows: I64) -> I64:
    """Parents among intervals in order of start, longer first among equals."""
    found = np.full(len(start), _NONE)
    stack: list[tuple[int, int]] = []
    for i, (low, high) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while stack and stack[-1][0] <= low and not (stack[-1][0] == low == high):
            stack.pop()
        if stack:
            found[i] = stack[-1][1]
        stack.append((high, int(rows[i])))
    return found


def _innermost(points: I64, start: I64, end: I64, rows: I64) -> I64:
    """For each point the last interval that began at or before it and is still open."""
    found = np.full(len(points), _NONE)
    nest = _nesting(start, end, np.arange(len(start)))
    at = np.searchsorted(start, points, side="right") - 1
    here = at.copy()
    open_ = here >= 0
    while open_.any():  # up the parents until one is still open: as many rounds as operators nest
        which = np.flatnonzero(open_)
        row = here[which]
        inside = points[which] < end[row]
        found[which[inside]] = rows[row[inside]]
        here[which[~inside]] = nest[row[~inside]]
        open_[which[inside]] = False
        open_[which[~inside]] = here[which[~inside]] >= 0
    return found
