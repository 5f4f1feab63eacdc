"""What runtime calls cost the device: one stall or many, which call, and the allocator's part."""

from __future__ import annotations

from probes.trace.breakdown.callgaps import Slow
from probes.trace.breakdown.idle import find_gaps
from probes.trace.links import Links
from probes.trace.model import Window
from probes.trace.verdict import candidates
from probes.trace.verdict.candidates import Candidates
from probes.trace.windows import whole
from tests.trace_files import GEMM, TraceFile, read


def of(file: TraceFile, window: Window | None = None) -> Candidates:
    """The candidates of a trace."""
    trace = read(file, candidates.NEEDS)
    links, window = Links(trace), window or whole(trace)
    return candidates.candidates(links, window, find_gaps(trace, links, window))


def gap(call: tuple[float, float], kernel: float = 1000) -> TraceFile:
    """A kernel up to 100 us, and one at `kernel` us whose call is `call` (start, length)."""
    file = TraceFile().launch(0, 5, correlation=1).kernel(GEMM, 10, 90, correlation=1)
    return file.launch(*call, correlation=2).kernel(GEMM, kernel, 10, correlation=2)


def test_the_call_that_took_long_is_named_with_its_length() -> None:
    found = of(gap((200, 795)))
    assert found.slow == Slow("cudaLaunchKernel", 800_000, 1, 795_000)
    assert found.longest_gap_ns == 900_000


def test_a_short_call_answers_for_no_more_than_a_launchs_way() -> None:
    # called at 200 us, done at 205: what is behind 305 us was no matter of the call (SGLang, 463 ms behind a call of 8 us)
    assert of(gap((200, 5))).slow == Slow("cudaLaunchKernel", 105_000, 1, 5_000)


def test_gaps_that_nobody_is_known_to_have_ended_have_no_call() -> None:
    assert of(TraceFile().kernel(GEMM, 0, 5).kernel(GEMM, 50, 5)).slow is None
    assert of(TraceFile().launch(0, 5, correlation=1).kernel(GEMM, 10, 5, correlation=1)).slow is None


def test_the_allocator_costs_what_the_device_idled_for_the_thread_in_it() -> None:
    file = gap((900, 5), 910)
    file.launch(50, 150, name="cudaFree").launch(300, 100, name="cudaMalloc")  # 50 us of the first behind a kernel
    file.launch(500, 300, name="hipFree", tid=9)  # a thread that launches nothing holds nothing up
    found = of(file)
    assert (found.malloc_calls, found.malloc_ns, found.malloc_idle_ns) == (3, 550_000, 200_000)


def test_calls_side_by_side_are_counted_once() -> None:
    file = gap((900, 5), 910).launch(200, 100, name="cudaMalloc").launch(250, 100, name="cudaMalloc", tid=9)
    assert of(file).malloc_ns == 150_000


def test_what_the_window_leaves_out_does_not_count() -> None:
    file = gap((900, 5), 910).launch(200, 300, name="cudaFree")
    found = of(file, Window("iterations", 300_000, 400_000))
    assert (found.malloc_ns, found.malloc_idle_ns, found.longest_gap_ns) == (100_000, 100_000, 100_000)


def test_without_launches_nobody_knows_what_the_allocator_cost() -> None:
    file = TraceFile().kernel(GEMM, 0, 5).kernel(GEMM, 50, 5).launch(10, 30, name="cudaFree")
    assert (of(file).malloc_calls, of(file).malloc_idle_ns) == (1, None)
