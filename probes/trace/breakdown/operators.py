"""Operators of the framework by host time and by the device time of what they launched."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from probes.trace.columns import I64, Group, Mask, Table, wanted
from probes.trace.groups import combined, size_of
from probes.trace.links import Links, parents
from probes.trace.model import OpStat, Window
from probes.trace.nesting import depths
from probes.trace.reading.reader import Trace
from probes.trace.windows import starts_in

NEEDS: Final = wanted(gpu="correlation external", runtime="correlation", op="external dims")


class _Costs(NamedTuple):
    """Of each operator, ns and numbers."""

    own: I64  # host time without the operators it calls
    gpu: I64  # device time it launched itself
    gpu_total: I64  # and what it calls
    kernels: I64


def compact(shapes: str) -> str:
    """Shapes as one short line, however the file was indented."""
    return re.sub(r"\s+", "", shapes).replace(",", ", ")


def op_stats(
    trace: Trace, by: str = "name", window: Window | None = None, top: int | None = None
) -> tuple[OpStat, ...]:
    """Statistics of operators, the one with the most device time of its own first, then by host time of its own.

    Counted is what starts within the window: operators on the host, kernels, copies and sets on the device; one whose
    kernels alone lie in the window has a count of 0. `by`: name or shape (name and shapes). ValueError for another.
    Inclusive times count the outermost of nested occurrences of the same key only. Needs `NEEDS`.
    """
    if by not in ("name", "shape"):
        raise ValueError(f"no statistics of operators by {by!r}: one of name, shape")
    ops = trace[Group.OP]
    if not len(ops):
        return ()
    up = parents(ops)
    levels = _levels(up)
    costs = _costs(trace, ops, up, levels, window)
    key = ops.name.astype(np.int64)
    if by == "shape":
        key = combined(key, ops.ids("dims").astype(np.int64))
    return _collect(trace, ops, key, _outermost(key, up), costs, starts_in(ops, window), top, by == "shape", window)


def _levels(up: I64) -> list[I64]:
    """The rows of each depth, outermost first."""
    depth = depths(up)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _costs(trace: Trace, ops: Table, up: I64, levels: list[I64], window: Window | None) -> _Costs:
    own = ops.dur.copy()
    inner = np.flatnonzero(up >= 0)
    end = ops.end
    np.subtract.at(own, up[inner], np.minimum(end[inner], end[up[inner]]) - ops.start[inner])
    gpu, kernels = np.zeros(len(ops), np.int64), np.zeros(len(ops), np.int64)
    op = Links(trace).op
    rows = np.flatnonzero((op >= 0) & starts_in(trace.gpu, window)) if len(trace.gpu) else np.empty(0, np.int64)
    np.add.at(gpu, op[rows], trace.gpu.dur[rows])
    np.add.at(kernels, op[rows], 1)
    total = gpu.copy()
    for level in reversed(levels[1:]):
        np.add.at(total, up[level], total[level])
    return _Costs(np.maximum(own, 0), gpu, total, kernels)


def _outermost(key: I64, up: I64) -> Mask:
    """Operators that do not stand, at any depth, within one of the same key."""
    found = np.ones(len(key), np.bool_)
    rows = np.flatnonzero(up >= 0)
    above = up[rows]
    while len(rows):
        same = key[above] == key[rows]
        found[rows[same]] = False
        rows, above = rows[~same], up[above[~same]]
        rows, above = rows[above >= 0], above[above >= 0]
    return found


def _collect(trace: Trace, ops: Table, key: I64, outermost: Mask, costs: _Costs, inside: Mask, top: int | None,
             shapes: bool, window: Window | None) -> tuple[OpStat, ...]:  # fmt: skip
    size = size_of(key)

    def added(values: I64, rows: Mask) -> I64:
        found = np.zeros(size, np.int64)
        np.add.at(found, key[rows], values[rows])
        return found

    everywhere = np.ones(len(ops), np.bool_)
    count = np.bincount(key[inside], minlength=size)
    gpu, own = added(costs.gpu, everywhere), added(costs.own, inside)
    cpu = added(ops.dur, inside & outermost)
    gpu_total, kernels = added(costs.gpu_total, outermost), added(costs.kernels, everywhere)
    device = trace.gpu.dur[starts_in(trace.gpu, window)].sum() if len(trace.gpu) else 0
    chosen = np.flatnonzero((count > 0) | (kernels > 0))
    order = chosen[np.lexsort((chosen, -own[chosen], -gpu[chosen]))][:top]
    sample = np.zeros(size, np.int64)
    sample[key] = np.arange(len(key))
    return tuple(
        OpStat(
            name=trace.strings[ops.name[sample[k]]],
            shapes=compact(trace.strings[ops.ids("dims")[sample[k]]]) if shapes else "",
            count=int(count[k]),
            cpu_ns=int(cpu[k]),
            cpu_self_ns=int(own[k]),
            gpu_ns=int(gpu[k]),
            gpu_total_ns=int(gpu_total[k]),
            kernels=int(kernels[k]),
            share=float(gpu[k] / device) if device else 0.0,
        )
        for k in order.tolist()
    )
