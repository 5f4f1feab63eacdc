"""Differences: sums that hold for any two traces, and answers an expert would give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.columns import Group
from probes.trace.model import Diff, Difference, Window
from probes.trace.reading.reader import Trace, read
from probes.trace.trees import diff as d
from probes.trace.trees.align import align
from probes.trace.trees.calltree import CallTree, Kind
from probes.trace.trees.reasons import Why, divided, why
from probes.trace.trees.stacks import tree
from probes.trace.windows import whole
from tests.probes.trace.stack_cases import build, host, kernel, traces
from tests.trace_files import Job, TraceFile

LEVELS = ("parts", "kernels", "tree", "host")


def gap(lines: tuple[Difference, ...]) -> int:
    return sum(x.b_ns - x.a_ns for x in lines)


def window(trace: Trace, iterations: int | None) -> Window:
    found = whole(trace)
    return replace(found, kind="iterations", iterations=iterations) if iterations else found


@pytest.mark.slow
@given(traces(), traces(), st.integers(0, 3), st.integers(0, 3), st.integers(1, 4))
def test_each_level_adds_up_to_its_whole(a: Trace, b: Trace, m: int, n: int, top: int) -> None:
    one, two = window(a, m or None), window(b, n or None)
    found = d.diff(a, b, one, two, top=top)
    by = (m, n) if m and n and m != n else (1, 1)
    assert found.per_iteration == (by != (1, 1))
    assert gap(found.parts) == found.b_ns - found.a_ns
    trees = tree(a, one), tree(b, two)
    for lines, time in ((found.kernels, "gpu"), (found.tree, "gpu"), (found.host, "cpu")):
        sums = [
            divided([int((t.gpu_ns if time == "gpu" else t.cpu_ns).sum())], n)[0]
            for t, n in zip(trees, by, strict=True)
        ]
        assert [sum(x.a_ns for x in lines), sum(x.b_ns for x in lines)] == sums
        assert len(lines) <= top + 1
        if gap(lines):
            assert sum(x.share for x in lines) == pytest.approx(1)


@given(traces())
def test_nothing_differs_from_itself(a: Trace) -> None:
    found = d.diff(a, a)
    assert found.a_ns == found.b_ns
    for level in LEVELS:
        for line in getattr(found, level):
            assert (line.a_ns, line.a_count) == (line.b_ns, line.b_count)
            assert (line.share, line.why, line.detail) == (0, "", None)


@given(traces(), st.sets(st.sampled_from(Kind)))
def test_what_is_dropped_leaves_its_time_to_what_stands_above_and_its_calls_to_nobody(
    a: Trace, drop: set[Kind]
) -> None:
    before = tree(a, whole(a))
    after = align(before, before, frozenset(drop)).a
    stays = [parent < 0 or kind not in drop for parent, kind in zip(before.parent, before.kind, strict=True)]
    assert after.count.sum() == before.count[stays].sum()
    assert (after.cpu_ns.sum(), after.gpu_ns.sum()) == (before.cpu_ns.sum(), before.gpu_ns.sum())


OPPOSITE = {Why.NEW: Why.GONE, Why.MORE: Why.FEWER, Why.SLOWER: Why.FASTER, Why.MORE_SLOWER: Why.FEWER_FASTER,
            Why.LONGER: Why.SHORTER}  # fmt: skip
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}


@pytest.mark.slow
@given(traces(), traces(), st.integers(0, 2), st.integers(0, 2))
def test_the_other_way_round_it_is_the_opposite(a: Trace, b: Trace, m: int, n: int) -> None:
    one, two = window(a, m or None), window(b, n or None)
    there, back = d.diff(a, b, one, two, top=1000), d.diff(b, a, two, one, top=1000)
    for level in LEVELS:
        left = {key(x): x for x in getattr(there, level)}
        right = {key(x): x for x in getattr(back, level)}
        assert left.keys() == right.keys()
        for name, x in left.items():
            y = right[name]
            assert (x.a_ns, x.b_ns, x.a_count, x.b_count) == (y.b_ns, y.a_ns, y.b_count, y.a_count)
            assert x.share == pytest.approx(y.share)
            assert OPPOSITE.get(Why(x.why), x.why) == y.why


def key(line: Difference) -> tuple[object, ...]:
    return line.path, line.kind, line.frames


@given(st.lists(st.integers(0, 10**12), max_size=20), st.integers(1, 9))
def test_division_keeps_sums(values: list[int], by: int) -> None:
    parts = divided(values, by)
    assert sum(parts) == divided([sum(values)], by)[0]
    assert all(abs(part - value / by) <= 1 for part, value in zip(parts, values, strict=True))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((100, 10), (200, 20), Why.MORE), ((100, 10), (200, 10), Why.SLOWER), ((200, 20), (100, 10), Why.FEWER),
        ((100, 10), (50, 10), Why.FASTER), ((100, 10), (400, 20), Why.MORE_SLOWER), ((0, 0), (9, 1), Why.NEW),
        ((9, 1), (0, 0), Why.GONE), ((9, 0), (12, 0), Why.LONGER), ((9, 0), (12, 4), Why.LONGER), ((9, 3), (5, 0), Why.SHORTER), ((9, 3), (9, 5), Why.SAME), ((100, 10), (90, 20), Why.FASTER),
    ],
)  # fmt: skip
def test_why(a: tuple[int, int], b: tuple[int, int], expected: Why) -> None:
    assert why(a[0], b[0], a[1], b[1]) is expected
    assert d.WHY[expected].zh


def job(tmp_path: Path, name: str, steps: int = 2, gpu: str = "NVIDIA H100 80GB HBM3", **step: float) -> Trace:
    one = Job(gpu=gpu)
    for number in range(steps):
        one.train_step(number, **step)  # type: ignore[arg-type]
    return read(one.save(tmp_path / f"{name}.json"), d.NEEDS)


def part(found: Diff, name: str) -> Difference:
    return next(x for x in found.parts if x.path == name)


def test_a_slow_data_loader_is_found(tmp_path: Path) -> None:
    fast, slow = job(tmp_path, "fast", data=10, item=True), job(tmp_path, "slow", data=4000, item=True)
    found = d.diff(fast, slow)
    waiting = part(found, "idle: data loader")
    assert waiting.share > 0.9
    assert waiting.why == "longer"
    assert "DataLoader" in found.host[0].path
    assert found.host[0].why == "slower calls"


def test_slower_kernels_are_found_below_their_operator(tmp_path: Path) -> None:
    found = d.diff(job(tmp_path, "a", gemm=100), job(tmp_path, "b", gemm=300, gpu="Tesla V100"))
    assert part(found, "compute").share > 0.9
    assert {x.path.rsplit(" > ", 1)[-1] for x in found.tree[:5]} <= {"aten::addmm", "aten::mm"}
    assert found.kernels[0].why == "slower calls"
    assert any("Tesla V100" in note.en and "Tesla V100" in note.zh for note in found.notes)


def test_windows_of_other_lengths_are_compared_by_iteration(tmp_path: Path) -> None:
    a, b = job(tmp_path, "a", steps=2), job(tmp_path, "b", steps=6)
    windows = [replace(whole(t), kind="iterations", iterations=n) for t, n in ((a, 2), (b, 6))]
    found = d.diff(a, b, *windows)
    assert found.per_iteration
    assert any("2 and 6 iterations" in n.en for n in found.notes)
    gemm = next(x for x in found.kernels if "gemm" in x.path)
    assert (gemm.a_count, gemm.b_count) == (12, 12)
    assert gemm.a_ns == gemm.b_ns


def test_an_operator_that_launches_another_kernel_says_both() -> None:
    def trace(name: str, dur: int) -> Trace:
        return build([
            host(Group.OP, "aten::conv2d", 0, 100), host(Group.RUNTIME, "cudaLaunchKernel", 10, 5, correlation=1),
            kernel(name, 50, dur, 1), kernel("same", 500, 5, 1),
        ])  # fmt: skip

    found = d.diff(trace("void winograd<int>(float*)", 40), trace("implicit_gemm", 90))
    line = found.tree[0]
    assert (line.path, line.why) == ("thread 1 > aten::conv2d", Why.MOVED)
    assert line.detail is not None
    assert line.detail.en == "winograd<int> became implicit_gemm"
    assert line.b_ns - line.a_ns == 50


def test_a_small_kernel_more_is_told_and_not_taken_for_the_reason() -> None:
    def trace(small: str, dur: int) -> Trace:
        return build([
            host(Group.OP, "aten::conv2d", 0, 100), host(Group.RUNTIME, "cudaLaunchKernel", 10, 5, correlation=1),
            kernel("gemm", 50, dur, 1), kernel(small, 500, 5, 1),
        ])  # fmt: skip

    line = d.diff(trace("old", 100), trace("new", 300)).tree[0]
    assert line.why == "slower calls"
    assert line.detail is not None
    assert line.detail.en == "old became new"


def test_threads_lines_and_step_numbers_do_not_hinder_alignment() -> None:
    def trace(tid: str, line: int, number: int) -> CallTree:
        return tree(build([
            host(Group.PYTHON, f"/home/x/train.py({line}): step", 0, 100, tid),
            host(Group.MARK, f"execute_context_{number}({number})", 10, 50, tid),
            host(Group.OP, "autograd::engine::evaluate_function: X", 0, 50, tid + "9"),
        ]))  # fmt: skip

    pair = align(trace("17", 40, 3), trace("23", 44, 55))
    assert len(pair.both) == 5
    assert not pair.delta("cpu").any()
    assert "backward thread" in pair.both.names


def test_a_new_wrapper_does_not_make_all_below_it_new(tmp_path: Path) -> None:
    def trace(wrapped: bool) -> Trace:
        file = TraceFile()
        if wrapped:
            file.add("python_function", "new.py(1): wrapper", 0, 100, 4242, 1, {})
        file.add("python_function", "nn.Module: Linear_0", 1, 90, 4242, 1, {})
        file.op("aten::mm", 2, 50).launch(5, 5, correlation=1).kernel("gemm", 20, 10, correlation=1)
        return read(file.save(tmp_path / f"{wrapped}.json"), d.NEEDS)

    found = d.diff(trace(False), trace(True))
    assert [(x.path, x.why) for x in found.tree] == [("thread 1 > nn.Module: Linear_0 > aten::mm", "")]
