"""Statistics of kernels and operators against Python's own."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.breakdown import kernels
from probes.trace.columns import both
from probes.trace.groups import combined, deviation, squares, sums
from probes.trace.model import KernelStat, Window
from probes.trace.steps import iterations
from probes.trace.windows import window_of
from tests.trace_files import ALLREDUCE, ELEMENTWISE, GEMM, Job, TraceFile, compute_bound, launch_bound, read


def stats(file: TraceFile | Job, by: str = "name", **how: object) -> dict[str, KernelStat]:
    return {k.name: k for k in kernels.kernel_stats(read(file, kernels.NEEDS), by, **how)}  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 10**9)), min_size=1, max_size=20))
def test_statistics_are_those_of_the_events(rows: list[tuple[str, int, int]]) -> None:
    file = TraceFile()
    for name, start, ns in rows:
        file.kernel(name, start, f"{ns // 1000}.{ns % 1000:03d}")
    found = stats(file.memcpy("Memcpy", 0, 99))
    whole = sum(ns for _, _, ns in rows)
    for name in {n for n, _, _ in rows}:
        times = [ns for n, _, ns in rows if n == name]
        one = found[name]
        assert (one.total_ns, one.count, one.min_ns, one.max_ns) == (sum(times), len(times), min(times), max(times))
        assert one.mean_ns == pytest.approx(statistics.mean(times))
        assert one.stddev_ns == pytest.approx(statistics.pstdev(times), abs=1e-6)
        assert one.share == pytest.approx(sum(times) / whole if whole else 0)
    assert list(found) == sorted(found, key=lambda n: (-found[n].total_ns, n))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**51)), max_size=20))
def test_sums_of_squares_are_exact(rows: list[tuple[int, int]]) -> None:
    key = np.array([k for k, _ in rows], np.int64)
    dur = np.array([d for _, d in rows], np.int64)
    assert squares(key, dur, 4) == [sum(d * d for k, d in rows if k == one) for one in range(4)]
    assert sums(key, dur, 4).total.tolist() == [sum(d for k, d in rows if k == one) for one in range(4)]


def test_deviations_do_not_cancel() -> None:
    long = 10**15  # the squares differ only behind the 15 digits of a float
    assert deviation(2, 2 * long + 2, long**2 + (long + 2) ** 2) == 1.0
    assert deviation(1, long, long * long) == 0.0
    assert deviation(2, 10**200, 10**400) > 10**199


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63)])), max_size=20)
)
def test_combined_keys_are_equal_where_all_columns_are(rows: list[tuple[int, int]]) -> None:
    key = combined(np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], np.int64)).tolist()
    assert all((key[i] == key[j]) == (rows[i] == rows[j]) for i in range(len(rows)) for j in range(len(rows)))
    assert sorted(set(key)) == list(range(len(set(rows))))


def test_top_cuts_behind_the_most_expensive_equals_by_name() -> None:
    file = TraceFile()
    for i, name in enumerate(["z", "b", "a", "c"]):
        file.kernel(name, 10 * i, 5 if name != "z" else 9)
    assert list(stats(file, top=3)) == ["z", "a", "b"]
    assert list(stats(file, top=0)) == []
    assert stats(file, top=1)["z"].share == 9 / 24  # of all kernels, not of those listed


def test_by_shape_stream_and_class() -> None:
    job = Job()
    job.op("aten::linear", [(GEMM, 50)], inner="aten::mm", dims=[[4, 8], [8, 2]])
    job.op("aten::linear", [(GEMM, 10)], inner="aten::mm", dims=[[1, 8], [8, 2]])
    job.op("aten::add", [(ELEMENTWISE, 3)])
    job.collective(us=20, stream=20)
    assert {n: k.total_ns for n, k in stats(job, "shape").items()} == {
        f"{GEMM} <- aten::mm [[4, 8], [8, 2]]": 50_000, f"{GEMM} <- aten::mm [[1, 8], [8, 2]]": 10_000,
        f"{ALLREDUCE} <- ?": 20_000, f"{ELEMENTWISE} <- aten::add ?": 3000}  # fmt: skip
    assert {n: k.total_ns for n, k in stats(job, "stream").items()} == {"stream 7": 63_000, "stream 20": 20_000}
    assert {n: k.count for n, k in stats(job, "class").items()} == {"gemm": 2, "communication": 1, "elementwise": 1}
    job.trace.kernel(GEMM, 900, 1, device=1)
    assert set(stats(job, "stream")) == {"device 0 stream 7", "device 0 stream 20", "device 1 stream 7"}
    with pytest.raises(ValueError, match="one of name, shape"):
        stats(job, "colour")


def test_the_users_function_around_the_launch() -> None:
    job = Job()
    with job.frame("train.py(3): main"):
        job.launch(GEMM, 5)
        with (
            job.frame("model.py(9): forward"),
            job.frame("torch/nn/modules/linear.py(125): forward"),
            job.frame("<built-in function linear>"),
        ):
            job.launch(GEMM, 7)
    job.launch(GEMM, 2)
    assert {n: k.total_ns for n, k in stats(job, "python").items()} == {
        "model.py(9): forward": 7000, "train.py(3): main": 5000, "?": 2000}  # fmt: skip


def test_the_users_function_in_the_operators_stack() -> None:
    job = Job()
    stack: dict[str, Any] = {
        "Call stack": "torch/nn/functional.py(1848): linear;model.py(7): forward;train.py(3): main"
    }
    job.op("aten::addmm", [(GEMM, 10)], **stack)
    with job.frame("other.py(1): main"):
        job.op("aten::addmm", [(GEMM, 5)], **stack)
    assert {n: k.total_ns for n, k in stats(job, "python").items()} == {
        "model.py(7): forward": 10_000,
        "other.py(1): main": 5000,
    }


def test_modules_from_frames_and_of_backward_operators() -> None:
    forward: dict[str, Any] = {"Sequence number": 5, "Fwd thread id": 0}
    backward: dict[str, Any] = {"Sequence number": 5, "Fwd thread id": 1}
    job = Job()
    with job.frame("nn.Module: Net_0"), job.frame("nn.Module: Linear_1"):
        job.op("aten::addmm", [(GEMM, 10)], **forward)
    with job.thread(2):
        job.op("autograd::engine::evaluate_function: AddmmBackward0", [(GEMM, 20)], inner="aten::mm", **backward)
        job.op("aten::add_", [(ELEMENTWISE, 1)])
    assert {n: k.total_ns for n, k in stats(job, "module").items()} == {
        "Net_0.Linear_1 (backward)": 20_000, "Net_0.Linear_1": 10_000, "?": 1000}  # fmt: skip


def test_modules_as_the_operators_tell_them() -> None:
    job = Job()
    job.op("aten::addmm", [(GEMM, 10)], module="TOP(Net)::forward.SELF(Linear)::fc")
    assert list(stats(job, "module")) == ["TOP(Net)::forward.SELF(Linear)::fc"]


@pytest.mark.parametrize("by", kernels.BY)
def test_every_key_parts_the_kernels(by: str) -> None:
    for job in (compute_bound(), launch_bound()):
        found = stats(job, by)
        assert sum(k.total_ns for k in found.values()) == sum(k.total_ns for k in stats(job).values())
        assert sum(k.share for k in found.values()) == pytest.approx(1)


@pytest.mark.parametrize("by", kernels.BY)
def test_nothing_in_an_empty_trace(by: str) -> None:
    trace = read(TraceFile().op("aten::mm", 0, 5), kernels.NEEDS)
    assert kernels.kernel_stats(trace, by) == ()
    assert [o.gpu_ns for o in kernels.op_stats(trace)] == [0]
    assert kernels.op_stats(read(TraceFile().kernel(GEMM, 0, 1), kernels.NEEDS)) == ()


def test_windows() -> None:
    job = compute_bound(steps=3)
    trace = read(job, both(kernels.NEEDS, iterations.NEEDS))
    whole, steps = window_of(trace), window_of(trace, "iterations")
    assert whole == Window("trace", int(trace.gpu.start[0]), int(trace.gpu.end.max()))
    assert (steps.kind, steps.iterations) == ("iterations", 3)
    assert steps.marker
    inside = kernels.kernel_stats(trace, window=Window("iterations", whole.start_ns, whole.start_ns + 1))
    assert sum(k.count for k in inside) == int((trace.gpu.cat == 0)[:1].sum())
    with pytest.raises(InputError, match="no window"):
        window_of(trace, "month")


def test_no_iterations_is_said(tmp_path: Path) -> None:
    trace = read(TraceFile().kernel(GEMM, 0, 5), both(kernels.NEEDS, iterations.NEEDS))
    with pytest.raises(InputError, match="no iteration marker"):
        window_of(trace, "iterations")
    with pytest.raises(InputError, match="epoch"):
        window_of(trace, "iterations", "epoch")
