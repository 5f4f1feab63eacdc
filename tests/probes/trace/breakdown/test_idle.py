"""Why the device was idle: one small story for each cause, and the longest gaps with what the host was in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import idle, kernels, summary
from probes.trace.breakdown.idle import is_data_loader, is_synchronising
from probes.trace.columns import both
from probes.trace.model import Idle, Window
from tests.trace_files import GEMM, TraceFile, read

NEEDS = both(summary.NEEDS, kernels.NEEDS)


def pair(gap: tuple[int, int] = (100, 200)) -> TraceFile:
    """Two kernels, and nothing between them."""
    return TraceFile().launch(0, 5, correlation=1).kernel(GEMM, 10, gap[0] - 10, correlation=1).kernel(GEMM, gap[1], 10, correlation=2)  # fmt: skip


def causes(file: TraceFile, window: Window | None = None) -> dict[str, int]:
    """The parts in microseconds, those that are not zero."""
    found = idle.idle(read(file, NEEDS), window)
    assert isinstance(found, Idle)
    parts = {f: getattr(found, f) for f in Idle.__slots__}
    assert parts["total_ns"] == sum(v for k, v in parts.items() if k not in ("total_ns", "after_sync_ns", "late_ns"))
    return {k.removesuffix("_ns"): v // 1000 for k, v in parts.items() if v}


def test_launched_before_the_gap_the_device_waited_for_itself() -> None:
    assert causes(pair().launch(20, 5, correlation=2)) == {"total": 100, "kernel": 100}


def test_launched_at_the_very_moment_the_gap_began() -> None:
    assert causes(pair().launch(80, 20, correlation=2)) == {"total": 100, "kernel": 100}


def test_launched_within_the_gap_the_host_was_late() -> None:
    assert causes(pair().launch(160, 5, correlation=2)) == {"total": 100, "host": 60, "launch": 40}


def test_a_call_in_progress_when_the_gap_began_is_launching() -> None:
    assert causes(pair().launch(95, 10, correlation=2)) == {"total": 100, "launch": 100}


def test_a_call_that_seems_to_follow_its_kernel_was_host_time() -> None:
    assert causes(pair().launch(230, 10, correlation=2)) == {"total": 100, "host": 100}


def test_no_call_no_cause() -> None:
    assert causes(pair()) == {"total": 100, "unknown": 100}


def test_a_launch_that_arrives_late_is_told() -> None:
    file = pair((100, 900)).launch(150, 10, correlation=2)
    assert causes(file) == {"total": 800, "host": 50, "launch": 110, "kernel": 640, "late": 640}


def test_data_and_waiting_are_the_launching_threads() -> None:
    file = pair().launch(180, 5, correlation=2)
    file.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 110, 30)
    file.launch(90, 30, name="cudaStreamSynchronize").launch(150, 10, name="cudaMemcpy")
    file.annotation("enumerate(DataLoader)#_Other.__next__", 100, 80, tid=9).launch(
        100, 80, name="cudaDeviceSynchronize", tid=9
    )
    # 100..110 waiting, 110..140 in the loader (also while a call waits in it), 150..160 a blocking copy
    assert causes(file) == {"total": 100, "data_loader": 30, "sync": 20, "host": 30, "launch": 20, "after_sync": 50}


def test_the_loader_of_old_traces_is_an_operator() -> None:
    file = (
        pair()
        .launch(180, 5, correlation=2)
        .op("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 75)
    )
    assert causes(file)["data_loader"] == 75


def test_a_graph_waits_for_its_launch_once() -> None:
    file = pair().launch(150, 5, correlation=2, name="cudaGraphLaunch").kernel(GEMM, 230, 10, correlation=2)
    assert causes(file) == {"total": 120, "host": 50, "launch": 50, "kernel": 20}


def test_kernels_of_a_graph_do_not_wait_for_a_call_that_is_still_going_on() -> None:
    file = pair().launch(150, 100, correlation=2, name="hipGraphLaunch").kernel(GEMM, 230, 10, correlation=2)
    assert causes(file) == {"total": 120, "host": 50, "launch": 50, "kernel": 20}


def test_a_window_cuts_gaps_and_their_causes() -> None:
    file = pair().launch(160, 5, correlation=2)
    assert causes(file, Window("iterations", 150_000, 180_000)) == {"total": 30, "host": 10, "launch": 20}
    # nobody knows why nothing ran behind the last kernel; before the first it was its launch
    assert causes(file, Window("iterations", -20_000, 250_000)) == {
        "total": 170, "host": 80, "launch": 50, "unknown": 40}  # fmt: skip


def test_each_device_has_its_own_gaps_and_a_peer_that_is_only_copied_to_has_none() -> None:
    file = pair().launch(20, 5, correlation=2)
    file.memcpy("Memcpy PtoP (Device -> Device)", 50, 5, device=1)
    assert causes(file)["total"] == 100
    file.kernel(GEMM, 10, 50, device=2).kernel(GEMM, 70, 140, device=2)
    assert causes(file)["total"] == 110


def test_names() -> None:
    assert [is_synchronising(n) for n in (
        "cudaStreamSynchronize", "hipDeviceSynchronize", "cuCtxSynchronize", "cudaMemcpy", "hipMemcpyWithStream", "cudaMemcpyAsync",
        "cudaStreamWaitEvent", "cudaLaunchKernel", "cuMemcpyDtoHAsync_v2")] == [True] * 5 + [False] * 4  # fmt: skip
    assert is_data_loader("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    assert is_data_loader("MyDataLoaderIter.__next__")
    assert not is_data_loader("DataLoader.build")


def test_the_longest_gaps_name_the_users_function() -> None:
    file = pair((100, 400)).launch(380, 5, correlation=2).annotation("ProfilerStep#3", 0, 500)
    file.python("train.py(7): main", 0, 500).python("train.py(40): shuffle", 105, 250)
    file.python("torch/nn/modules/module.py(1773): _wrapped_call_impl", 106, 248).python(
        "train.py(90): third", 110, 100
    )
    file.python("train.py(99): on another thread", 120, 200, tid=9)
    file.kernel(GEMM, 420, 5, correlation=3)
    found = idle.gaps(read(file, NEEDS), top=5)
    assert [(g.size_ns, g.cause, g.blame, g.blame_kind, g.iteration) for g in found] == [
        (300_000, "host", "train.py(40): shuffle", "python", "ProfilerStep#3"), (10_000, "unknown", "", "", "ProfilerStep#3")]  # fmt: skip
    assert [g.size_ns for g in idle.gaps(read(file, NEEDS), top=1)] == [300_000]


def test_gaps_name_the_loader_the_operator_or_the_call() -> None:
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    file = (
        pair((100, 400)).launch(380, 5, correlation=2).python("train.py(7): main", 0, 500).annotation(loader, 101, 200)
    )
    assert [(g.cause, g.blame) for g in idle.gaps(read(file, NEEDS))] == [("data_loader", loader)]
    file = pair((100, 400)).launch(380, 5, correlation=2).launch(100, 270, name="cudaStreamSynchronize")
    assert [(g.cause, g.blame, g.blame_kind) for g in idle.gaps(read(file, NEEDS))] == [
        ("sync", "cudaStreamSynchronize", "runtime")
    ]
    file.op("aten::item", 90, 290)
    assert [g.blame for g in idle.gaps(read(file, NEEDS))] == ["aten::item"]


def test_no_gpu_no_gaps() -> None:
    trace = read(TraceFile().op("aten::mm", 0, 5), NEEDS)
    assert idle.idle(trace) is None
    assert idle.gaps(trace) == ()


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20), st.integers(0, 90)), min_size=1, max_size=8),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_parts_add_up_in_any_window(rows: list[tuple[int, int, int]], low: int, size: int) -> None:
    file = TraceFile()
    for i, (start, length, call) in enumerate(rows):
        file.kernel(GEMM, start, length, correlation=i).launch(call, 3, correlation=i)
    causes(file, Window("iterations", low * 1000, (low + size) * 1000))
