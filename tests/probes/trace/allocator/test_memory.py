"""The allocator's timeline: its laws, growth, holders, and calls to the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.allocator.memory import NEEDS, growth, memory_use, segment_calls, timeline
from probes.trace.model import Iteration, Iterations, MemoryUse
from probes.trace.reading.reader import read
from tests.trace_files import TraceFile

MIB = 1 << 20


def steps(count: int, length: int = 1000) -> Iterations:
    items = tuple(
        Iteration(i, f"ProfilerStep#{i}", i * length, (i + 1) * length, 0, 0, 0, 0, 0, 0, 0) for i in range(count)
    )
    return Iterations(None, "t.json", "ProfilerStep", "cpu", items, length)


def uses(file: TraceFile, path: Path, iterations: Iterations | None = None) -> tuple[MemoryUse, ...]:
    return memory_use(read(file.save(path / "t.json"), NEEDS), iterations)


changes = st.lists(st.integers(-500, 500).filter(bool), min_size=1, max_size=300)


@given(changes, st.integers(8, 60))
def test_a_timeline_ends_where_the_sum_ends_and_keeps_the_extremes(sizes: list[int], points: int) -> None:
    total = np.cumsum(np.array(sizes, np.int64))
    at = np.arange(len(sizes), dtype=np.int64) * 7
    found = timeline(at, total, total * 2, points)
    assert found[-1].allocated == sum(sizes)
    assert found[0].allocated == sizes[0]
    assert max(p.allocated for p in found) == total.max()
    assert min(p.allocated for p in found) == total.min()
    assert max(p.reserved for p in found) == 2 * total.max()
    assert len(found) <= max(points, 4)
    assert [p.at_ns for p in found] == sorted(p.at_ns for p in found)


def test_many_events_at_one_time_stay_bounded() -> None:
    at = np.zeros(10_000, np.int64)
    total = np.cumsum(np.ones(10_000, np.int64))
    assert len(timeline(at, total, total)) <= 8


def test_peaks_churn_and_what_was_there_before(tmp_path: Path) -> None:
    file = TraceFile()
    for i, (change, total) in enumerate([(10, 110), (30, 140), (-10, 130), (-30, 100)]):
        file.memory(i, change * MIB, address=i % 2, allocated=total * MIB, reserved=200 * MIB)
    (one,) = uses(file, tmp_path)
    assert (one.device, one.allocations, one.frees, one.churn_bytes) == ("CUDA 0", 2, 2, 40 * MIB)
    assert (one.peak_allocated, one.end_allocated, one.peak_reserved) == (140 * MIB, 100 * MIB, 200 * MIB)
    assert (one.fragmentation, one.largest_request) == (0.3, 30 * MIB)
    assert any("before the trace began" in n.en for n in one.notes)
    assert one.growth_per_iteration is None


def test_unrecorded_totals_are_summed_and_said(tmp_path: Path) -> None:
    file = TraceFile()
    for i, change in enumerate([-5, 10, -3]):
        file.memory(i, change, address=i)
    (one,) = uses(file, tmp_path)
    assert (one.peak_allocated, one.end_allocated) == (10, 7)
    assert any("unknown base" in n.en for n in one.notes)


def test_devices_are_told_apart_and_named(tmp_path: Path) -> None:
    file = TraceFile()
    for device, kind in ((-1, 0), (0, 1), (1, 1), (0, 6), (2, 99)):
        file.memory(device + 5, 8, allocated=8, reserved=16, device=device, device_type=kind)
    assert [u.device for u in uses(file, tmp_path)] == ["CUDA 0", "CUDA 1", "HIP 0", "device type 99 2", "CPU"]


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=8), st.integers(0, 10**6))
def test_a_mark_that_always_rises_is_growth(rises: list[int], base: int) -> None:
    lows = np.cumsum(np.array([base, *rises], np.int64))
    at = np.arange(len(lows), dtype=np.int64) * 1000 + 5
    found = growth(at, lows, steps(len(lows)))
    assert found is not None
    assert min(rises) <= found <= max(rises)
    assert growth(at, lows, steps(2)) is None
    assert growth(at, lows, None) is None
    assert growth(at, lows[::-1].copy(), steps(len(lows))) == 0


def test_a_state_allocated_once_is_no_growth() -> None:
    lows = np.array([100, 900, 900, 900, 900], np.int64)
    assert growth(np.arange(5, dtype=np.int64) * 1000, lows, steps(5)) == 0


def test_holders_at_the_peak_are_the_operators_that_asked(tmp_path: Path) -> None:
    file = TraceFile()
    file.op("aten::linear", 0, 100).op("aten::addmm", 1, 90).op("aten::empty", 2, 5)
    file.memory(3, 70 * MIB, address=1, allocated=70 * MIB, reserved=200 * MIB)
    file.op("aten::cat", 200, 50).memory(210, 50 * MIB, address=2, allocated=120 * MIB, reserved=200 * MIB)
    file.memory(220, -50 * MIB, address=2, allocated=70 * MIB, reserved=200 * MIB)
    file.op("aten::relu", 300, 50).memory(310, 60 * MIB, address=2, allocated=130 * MIB, reserved=200 * MIB)
    file.memory(320, 1, address=9, allocated=10, reserved=200 * MIB)
    (one,) = uses(file, tmp_path)
    assert one.top == (("aten::addmm", 70 * MIB), ("aten::relu", 60 * MIB))


def test_calls_to_the_driver_count_from_the_second_iteration_on(tmp_path: Path) -> None:
    file = TraceFile().memory(0, 8, allocated=8, reserved=16)
    for i in range(6):
        file.launch(i, 1, name="cudaMalloc" if i % 2 else "cudaFree")
    file.launch(9, 1, name="cudaMallocAsync")
    trace = read(file.save(tmp_path / "t.json"), NEEDS)
    assert segment_calls(trace) == 6
    assert segment_calls(trace, steps(6, 2000)) == 4
    assert memory_use(trace, steps(6, 2000))[0].segment_events == 4


def test_without_events_nothing_is_claimed(tmp_path: Path) -> None:
    assert uses(TraceFile().op("aten::mm", 0, 1), tmp_path) == ()
