"""Kernels and operators by what they cost, with right statistics.

Means, deviations and shares come from exact integer sums over all events of a key (the widespread fault is to group
twice, so that mean, shortest and longest are those of the sums).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from probes.trace.breakdown.operators import compact, op_stats
from probes.trace.breakdown.places import modules, user_functions
from probes.trace.columns import I64, Cat, Group, wanted
from probes.trace.groups import combined, deviation, size_of, squares, sums
from probes.trace.links import Links
from probes.trace.model import KernelStat, Window
from probes.trace.names import kinds
from probes.trace.names.classify import KernelClass, TensorCore, kernel_class, tensor_core
from probes.trace.reading.reader import Trace
from probes.trace.windows import starts_in

NEEDS: Final = wanted(
    gpu="correlation external stream device",
    runtime="correlation",
    op="external dims module call_stack sequence forward_thread",
    python="",
)

__all__ = ["BY", "NEEDS", "kernel_stats", "op_stats"]

BY: Final = ("name", "shape", "module", "python", "stream", "class")


class Keys(NamedTuple):
    """A key for each row, 0..size-1, and how to write one, given a row of it."""

    of_row: I64
    size: int
    label: Callable[[int], str]


def kernel_stats(
    trace: Trace, by: str = "name", window: Window | None = None, top: int | None = None
) -> tuple[KernelStat, ...]:
    """Statistics of the kernels that start within the window, the most expensive first; copies and sets are left out.

    `by`: name, shape (name, and operator and shapes of its call), module (path of modules around the launch, or of
    the forward operator behind a backward one), python (the user's innermost function around the launch), stream,
    class. `top`: how many; None: all. ValueError for another `by`. Needs `NEEDS`; by name, stream and class only the
    GPU rows. A key that the trace does not tell is "?".
    """
    gpu = trace.gpu
    rows = np.flatnonzero(starts_in(gpu, window) & np.equal(gpu.cat, Cat.KERNEL))
    keys = _keys(trace, rows, by)
    dur = gpu.dur[rows]
    found = sums(keys.of_row, dur, keys.size)
    used = np.flatnonzero(found.number)
    sample = np.zeros(keys.size, np.int64)
    sample[keys.of_row] = rows
    order = _first(used, found.total, lambda k: keys.label(int(sample[k])), top)
    place = np.full(keys.size, -1)
    place[order] = np.arange(len(order))
    at = place[keys.of_row]
    chosen = np.flatnonzero(at >= 0)
    square = squares(at[chosen], dur[chosen], len(order))
    whole = int(found.total.sum())
    what = _what(trace, by)
    return tuple(
        KernelStat(
            name=keys.label(row),
            total_ns=(total := int(found.total[k])),
            count=(count := int(found.number[k])),
            mean_ns=total / count,
            min_ns=int(found.shortest[k]),
            max_ns=int(found.longest[k]),
            stddev_ns=deviation(count, total, s),
            share=total / whole if whole else 0.0,
            kind=what(row)[0],
            tensor_core=what(row)[1],
        )
        for k, s, row in zip(order.tolist(), square, sample[order].tolist(), strict=True)
    )


def _first(used: I64, total: I64, label: Callable[[int], str], top: int | None) -> I64:
    """The `top` keys with the largest totals; equals in order of their labels."""
    order = used[np.argsort(-total[used], kind="stable")]
    if top is not None and len(order) > top:
        order = order[total[order] >= total[order[top - 1]]] if top > 0 else order[:0]
    return np.array(sorted(order.tolist(), key=lambda k: (-int(total[k]), label(k)))[:top], np.int64)


def _what(trace: Trace, by: str) -> Callable[[int], tuple[KernelClass, TensorCore]]:
    """Class and tensor-core use of the kernel in a row; of keys that gather different kernels neither is said."""
    strings, name = trace.strings, trace.gpu.name
    if by in ("name", "shape"):
        return lambda row: (kernel_class(strings[name[row]]), tensor_core(strings[name[row]]))
    if by == "class":
        return lambda row: (kernel_class(strings[name[row]]), TensorCore.UNKNOWN)
    return lambda _: (KernelClass.OTHER, TensorCore.UNKNOWN)


def _keys(trace: Trace, rows: I64, by: str) -> Keys:
    gpu, strings = trace.gpu, trace.strings
    name = gpu.name
    if by == "name":
        return Keys(name[rows].astype(np.int64), len(strings), lambda row: strings[name[row]])
    if by == "class":
        code = kinds.classes(trace)
        return Keys(code[rows].astype(np.int64), len(kinds.CLASSES), lambda row: str(kinds.CLASSES[code[row]]))
    if by == "stream":
        return _stream_keys(trace, rows)
    if by == "shape":
        return _shape_keys(trace, rows)
    if by in ("module", "python"):
        numbers, texts = modules(trace) if by == "module" else user_functions(trace)
        return Keys(numbers[rows] + 1, len(texts) + 1, lambda row: texts[numbers[row]] if numbers[row] >= 0 else "?")
    raise ValueError(f"no statistics by {by!r}: one of {', '.join(BY)}")


def _stream_keys(trace: Trace, rows: I64) -> Keys:
    gpu = trace.gpu
    device, stream = gpu.ints("device"), gpu.ids("stream")
    several = len(gpu) > 0 and bool((device != device[0]).any())
    key = combined(device[rows], stream[rows].astype(np.int64))

    def label(row: int) -> str:
        text = f"stream {trace.strings[stream[row]] or '?'}"
        return f"device {device[row]} {text}" if several else text

    return Keys(key, size_of(key), label)


def _shape_keys(trace: Trace, rows: I64) -> Keys:
    name, op = trace.gpu.name, Links(trace).op
    ops = trace[Group.OP]
    if not len(ops):
        return Keys(name[rows].astype(np.int64), len(trace.strings), lambda row: f"{trace.strings[name[row]]} <- ?")
    dims = ops.ids("dims")
    of = np.maximum(op[rows], 0)
    missing = op[rows] < 0
    key = combined(name[rows].astype(np.int64), np.where(missing, -1, ops.name[of]), np.where(missing, -1, dims[of]))

    def label(row: int) -> str:
        at = int(op[row])
        where = f"{trace.strings[ops.name[at]]} {compact(trace.strings[dims[at]]) or '?'}" if at >= 0 else "?"
        return f"{trace.strings[name[row]]} <- {where}"

    return Keys(key, size_of(key), label)
