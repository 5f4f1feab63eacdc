"""Candidates for graphs and fusion, copies, optimiser and allocator: what is counted, and that gains are upper bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown.idle import find_gaps
from probes.trace.links import Links
from probes.trace.model import Window
from probes.trace.verdict import candidates
from probes.trace.verdict.candidates import Candidates, short
from probes.trace.windows import whole
from tests.trace_files import ALLREDUCE, ELEMENTWISE, GEMM, Job, TraceFile, compute_bound, launch_bound, read


def of(file: TraceFile | Job, window: Window | None = None) -> Candidates:
    """The candidates of a trace."""
    trace = read(file, candidates.NEEDS)
    links, window = Links(trace), window or whole(trace)
    return candidates.candidates(links, window, find_gaps(trace, links, window))


def row(count: int, us: float = 5, every: float = 30, name: str = GEMM) -> TraceFile:
    """`count` kernels of `us` each, launched one by one every `every` us."""
    file = TraceFile()
    for i in range(count):
        file.launch(i * every, 4, correlation=i + 1).kernel(name, i * every + 5, us, correlation=i + 1)
    return file


# --- graphs -------------------------------------------------------------------------------


def test_a_stretch_gives_back_the_gaps_within_it() -> None:
    s = of(row(12)).stretches
    assert s is not None
    assert (s.count, s.kernels, s.gap_ns) == (1, 12, 11 * 25_000)


def test_few_kernels_and_long_kernels_are_no_stretch() -> None:
    for file in (row(9), row(40, us=30)):
        s = of(file).stretches
        assert s is not None
        assert (s.count, s.gap_ns) == (0, 0)


def test_what_a_graph_launched_already_is_no_candidate() -> None:
    job = Job()
    job.graph([(GEMM, 5)] * 40)
    s = of(job).stretches
    assert s is not None
    assert s.count == 0


def test_a_pause_or_a_collective_ends_a_stretch() -> None:
    file = row(12)
    for i in range(12):
        at = 12 * 30 + 2_000 + i * 30
        file.launch(at, 4, correlation=100 + i).kernel(GEMM, at + 5, 5, correlation=100 + i)
    s = of(file).stretches
    assert s is not None
    assert (s.count, s.kernels, s.gap_ns) == (2, 24, 22 * 25_000)
    file.launch(150, 4, correlation=500).kernel(ALLREDUCE, 161, 2, correlation=500, stream=20)
    cut = of(file).stretches
    assert cut is not None
    assert (cut.count, cut.kernels) == (1, 12)


def test_gaps_of_a_full_queue_are_none() -> None:
    s = of(compute_bound()).stretches
    assert s is not None
    assert s.gap_ns == 0


def test_the_operator_in_which_the_longest_begins_is_named() -> None:
    s = of(launch_bound()).stretches
    assert s is not None
    assert s.where == "aten::addmm"


@given(st.integers(0, 60), st.integers(1, 29), st.integers(0, 60))
def test_the_gain_never_exceeds_the_idle_time(count: int, us: int, every: int) -> None:
    file = row(count + 1, us, us + every)
    trace = read(file, candidates.NEEDS)
    gaps = find_gaps(trace)
    s = of(file).stretches
    assert s is not None
    assert 0 <= s.gap_ns <= int((gaps.end - gaps.start).sum())


def test_without_runtime_calls_nothing_is_known_of_launches() -> None:
    c = of(TraceFile().kernel(GEMM, 0, 5).kernel(GEMM, 30, 5))
    assert (c.stretches, c.malloc_calls, c.malloc_ns) == (None, None, None)


# --- fusion -------------------------------------------------------------------------------


def chain(names: list[str], us: float = 10, gap: float = 1, stream: int = 7, at: float = 0) -> TraceFile:
    """Kernels one behind the other."""
    file = TraceFile()
    for name in names:
        file.kernel(name, at, us, stream=stream)
        at += us + gap
    return file


def test_of_n_kernels_in_a_row_one_pass_stays() -> None:
    runs = of(chain([ELEMENTWISE] * 4)).runs
    assert (runs.count, runs.kernels, runs.kernel_ns, runs.saved_ns) == (1, 4, 40_000, 30_000)


def test_a_product_between_them_or_a_pause_ends_a_run() -> None:
    assert of(chain([ELEMENTWISE, GEMM, ELEMENTWISE, GEMM])).runs.count == 0
    assert of(chain([ELEMENTWISE] * 4, gap=200)).runs.count == 0
    assert of(chain([ELEMENTWISE, ELEMENTWISE, GEMM, ELEMENTWISE, ELEMENTWISE])).runs.saved_ns == 20_000


def test_kernels_of_two_streams_are_not_next_to_each_other() -> None:
    file = chain([ELEMENTWISE], stream=7)
    file.events += chain([ELEMENTWISE], stream=8, at=11).events
    assert of(file).runs.count == 0


def test_a_foreach_optimiser_is_fused_already() -> None:
    assert of(chain(["void at::native::multi_tensor_apply_kernel<x>()"] * 5)).runs.count == 0


def test_the_sequence_that_would_save_the_most_is_named_with_its_number() -> None:
    other = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(x)"
    runs = of(chain([ELEMENTWISE, other, GEMM] * 3 + [ELEMENTWISE, ELEMENTWISE])).runs
    assert runs.top_count == 3
    assert runs.top == "vectorized_elementwise_kernel<CUDAFunctor_add> + reduce_kernel"


@given(st.lists(st.sampled_from([ELEMENTWISE, GEMM]), max_size=30), st.integers(1, 50))
def test_fusing_never_saves_more_than_was_spent(names: list[str], us: int) -> None:
    runs = of(chain(["first", *names], us=us)).runs
    assert 0 <= runs.saved_ns < max(1, runs.kernel_ns)
    assert runs.kernel_ns <= us * 1000 * names.count(ELEMENTWISE)


# --- copies, optimiser, allocator ---------------------------------------------------------


def test_pageable_copies_are_known_by_their_names() -> None:
    file = TraceFile().memcpy("Memcpy HtoD (Pageable -> Device)", 0, 30).memcpy("Memcpy HtoD (Pinned -> Device)", 50, 9)
    c = of(file.memcpy("Memcpy DtoD (Device -> Device)", 70, 9)).copies
    assert (c.count, c.pageable, c.pageable_ns) == (2, 1, 30_000)


def test_names_that_do_not_tell_the_memory_leave_it_unknown() -> None:
    c = of(TraceFile().memcpy("CopyHostToDevice", 0, 30)).copies
    assert (c.count, c.pageable, c.pageable_ns) == (1, None, None)
    none = of(TraceFile().kernel(GEMM, 0, 5)).copies
    assert (none.count, none.pageable) == (0, 0)


def stepped(names: list[str]) -> TraceFile:
    """An Optimizer.step that launches these kernels."""
    file = TraceFile().annotation("Optimizer.step#AdamW.step", 0, len(names) * 10 + 5)
    for i, name in enumerate(names):
        file.launch(i * 10, 4, correlation=i + 1).kernel(name, i * 10 + 20, 6, correlation=i + 1)
    return file


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ([ELEMENTWISE] * 40, "loop"),
        (["void at::native::multi_tensor_apply_kernel<Add>()"] * 4, "foreach"),
        (["void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>()"] * 2, "fused"),
        ([ELEMENTWISE] * 3, ""),
    ],
)
def test_the_kernels_of_a_step_tell_how_the_optimiser_updates(names: list[str], kind: str) -> None:
    c = of(stepped(names))
    assert (c.optimizer, c.optimizer_ns) == (kind, (len(names) - 1) * 10_000 + 6_000)


def test_calls_of_the_driver_for_memory_are_counted_within_the_window() -> None:
    file = row(3).launch(10, 7, name="cudaMalloc").launch(20, 9, name="cudaFree").launch(900, 9, name="cudaFree")
    c = of(file.launch(40, 3, name="cudaMallocAsync").launch(44, 3, name="cudaFreeHost"))
    assert (c.malloc_calls, c.malloc_ns) == (2, 16_000)


# --- names --------------------------------------------------------------------------------


def test_a_kernels_name_is_cut_to_what_tells() -> None:
    assert short(ELEMENTWISE) == "vectorized_elementwise_kernel<CUDAFunctor_add>"
    assert short("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").endswith("RING_LL")


@given(st.text(max_size=600))
def test_no_name_is_too_long_or_too_strange(name: str) -> None:
    assert len(short(name)) <= 48
