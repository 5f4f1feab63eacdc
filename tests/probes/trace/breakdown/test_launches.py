"""Launch statistics and the queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown.launches import NEEDS, launches
from probes.trace.model import Launches, Window
from tests.trace_files import GEMM, Job, TraceFile, read


def of(file: TraceFile | Job, window: Window | None = None) -> Launches:
    found = launches(read(file, NEEDS), window)
    assert found is not None
    return found


def test_delays_short_kernels_and_outliers() -> None:
    file = TraceFile()
    for i, (call, delay, kernel) in enumerate([(4, 6, 2), (60, 10, 80), (8, 150, 3), (4, 8, 9)], 1):
        file.launch(1000 * i, call, correlation=i).kernel(GEMM, 1000 * i + call + delay, kernel, correlation=i)
    file.launch(9000, 5, correlation=9, name="cudaMemcpyAsync").memcpy(
        "Memcpy HtoD (Pinned -> Device)", 9010, 1, correlation=9
    )
    found = of(file)
    assert (found.count, found.short_kernels, found.slow_calls, found.late_kernels) == (4, 2, 1, 1)
    assert (found.median_call_ns, found.median_delay_ns, found.p99_delay_ns, found.median_kernel_ns) == (
        4000,
        8000,
        150_000,
        3000,
    )
    assert found.graph_launches == found.graph_kernels == 0


def test_a_graph_is_one_call_with_many_kernels() -> None:
    job = Job(call=4, delay=6)
    job.launch(GEMM, 5)
    job.graph([(GEMM, 2)] * 5)
    found = of(job)
    assert (found.count, found.graph_launches, found.graph_kernels) == (2, 1, 5)
    assert found.short_kernels == 0  # kernels of a graph are not shorter than their launch: they share it
    assert (found.median_delay_ns, found.p99_delay_ns) == (6000, 7000)


def test_the_queue_over_time() -> None:
    file = TraceFile().kernel(GEMM, 0, 100).launch(10, 10, correlation=1).launch(30, 10, correlation=2)
    file.kernel(GEMM, 100, 50, correlation=1).kernel(GEMM, 150, 50, correlation=2)
    found = of(file)  # 20..100 the first waits, 40..150 the second, of 200
    assert found.queue_max == 2
    assert found.queue_mean == (80 + 110) / 200
    assert found.queue_empty_share == 1 - 130 / 200
    assert found.per_ms == 2 / 0.2


def test_one_that_starts_as_another_is_launched_does_not_wait_with_it() -> None:
    file = TraceFile().launch(10, 10, correlation=1).launch(20, 10, correlation=2)
    assert (
        of(file.kernel(GEMM, 0, 5).kernel(GEMM, 30, 10, correlation=1).kernel(GEMM, 40, 10, correlation=2)).queue_max
        == 1
    )


def test_nothing_is_known_without_calls() -> None:
    assert launches(read(TraceFile().kernel(GEMM, 0, 5, correlation=1), NEEDS)) is None
    assert launches(read(TraceFile().launch(0, 5, correlation=1), NEEDS)) is None
    assert launches(read(TraceFile().kernel(GEMM, 0, 5).launch(0, 5), NEEDS)) is None  # neither bears an id


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 60)), min_size=1, max_size=8))
def test_the_queue_is_that_of_the_points(rows: list[tuple[int, int, int]]) -> None:
    file = TraceFile()
    for i, (call, length, start) in enumerate(rows, 1):
        file.launch(call, length, correlation=i).kernel(GEMM, start, 5, correlation=i)
    found = of(file)
    low, high = min(s for _, _, s in rows), max(s for _, _, s in rows) + 5
    depth = [sum(c + d <= p < s for c, d, s in rows) for p in range(low, high)]
    assert found.queue_max == max(depth)
    assert abs(found.queue_mean - sum(depth) / len(depth)) < 1e-9
    assert abs(found.queue_empty_share - depth.count(0) / len(depth)) < 1e-9


def test_only_kernels_of_the_window_count() -> None:
    file = TraceFile()
    for i in range(1, 5):
        file.launch(100 * i, 4, correlation=i).kernel(GEMM, 100 * i + 10, 5, correlation=i)
    assert of(file, Window("iterations", 200_000, 400_000)).count == 2
