"""Which recorded product, convolution or attention each kernel belongs to: every kernel once, every call once."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from knowledge.record import dataclass
from probes.trace.columns import I64, NO_TEXT, Group, Mask, Strings, Table, wanted
from probes.trace.links import Links, enclosing, parents
from probes.trace.model import Window
from probes.trace.names import kinds
from probes.trace.reading.reader import Trace
from probes.trace.windows import starts_in
from probes.trace.work.calls import Call, Cost, Dims, parse
from probes.trace.work.flops import cost, gradient_of, known

NEEDS: Final = wanted(gpu="correlation external", runtime="correlation", op="external dims types concrete")

_MOST: Final = 50_000  # different calls that are looked at; a model has hundreds
_COLUMNS: Final = ("name", "dims", "types", "concrete")


@dataclass(slots=True)
class Shape:
    """Calls of one operator with one set of recorded inputs."""

    op: str
    dims: str
    cost: Cost
    kernel: str  # the one that takes most of the time
    rows: I64  # of the GPU table
    calls: int
    fewer: bool = False  # by Winograd's algorithm or a Fourier transform: less is multiplied than the formula counts


@dataclass(slots=True)
class Owned:
    """The kernels of a window, and whose they are."""

    shapes: list[Shape]
    kernels: I64  # GPU rows: all kernels of the window
    owned: Mask  # over `kernels`: belongs to one of `shapes`
    unread: int  # kernel time of known operators without usable shapes, ns
    alone: int  # kernel time of no recorded operator, ns


def owners(trace: Trace, links: Links, window: Window | None) -> Owned:
    """Kernels that start in the window, each with the innermost operator around its launch whose work is known.

    Copies and other movers of bytes below such an operator are not its work. Where one such operator contains
    another that launched kernels (``aten::linear`` and ``aten::addmm``), only the inner one counts.
    """
    gpu, ops = trace.gpu, trace[Group.OP]
    kernels = np.flatnonzero(links.kernels & starts_in(gpu, window))
    if not len(kernels) or not len(ops):
        return Owned([], kernels, np.zeros(len(kernels), np.bool_), 0, int(gpu.dur[kernels].sum()))
    direct = links.op[kernels]
    named = trace.strings.where(known(t) for t in trace.strings.texts)[ops.name]
    rows, kind = _kinds(ops, np.flatnonzero(named & (ops.ids("dims") != NO_TEXT)))
    which = np.full(len(ops), -1, np.int64)
    which[rows] = kind
    main = _main_kernels(trace, kernels, _climb(trace, kernels, direct, which), rows, kind)
    costs = _costs(trace.strings, ops, [(int(rows[i]), name) for i, name in main])
    usable = np.fromiter((c is not None for c in costs), np.bool_, len(costs))
    which[rows[~usable[kind]]] = -1
    owner = _without_outer(ops, _climb(trace, kernels, direct, which), which)
    of_kind = np.where(owner >= 0, which[np.maximum(owner, 0)], -1)
    unread = gpu.dur[kernels[(of_kind < 0) & (direct >= 0) & named[np.maximum(direct, 0)]]].sum()
    alone = gpu.dur[kernels[direct < 0]].sum()
    return Owned(_shapes(trace, kernels, owner, of_kind, costs), kernels, of_kind >= 0, int(unread), int(alone))


def _kinds(ops: Table, rows: I64) -> tuple[I64, I64]:
    """The rows, and for each the number of its (operator, inputs)."""
    keys = np.stack([ops.ids(c)[rows] for c in _COLUMNS], axis=1)
    found, kind = np.unique(keys, axis=0, return_inverse=True)
    kind = kind.reshape(-1).astype(np.int64)
    few = kind < _MOST if len(found) > _MOST else slice(None)
    return rows[few], kind[few]


def _main_kernels(trace: Trace, kernels: I64, owner: I64, rows: I64, kind: I64) -> list[tuple[int, str]]:
    """For each kind one of its rows (a place in `rows`) and the name of the kernel that takes most of its time."""
    count = int(kind.max()) + 1 if len(kind) else 0
    of_op = np.full(len(trace[Group.OP]), -1, np.int64)
    of_op[rows] = kind
    of_kernel = np.where(owner >= 0, of_op[np.maximum(owner, 0)], -1)
    hit = of_kernel >= 0
    gpu = trace.gpu
    pairs, at = np.unique(of_kernel[hit] << 32 | gpu.name[kernels[hit]], return_inverse=True)
    time = np.bincount(at.reshape(-1), gpu.dur[kernels[hit]], len(pairs))
    best = [""] * count
    for i in np.argsort(time, kind="stable").tolist():  # the longest last
        best[int(pairs[i]) >> 32] = trace.strings[int(pairs[i]) & 0xFFFFFFFF]
    first = np.zeros(count, np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return list(zip(first.tolist(), best, strict=True))


def _costs(strings: Strings, ops: Table, main: list[tuple[int, str]]) -> list[Cost | None]:
    """The cost of each kind. Traces before 2023 hold no strides: there the gradients tell what a convolution gave."""
    calls = [(strings[int(ops.name[row])], _call(strings, ops, row, kernel)) for row, kernel in main]
    results: dict[tuple[Dims, Dims], set[Dims]] = {}
    for name, call in calls:
        if (found := gradient_of(name, call)) is not None:
            results.setdefault(found[0], set()).add(found[1])
    costs = []
    for name, call in calls:
        data, weight = call.shape(0), call.shape(1)
        told = results.get((data, weight), ()) if data and weight else ()
        costs.append(cost(name, replace(call, result=next(iter(told))) if len(told) == 1 else call))
    return costs


def _call(strings: Strings, ops: Table, row: int, kernel: str) -> Call:
    dims, types, values = (strings[int(ops.ids(c)[row])] for c in _COLUMNS[1:])
    return Call(parse(dims) or (), parse(types) or (), parse(values) or (), format_of_kernel(kernel))


def _climb(trace: Trace, kernels: I64, direct: I64, which: I64) -> I64:
    """For each kernel the innermost operator at or around its own whose work is known (OP row, -1 for none)."""
    ops = trace[Group.OP]
    owner = np.where((direct >= 0) & (which[np.maximum(direct, 0)] >= 0), direct, -1)
    elsewhere = kinds.communication(trace) | kinds.only_bytes(trace)
    open_ = (owner < 0) & (direct >= 0) & ~elsewhere[kernels]
    outer = np.flatnonzero(which >= 0)
    if open_.any() and len(outer):
        inner, at = np.unique(direct[open_], return_inverse=True)
        around = enclosing(ops.take(inner), ops.take(outer))
        found = np.where(around >= 0, outer[np.maximum(around, 0)], -1)
        owner[open_] = found[at.reshape(-1)]
    return owner


def _without_outer(ops: Table, owner: I64, which: I64) -> I64:
    """Owners without those that contain another owner: its work is counted there."""
    used = np.unique(owner[owner >= 0])
    if not len(used):
        return owner
    up = parents(ops.take(used))
    outer = used[np.unique(up[up >= 0])]
    gone = np.zeros(len(which), np.bool_)
    gone[outer] = True
    return np.where((owner >= 0) & ~gone[np.maximum(owner, 0)], owner, -1)


def _shapes(trace: Trace, kernels: I64, owner: I64, of_kind: I64, costs: list[Cost | None]) -> list[Shape]:
    ops, gpu, strings = trace[Group.OP], trace.gpu, trace.strings
    order = np.argsort(of_kind, kind="stable")
    order = order[of_kind[order] >= 0]
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(of_kind[order])) + 1) if len(order) else ():
        one = costs[int(of_kind[part[0]])]
        if one is None:
            continue
        rows, row = kernels[part], int(owner[part[0]])
        names, at = np.unique(gpu.name[rows], return_inverse=True)
        longest = names[np.argmax(np.bincount(at.reshape(-1), gpu.dur[rows]))]
        calls = len(np.unique(owner[part]))
        fewer = any(word in strings[n].lower() for n in names.tolist() for word in ("winograd", "fft"))
        op, dims = strings[int(ops.name[row])], strings[int(ops.ids("dims")[row])]
        found.append(Shape(op, dims, one, strings[int(longest)], rows, calls, fewer))
    return found


# Fragments of kernel names that tell the format of the inputs: cuBLAS, cuDNN, CUTLASS, hipBLASLt (Cijk_...).
_FORMATS: Final = (
    ("bf16", "bf16"), ("bfloat16", "bf16"), ("_bbs_", "bf16"), ("e4m3", "fp8"), ("e5m2", "fp8"), ("tf32", "tf32"),
    ("h884", "fp16"), ("h1688", "fp16"), ("h16816", "fp16"), ("hgemm", "fp16"), ("fp16", "fp16"), ("f16f16", "fp16"),
    ("_hhs_", "fp16"), ("half", "fp16"), ("dgemm", "fp64"), ("s1688", "tf32"), ("tensorop_s", "tf32"), ("sgemm", "fp32"),
    ("scudnn", "fp32"), ("simt", "fp32"), ("f32f32", "fp32"), ("_sb_", "fp32"), ("<float", "fp32"), ("float,", "fp32"),
)  # fmt: skip


def format_of_kernel(name: str) -> str:
    """The number format of a kernel's inputs, where its name tells: "bf16", "tf32"; empty where it does not."""
    name = name[:2000].lower()
    return next((form for part, form in _FORMATS if part in name), "")
