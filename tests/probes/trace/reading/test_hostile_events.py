"""Whatever stands in a trace, the analyses give numbers that add up."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import idle, kernels, summary
from probes.trace.columns import both
from tests.trace_files import TraceFile, read

NEEDS = both(summary.NEEDS, kernels.NEEDS)
CATEGORIES = (
    "kernel",
    "Kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cpu_op",
    "python_function",
    "user_annotation",
    "cuda_sync",
    "odd",
)
NAMES = st.sampled_from(["nccl", "", "\x1b[31m", "_Z", "_ZN99999x", "nn.Module: ", "a.py(1): f", "cudaStreamSynchronize", "cudaGraphLaunch",
                         "enumerate(DataLoader)#x", "ProfilerStep#1"]) | st.text(max_size=8)  # fmt: skip
VALUES = (
    st.none() | st.integers(-(2**70), 2**70) | st.sampled_from([0, 1, 1, 1, -1, "7", "", [], [[1, 2], []], 1.5, True])
)
ARGS = st.dictionaries(st.sampled_from([
    "correlation", "External id", "device", "stream", "Input Dims", "Module Hierarchy", "Call stack", "Sequence number", "Fwd thread id"]), VALUES)  # fmt: skip
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(CATEGORIES),
        NAMES,
        st.integers(-50, 50),
        st.integers(-2, 30),
        st.sampled_from([0, 1, "Spans", ""]),
        ARGS,
    ),
    max_size=12,
)


@given(EVENTS)
def test_odd_events_give_numbers_that_add_up(events: list[tuple[str, str, int, int, Any, dict[str, Any]]]) -> None:
    file = TraceFile()
    for cat, name, start, dur, thread, args in events:
        file.add(cat, name, start, dur, thread, thread, args)
    trace = read(file.kernel("k", 0, 1), NEEDS, style="compact")
    found = summary.summarise(trace)
    assert found.idle is not None
    assert found.compute_ns + found.exposed_comm_ns + found.exposed_mem_ns + found.idle_ns == found.span_ns
    whole = sum(k.total_ns for k in kernels.kernel_stats(trace))
    for by in kernels.BY:
        assert sum(k.total_ns for k in kernels.kernel_stats(trace, by)) == whole
    assert all(g.size_ns > 0 for g in idle.gaps(trace))
    for by in ("name", "shape"):
        assert sum(o.gpu_ns for o in kernels.op_stats(trace, by)) <= int(trace.gpu.dur.sum())
