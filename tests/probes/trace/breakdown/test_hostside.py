"""What the host did while the GPU was idle: charged to Python, operators, threads, savers, and the caller of a wait."""

from __future__ import annotations

import pytest

from probes.trace.breakdown import hostside
from probes.trace.breakdown.hostside import HostSide
from probes.trace.breakdown.idle import find_gaps
from probes.trace.links import Links
from probes.trace.windows import whole
from tests.trace_files import DATA_LOADER, ELEMENTWISE, Job, TraceFile, data_bound, launch_bound, read, sync_bound


def of(file: TraceFile | Job) -> HostSide:
    """The host's side of a whole trace."""
    trace = read(file, hostside.NEEDS)
    links, window = Links(trace), whole(trace)
    return hostside.hostside(links, window, find_gaps(trace, links, window))


def two_kernels(gap_us: int = 1000) -> TraceFile:
    """Two kernels of 10 us, each launched 10 us ahead, with a gap of `gap_us` between them."""
    file = TraceFile().launch(0, 5, correlation=1).kernel(ELEMENTWISE, 10, 10, correlation=1)
    return file.launch(10 + gap_us, 5, correlation=2).kernel(ELEMENTWISE, 20 + gap_us, 10, correlation=2)


def test_a_gap_is_split_between_python_and_operators_to_the_nanosecond() -> None:
    file = two_kernels().python("train.py(3): main", 0, 1100).op("aten::mul", 500, 200, tid=1)
    h = of(file)
    assert h.operators_ns == 200_000
    assert h.python_ns == 990_000 - 200_000  # the gap up to the launch call, without the operator
    assert h.python_top == "train.py(3): main"


def test_without_stacks_python_is_not_known_and_not_zero() -> None:
    h = of(two_kernels().op("aten::mul", 500, 200))
    assert (h.stacks, h.python_ns, h.threads_ns, h.checkpoint_ns) == (False, None, None, None)
    assert h.operators_ns == 200_000


def test_without_launch_calls_nothing_is_charged_to_the_host() -> None:
    file = TraceFile().kernel(ELEMENTWISE, 10, 10).kernel(ELEMENTWISE, 900, 10).python("train.py(3): main", 0, 1000)
    h = of(file)
    assert (h.python_ns, h.operators_ns, h.sync_calls) == (None, None, None)


def test_the_function_to_blame_is_the_users_and_names_what_it_calls() -> None:
    file = (
        two_kernels().python("train.py(3): main", 0, 1100).python("torch/nn/modules/module.py(1): _call_impl", 20, 1000)
    )
    file.python("<built-in method sort of list object at 0x7f00>", 30, 900)
    assert of(file).python_top == "train.py(3): main > <built-in method sort of list>"


def test_waiting_for_the_backward_thread_is_no_python() -> None:
    file = two_kernels().python("train.py(3): main", 0, 1100)
    file.python("<built-in method run_backward of torch._C._EngineBase object at 0x1>", 20, 1000)
    assert of(file).python_ns == 0


@pytest.mark.parametrize(("name", "busy"), [("loader.py(5): decode", True), ("threading.py(9): wait", False)])
def test_another_thread_counts_while_it_runs_and_not_while_it_waits(name: str, busy: bool) -> None:
    file = two_kernels().python("train.py(3): main", 0, 1100).python(name, 0, 1100, tid=9)
    assert of(file).threads_ns == (990_000 if busy else 0)


def test_threads_of_another_process_share_no_interpreter() -> None:
    file = two_kernels().python("train.py(3): main", 0, 1100).python("worker.py(5): decode", 0, 1100, pid=77)
    assert of(file).threads_ns == 0


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        (DATA_LOADER, "some"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "none"),
        ("enumerate(DataLoader)#MyIter.__next__", ""),
    ],
)
def test_the_iterators_name_tells_who_makes_the_batches(name: str, workers: str) -> None:
    h = of(two_kernels().annotation(name, 100, 300))
    assert (h.workers, h.loader_ns) == (workers, 300_000)
    assert h.python_ns is None


def test_without_an_iterator_the_loader_is_not_known() -> None:
    assert of(two_kernels()).loader_ns is None


def test_a_save_costs_what_the_gpu_was_idle_meanwhile() -> None:
    file = two_kernels().python("train.py(3): main", 0, 1100)
    assert of(file).checkpoint_ns == 0
    file.python("torch/serialization.py(850): save", 0, 620)
    h = of(file)
    assert (h.checkpoint_ns, h.checkpoint) == (600_000, "torch/serialization.py(850): save")


def test_activation_checkpointing_saves_nothing() -> None:
    file = two_kernels().python("torch/utils/checkpoint.py(400): checkpoint", 0, 1100).op("CheckpointFunction", 0, 1000)
    assert of(file).checkpoint_ns == 0


def test_the_caller_of_the_wait_that_left_the_longest_gap_is_named() -> None:
    assert of(sync_bound()).sync_top == "aten::item"
    assert of(launch_bound()).sync_top == ""
    file = two_kernels().launch(12, 18, name="cudaStreamSynchronize", correlation=9)
    assert of(file).sync_top == "cudaStreamSynchronize"
    file.python("train.py(3): main", 0, 1100).python("torch/cuda/streams.py(2): synchronize", 11, 20)
    assert of(file).sync_top == "cudaStreamSynchronize in train.py(3): main"


def test_calls_that_wait_are_counted_and_asynchronous_copies_are_not() -> None:
    file = two_kernels()
    for i, name in enumerate(
        ("cudaMemcpyAsync", "cudaMemcpy", "hipMemcpyWithStream", "cudaEventSynchronize", "cudaFree")
    ):
        file.launch(100 + 10 * i, 5, name=name, correlation=100 + i)
    assert of(file).sync_calls == 3


def test_time_in_the_loader_is_no_python_and_no_operator() -> None:
    h = of(data_bound(0.6))
    assert h.python_ns is not None
    assert h.loader_ns is not None
    assert h.loader_ns > 10 * h.python_ns
