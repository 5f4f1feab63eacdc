"""Where in the user's program a kernel was launched: module, Python function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
import re2

from probes.trace.columns import I32, I64, Group, Mask, Table
from probes.trace.links import Links, enclosing, matching, parents
from probes.trace.names.kinds import used
from probes.trace.nesting import depths
from probes.trace.reading.reader import Trace

_MODULE: Final = "nn.Module: "  # "nn.Module: Linear_0" : torch/csrc/autograd/profiler_python.cpp
# train.py(12): step ; of frameworks and the standard library, and of what only passes a call on, nobody asks
_FUNCTION: Final = r"\.py\(\d+\): "
_INTERNAL: Final = (
    r"(?:^|/)(?:torch|torchvision/_|deepspeed/utils|accelerate/utils|numpy|triton)/|^<|(?:^|/)(?:contextlib|functools|threading|runpy|"
    r"importlib/.*|_bootstrap|concurrent/futures/\w+|asyncio/\w+|multiprocessing/\w+|typing|abc|copy|enum|inspect|"
    r"weakref|queue|selectors|socket|_ops|_decorators|_contextlib)\.py\(|: (?:_call_impl|_wrapped_call_impl|_fn|<lambda>|decorate_context)$"
)


@cache
def _pattern(text: str) -> re2._Regexp:
    return re2.compile(text)


def is_users(name: str) -> bool:
    """Whether a Python frame is a function of the user's program, not of torch or the standard library."""
    return _pattern(_FUNCTION).search(name) is not None and _pattern(_INTERNAL).search(name) is None


def user_functions(trace: Trace) -> tuple[I64, list[str]]:
    """For each GPU row which of the texts is the user's innermost Python function around its launch; -1: not recorded.

    From Python frames (with_stack), else from the operator's ``Call stack`` (torch before 2.0). Needs PYTHON, and
    ``correlation`` of GPU and RUNTIME; OP ``external call_stack`` where it is to count.
    """
    frames, at = around(trace, is_users)
    names = used(frames.name, len(trace.strings))
    place = np.full(len(trace.strings) + 1, -1)
    place[names] = np.arange(len(names))
    numbers = np.where(at >= 0, place[frames.name[np.maximum(at, 0)]] if len(frames) else -1, -1)
    texts = [trace.strings[n] for n in names.tolist()]
    if (numbers < 0).any() and len(ops := trace.tables.get(Group.OP, Table.empty())) and "call_stack" in ops:
        op = Links(trace).op
        of_op = _called(trace, ops.ids("call_stack"), texts)
        numbers = np.where(numbers >= 0, numbers, np.where(op >= 0, of_op[np.maximum(op, 0)], -1))
    return numbers, texts


def _called(trace: Trace, stacks: I32, texts: list[str]) -> I64:
    """For each operator which of the texts (more are added) is the first user's function of its stack, innermost first."""
    known = {text: i for i, text in enumerate(texts)}
    place = np.full(len(trace.strings) + 1, -1)
    for number in used(stacks, len(trace.strings)).tolist():
        frame = next((f for f in trace.strings[number].split(";") if is_users(f)), "")
        if frame:
            place[number] = known.setdefault(frame, len(known))
    texts[:] = list(known)
    return place[stacks]


def around(trace: Trace, test: Callable[[str], bool]) -> tuple[Table, I64]:
    """The Python frames whose names pass `test`, and for each GPU row the innermost of them around its launch; -1: none."""
    frames = trace[Group.PYTHON]
    frames = frames.take(np.flatnonzero(named(trace, frames, test)))
    launch = Links(trace).launch
    calls = np.unique(launch[launch >= 0])
    found = np.full(len(launch), -1)
    if len(calls) and len(frames):
        of_call = np.full(len(trace[Group.RUNTIME]), -1)
        of_call[calls] = enclosing(trace[Group.RUNTIME].take(calls), frames)
        found = np.where(launch >= 0, of_call[np.maximum(launch, 0)], -1)
    return frames, found


def named(trace: Trace, table: Table, test: Callable[[str], bool]) -> Mask:
    """For each row of `table` whether its name passes `test`; each name is tested once."""
    said = np.zeros(len(trace.strings) + 1, np.bool_)
    names = used(table.name, len(trace.strings))
    said[names] = [test(trace.strings[n]) for n in names.tolist()]
    return said[table.name]


def modules(trace: Trace) -> tuple[I64, list[str]]:
    """For each GPU row which of the texts is the module that launched it; -1: not recorded.

    From ``Module Hierarchy`` of the operator where the capture recorded it (with_modules), else from the nested Python
    frames of modules around the launch (with_stack). A backward kernel belongs to the module of the forward operator
    of the same sequence number; " (backward)" stands behind the name. Needs OP ``external module sequence`` too.
    """
    links = Links(trace)
    ops = trace[Group.OP]
    frames, at = around(trace, lambda name: name.startswith(_MODULE))
    path, texts = _paths(trace, frames)
    numbers = np.where(at >= 0, path[np.maximum(at, 0)], -1) if len(frames) else np.full(len(at), -1)
    if len(ops):
        of_op = _modules_of_ops(trace, ops, texts)
        op = links.op
        said = np.where(op >= 0, of_op[np.maximum(op, 0)], -1)
        numbers = np.where(said >= 0, said, numbers)
        missing = np.flatnonzero((numbers < 0) & (links.launch >= 0))
        if len(missing) and "sequence" in ops and "forward_thread" in ops:
            inside = enclosing(ops, frames)
            by_frame = np.where(inside >= 0, path[np.maximum(inside, 0)], -1) if len(frames) else np.full(len(ops), -1)
            of_op = np.where(of_op >= 0, of_op, by_frame)
            numbers[missing] = _backward(trace, ops, of_op, links.launch[missing], texts)
    return numbers, texts


def _backward(trace: Trace, ops: Table, of_op: I64, launch: I64, texts: list[str]) -> I64:
    """Modules of calls within backward operators: that of the forward operator with the same sequence number."""
    sequence = ops.ints("sequence")
    back = np.flatnonzero((sequence >= 0) & (ops.ints("forward_thread") > 0))
    ahead = np.flatnonzero((sequence >= 0) & (ops.ints("forward_thread") <= 0) & (of_op >= 0))
    forward = matching(sequence[back], sequence[ahead])
    of_back = np.where(forward >= 0, of_op[ahead[np.maximum(forward, 0)]] if len(ahead) else -1, -1)
    calls, place = np.unique(launch, return_inverse=True)
    at = enclosing(trace[Group.RUNTIME].take(calls), ops.take(back))[place]
    found = np.where(at >= 0, of_back[np.maximum(at, 0)] if len(back) else -1, -1)
    hit = np.flatnonzero(found >= 0)
    modules_, number = np.unique(found[hit], return_inverse=True)
    found[hit] = number + len(texts)
    texts += [f"{texts[m]} (backward)" for m in modules_.tolist()]
    return found


def _modules_of_ops(trace: Trace, ops: Table, texts: list[str]) -> I64:
    column = ops.ids("module")
    names = used(column, len(trace.strings))
    said = [
        (n, text) for n in names.tolist() if (text := trace.strings[n].strip()) and text not in ("[]", '""', "None")
    ]
    place = np.full(len(trace.strings) + 1, -1)
    place[[n for n, _ in said]] = np.arange(len(texts), len(texts) + len(said))
    texts += [text for _, text in said]
    return place[column]


def _paths(trace: Trace, frames: Table) -> tuple[I64, list[str]]:
    """For each frame which of the texts is its path of modules: Model_0.Block_3.Linear_7."""
    up = parents(frames)
    depth = depths(up)
    path = np.full(len(frames), -1)
    texts: list[str] = []
    for level in range(int(depth.max()) + 1 if len(frames) else 0):
        rows = np.flatnonzero(depth == level)
        above = np.where(up[rows] >= 0, path[np.maximum(up[rows], 0)], -1)
        key = (above + 1) * (len(trace.strings) + 1) + frames.name[rows]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        path[rows] = number + len(texts)
        own = [trace.strings[frames.name[rows[i]]].removeprefix(_MODULE) for i in first.tolist()]
        texts += [
            f"{texts[above[i]]}.{name}" if above[i] >= 0 else name for i, name in zip(first.tolist(), own, strict=True)
        ]
    return path, texts
