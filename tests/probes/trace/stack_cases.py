"""Small traces in memory for the laws of call stacks and differences: host events nest as they like, kernels are
launched by some of them, by several at once (graph replay), or by none."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from probes.trace.columns import ABSENT, ARGS, BASE, Cat, Group, Strings, Table, dtype_of
from probes.trace.reading.reader import Trace
from probes.trace.trees.diff import NEEDS

_GROUPS = {Group.PYTHON: Cat.PYTHON, Group.MARK: Cat.CPU_MARK, Group.OP: Cat.OP, Group.RUNTIME: Cat.RUNTIME}
_NAMES = {
    Group.PYTHON: ["train.py(4): step", "nn.Module: Linear_0", "train.py(9): main", "<built-in method mm>"],
    Group.MARK: ["ProfilerStep#1", "ProfilerStep#2", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"],
    Group.OP: ["aten::mm", "aten::linear", "autograd::engine::evaluate_function: MmBackward0", "a;b%3B"],
    Group.RUNTIME: ["cudaLaunchKernel", "cudaGraphLaunch", "cudaStreamSynchronize"],
    Group.GPU: ["gemm<int>", "void at::native::add<float>(int)", "ncclDevKernel_AllReduce"],
}


def build(events: list[tuple[Group, dict[str, int | str]]], path: str = "t.json") -> Trace:
    """A trace of these events; columns that one does not name are absent."""
    strings = Strings()
    tables = {}
    for group, args in NEEDS.items():
        rows = [e for g, e in events if g is group]
        rows.sort(key=lambda e: (int(e["start"]), -int(e["dur"])))
        columns = {}
        for name in [*BASE, *sorted(args)]:
            dtype = dtype_of(name)
            blank: int | str = -1 if dtype == np.int32 else int(ABSENT) if name in ARGS else 0
            values = [e.get(name, blank) for e in rows]
            columns[name] = np.array([strings.id(v) if isinstance(v, str) else v for v in values], dtype)
        tables[group] = Table(columns)
    return Trace(path, strings, tables)


def host(
    group: Group, name: str, start: int, dur: int, tid: str = "1", **args: int | str
) -> tuple[Group, dict[str, int | str]]:
    """A host event."""
    return group, {"start": start, "dur": dur, "name": name, "cat": int(_GROUPS[group]), "pid": "9", "tid": tid, **args}


def kernel(
    name: str, start: int, dur: int, correlation: int = 0, cat: Cat = Cat.KERNEL
) -> tuple[Group, dict[str, int | str]]:
    """A device event."""
    return Group.GPU, {"start": start, "dur": dur, "name": name, "cat": int(cat), "pid": "0", "tid": "7",
                       "stream": "7", "device": 0, "correlation": correlation}  # fmt: skip


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace: overlaps, empty events, several threads, launches that are missing or shared."""
    events = []
    for group in _GROUPS:
        for _ in range(draw(st.integers(0, 6))):
            start, dur = draw(st.integers(0, 60)) * 1000, draw(st.integers(0, 30)) * 1000
            args = {"correlation": draw(st.integers(1, 5))} if group is Group.RUNTIME else {}
            if group is Group.OP and draw(st.booleans()):
                args = {"sequence": draw(st.integers(0, 3)), "forward_thread": draw(st.integers(0, 2))}
            name = draw(st.sampled_from(_NAMES[group]))
            events.append(host(group, name, start, dur, draw(st.sampled_from(["1", "2"])), **args))
    for _ in range(draw(st.integers(0, 8))):
        start, dur = draw(st.integers(0, 90)) * 1000, draw(st.integers(0, 20)) * 1000
        cat = draw(st.sampled_from([Cat.KERNEL, Cat.KERNEL, Cat.MEMCPY]))
        events.append(kernel(draw(st.sampled_from(_NAMES[Group.GPU])), start, dur, draw(st.integers(0, 6)), cat))
    return build(events)
