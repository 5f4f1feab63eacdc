"""Unified call stacks: laws on any trace, and small stories of what must hang where."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from probes.trace.columns import Group
from probes.trace.intervals import clip, union
from probes.trace.model import Window
from probes.trace.reading.reader import Trace, read
from probes.trace.trees.calltree import DEEPEST, CallTree, Kind
from probes.trace.trees.stacks import NEEDS, NOT_RECORDED, tree
from tests.probes.trace.stack_cases import build, host, kernel, traces
from tests.trace_files import TraceFile

HOST = (Group.PYTHON, Group.MARK, Group.OP, Group.RUNTIME)


def host_time(trace: Trace, low: int, high: int) -> int:
    """The union of each thread's events, ns."""
    total = 0
    for tid in {t for g in HOST for t in trace[g].ids("tid").tolist()}:
        rows = [trace[g].take(trace[g].ids("tid") == tid) for g in HOST]
        open_ = union(np.concatenate([r.start for r in rows]), np.concatenate([r.end for r in rows]))
        total += clip(open_, low, high).total
    return total


def paths(found: CallTree) -> dict[str, tuple[int, int, int]]:
    """Path -> own host time, own device time, calls."""
    columns = (found.cpu_ns, found.gpu_ns, found.count)
    rows = zip(*(c.tolist() for c in columns), strict=True)
    return {" > ".join(found.path(i)): row for i, row in enumerate(rows)}


@pytest.mark.slow
@given(traces())
def test_totals_are_those_of_the_tables(trace: Trace) -> None:
    for forward in (False, True):
        found = tree(trace, forward=forward)
        assert int(found.cpu_ns.sum()) == host_time(trace, -1, 1 << 40)
        assert int(found.gpu_ns.sum()) == int(trace.gpu.dur.sum())
        assert (found.cpu_ns >= 0).all()
        assert (found.parent < np.arange(len(found))).all()
        assert int(found.count.sum()) == sum(len(trace[g]) for g in HOST) + len(trace.gpu)


@given(traces())
def test_totals_of_windows_add_up(trace: Trace) -> None:
    edges = [-1000, 20_000, 41_000, 1 << 40]
    parts = [tree(trace, Window("iterations", a, b)) for a, b in itertools.pairwise(edges)]
    assert [int(p.cpu_ns.sum()) for p in parts] == [host_time(trace, a, b) for a, b in itertools.pairwise(edges)]
    assert sum(int(p.gpu_ns.sum()) for p in parts) == int(trace.gpu.dur.sum())
    assert sum(int(p.count.sum()) for p in parts) == int(tree(trace).count.sum())


@given(traces())
def test_siblings_differ_and_sums_grow_upwards(trace: Trace) -> None:
    found = tree(trace)
    keys = list(zip(found.parent.tolist(), found.frame.tolist(), found.kind.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    for time in ("cpu", "gpu"):
        total = found.total(time)
        assert int(total[found.parent < 0].sum()) == int(found.own(time).sum())


def test_one_stack_from_python_to_kernel(tmp_path: Path) -> None:
    file = TraceFile()
    file.annotation("ProfilerStep#3", 0, 100)
    file.add("python_function", "train.py(4): step", 1, 90, 4242, 1, {"Python id": 1})
    file.add("python_function", "nn.Module: Linear_0", 2, 50, 4242, 1, {"Python id": 2, "Python parent id": 1})
    file.op("aten::linear", 5, 40).op("aten::addmm", 6, 30).launch(10, 5, correlation=1)
    file.kernel("gemm", 30, 20, correlation=1)
    found = paths(tree(read(file.save(tmp_path / "t.json"), NEEDS)))
    top = "thread 1 > ProfilerStep > train.py(4): step > nn.Module: Linear_0 > aten::linear > aten::addmm > cudaLaunchKernel"
    assert found[top] == (5000, 0, 1)
    assert found[f"{top} > gemm"] == (0, 20_000, 1)
    assert found["thread 1 > ProfilerStep"] == (10_000, 0, 1)


def test_all_kernels_of_a_graph_hang_below_its_launch_and_the_unknown_apart() -> None:
    trace = build([
        host(Group.RUNTIME, "cudaGraphLaunch", 0, 10, correlation=5),
        kernel("a", 20, 5, 5), kernel("b", 30, 6, 5), kernel("a", 40, 7, 5), kernel("lost", 50, 8, 99),
    ])  # fmt: skip
    found = tree(trace)
    assert paths(found) == {
        "thread 1": (0, 0, 0),
        "thread 1 > cudaGraphLaunch": (10, 0, 1),
        "thread 1 > cudaGraphLaunch > a": (0, 12, 2),
        "thread 1 > cudaGraphLaunch > b": (0, 6, 1),
        NOT_RECORDED: (0, 0, 0),
        f"{NOT_RECORDED} > lost": (0, 8, 1),
    }
    assert any("30.8%" in note.en for note in found.notes)


def test_an_external_id_names_the_operator_of_a_call_that_was_not_recorded(tmp_path: Path) -> None:
    file = TraceFile().op("aten::mm", 0, 10, external=7).kernel("gemm", 20, 5, correlation=3, external=7)
    found = paths(tree(read(file.save(tmp_path / "t.json"), NEEDS)))
    assert found["thread 1 > aten::mm > gemm"] == (0, 5000, 1)


def test_a_step_that_begins_within_a_call_and_outlives_it_is_not_called_by_it() -> None:
    us = 1000
    trace = build([
        host(Group.PYTHON, "train.py(1): main", 0, 400 * us),
        host(Group.MARK, "ProfilerStep#1", 10 * us, 100 * us),
        host(Group.PYTHON, "profiler.py(9): step", 100 * us, 30 * us),
        host(Group.MARK, "ProfilerStep#2", 120 * us, 100 * us),
        host(Group.PYTHON, "train.py(5): work", 150 * us, 20 * us),
    ])  # fmt: skip
    assert set(paths(tree(trace))) == {
        "thread 1", "thread 1 > train.py(1): main", "thread 1 > train.py(1): main > ProfilerStep",
        "thread 1 > train.py(1): main > profiler.py(9): step", "thread 1 > train.py(1): main > ProfilerStep > train.py(5): work",
    }  # fmt: skip


def test_backward_operators_hang_below_the_operator_that_made_them() -> None:
    back = "autograd::engine::evaluate_function: MmBackward0"
    trace = build([
        host(Group.OP, "aten::view", 0, 5, sequence=7, forward_thread=0),
        host(Group.OP, "aten::mm", 10, 5, sequence=7, forward_thread=0),
        host(Group.OP, "aten::add", 20, 5, sequence=8, forward_thread=0),
        host(Group.OP, back, 100, 50, "2", sequence=7, forward_thread=1),
        host(Group.OP, "aten::mm", 110, 20, "2"),
        host(Group.OP, "autograd::engine::evaluate_function: Gone", 160, 5, "2", sequence=3, forward_thread=1),
    ])  # fmt: skip
    apart, joined = paths(tree(trace)), paths(tree(trace, forward=True))
    assert f"thread 2 > {back} > aten::mm" in apart
    assert joined[f"thread 1 > aten::mm > {back} > aten::mm"] == (20, 0, 1)
    assert "thread 2 > autograd::engine::evaluate_function: Gone" in joined


def test_recorded_call_stacks_stand_in_for_python_frames() -> None:
    stack = "model.py(9): forward;train.py(4): main"
    trace = build([
        host(Group.OP, "aten::linear", 0, 50, call_stack=stack),
        host(Group.OP, "aten::addmm", 10, 20, call_stack=stack),
        host(Group.OP, "aten::relu", 60, 10, call_stack=stack),
        host(Group.OP, "aten::item", 80, 10, call_stack=""),
    ])  # fmt: skip
    found = paths(tree(trace))
    top = "thread 1 > train.py(4): main > model.py(9): forward"
    assert found[f"{top} > aten::linear > aten::addmm"] == (20, 0, 1)
    assert found[f"{top} > aten::relu"] == (10, 0, 1)
    assert found["thread 1 > aten::item"] == (10, 0, 1)
    assert len(found) == 7


def test_very_deep_stacks_are_cut_and_lose_no_time() -> None:
    depth = DEEPEST + 500
    trace = build([host(Group.PYTHON, "r.py(1): again", i, 3 * depth - 2 * i) for i in range(depth)])
    found = tree(trace)
    assert int(found.depth.max()) == DEEPEST
    assert int(found.cpu_ns.sum()) == 3 * depth
    assert any(str(DEEPEST) in note.en for note in found.notes)


def test_kinds_and_a_trace_of_nothing() -> None:
    trace = build([
        host(Group.PYTHON, "nn.Module: Linear_0", 0, 50), host(Group.OP, "aten::mm", 1, 9), kernel("k", 0, 1),
    ])  # fmt: skip
    found = tree(trace)
    kinds = {found.name(i): Kind(found.kind[i]) for i in range(len(found))}
    assert kinds["nn.Module: Linear_0"] is Kind.MODULE
    assert kinds["k"] is Kind.KERNEL
    assert len(tree(build([]))) == 0
