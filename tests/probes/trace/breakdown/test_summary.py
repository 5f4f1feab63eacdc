"""The temporal breakdown: laws against sets of points, and traces that tell little."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import summary
from probes.trace.model import RankSummary, Window
from probes.trace.names.classify import KernelClass
from probes.trace.reading.reader import Trace
from tests.trace_files import (
    ALLREDUCE,
    ELEMENTWISE,
    GEMM,
    TraceFile,
    comm_bound,
    compute_bound,
    data_bound,
    launch_bound,
    read,
    sync_bound,
)

KINDS = {"compute": GEMM, "comm": ALLREDUCE, "mem": "Memcpy HtoD (Pinned -> Device)"}
Event = tuple[str, int, int]  # kind, start and length in ns
EVENTS = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 60), st.integers(0, 15)), min_size=1, max_size=12
)
TIMES = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "comm_ns", "mem_ns", "comm_compute_overlap_ns", "exposed_comm_ns",
         "exposed_mem_ns")  # fmt: skip
COUNTS = ("kernels", "comm_kernels", "mem_ops")


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def file_of(events: list[Event], shift: int = 1_000_000) -> TraceFile:
    """Calls end before everything, so that all kernels have a known cause of waiting; streams by turns."""
    file = TraceFile(rank=3, world=4)
    for i, (kind, start, length) in enumerate(events):
        file.launch(us(shift // 2 + i), "0.001", correlation=i + 1)
        add = file.memcpy if kind == "mem" else file.kernel
        add(KINDS[kind], us(start + shift), us(length), correlation=i + 1, stream=7 + i % 2)
    return file


def trace_of(events: list[Event], shift: int = 1_000_000) -> Trace:
    return read(file_of(events, shift), summary.NEEDS)


def points(events: list[Event], kind: str = "") -> set[int]:
    return {p for k, start, length in events if kind in ("", k) for p in range(start, start + length)}


def add_up(found: RankSummary) -> None:
    assert found.busy_ns + found.idle_ns == found.span_ns
    assert found.compute_ns + found.exposed_comm_ns + found.exposed_mem_ns + found.idle_ns == found.span_ns
    if found.idle is not None:
        parts = found.idle
        assert parts.total_ns == found.idle_ns
        assert parts.total_ns == sum(
            (parts.data_loader_ns, parts.sync_ns, parts.host_ns, parts.launch_ns, parts.kernel_ns, parts.unknown_ns)
        )
        assert 0 <= parts.late_ns <= parts.launch_ns
        assert 0 <= parts.after_sync_ns <= parts.host_ns + parts.launch_ns


@given(EVENTS)
def test_the_breakdown_is_that_of_the_points(events: list[Event]) -> None:
    found = summary.summarise(trace_of(events))
    span = max(s + d for _, s, d in events) - min(s for _, s, _ in events)
    comm, compute, mem = (points(events, k) for k in ("comm", "compute", "mem"))
    assert [getattr(found, t) for t in TIMES] == [
        span, len(points(events)), span - len(points(events)), len(compute), len(comm), len(mem), len(comm & compute),
        len(comm - compute), len(mem - compute - comm)]  # fmt: skip
    assert [getattr(found, c) for c in COUNTS] == [
        sum(k != "mem" for k, _, _ in events), sum(k == "comm" for k, _, _ in events), sum(k == "mem" for k, _, _ in events)]  # fmt: skip
    add_up(found)


@given(EVENTS, st.integers(2_000_000, 9 * 10**17))
def test_a_shift_of_all_times_changes_nothing(events: list[Event], shift: int) -> None:
    one, other = summary.summarise(trace_of(events)), summary.summarise(trace_of(events, shift))
    assert [getattr(one, t) for t in TIMES] == [getattr(other, t) for t in TIMES]
    assert one.top_kernels == other.top_kernels
    assert one.streams == other.streams
    assert one.idle == other.idle


@given(EVENTS, st.randoms(use_true_random=False))
def test_the_order_in_the_file_does_not_matter(events: list[Event], random: object) -> None:
    file = file_of(events)
    one = summary.summarise(read(file, summary.NEEDS))
    random.shuffle(file.events)  # type: ignore[attr-defined]
    other = summary.summarise(read(file, summary.NEEDS))
    assert one == other


@given(EVENTS, st.data())
def test_a_kernel_in_two_touching_halves_is_as_long(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    kind, start, length = events[at]
    cut = data.draw(st.integers(0, length))
    halves = [*events[:at], (kind, start, cut), (kind, start + cut, length - cut), *events[at + 1 :]]
    one, other = summary.summarise(trace_of(events)), summary.summarise(trace_of(halves))
    assert [getattr(one, t) for t in TIMES] == [getattr(other, t) for t in TIMES]
    assert one.classes == other.classes


@given(EVENTS, st.lists(st.integers(0, 80), max_size=4))
def test_windows_that_part_the_trace_add_up_to_it(events: list[Event], cuts: list[int]) -> None:
    trace = trace_of(events)
    base = 1_000_000
    whole = summary.summarise(trace, Window("iterations", base - 5, base + 90))
    edges = [base - 5, *sorted(base + c for c in cuts), base + 90]
    pieces = [summary.summarise(trace, Window("iterations", a, b)) for a, b in pairwise(edges)]
    for piece in pieces:
        add_up(piece)
    for field in (*TIMES, *COUNTS):
        assert getattr(whole, field) == sum(getattr(p, field) for p in pieces)
    assert whole.idle is not None
    assert whole.idle.unknown_ns == sum(p.idle.unknown_ns for p in pieces if p.idle is not None)
    assert sum(whole.classes.values()) == sum(sum(p.classes.values()) for p in pieces)


def test_waits_and_annotations_on_a_stream_are_no_busy_time() -> None:
    file = TraceFile().kernel(GEMM, 0, 10).kernel(GEMM, 50, 10)
    file.wait("Stream Synchronize", 12, 30).annotation("ProfilerStep#1", 0, 60, gpu=True)
    found = summary.summarise(read(file, summary.NEEDS))
    assert (found.span_ns, found.busy_ns, found.kernels) == (60_000, 20_000, 2)


def test_a_trace_without_gpu_says_how_to_record_it() -> None:
    found = summary.summarise(read(TraceFile(gpu="").op("aten::mm", 0, 10).launch(2, 3), summary.NEEDS))
    assert [getattr(found, f) for f in (*TIMES, *COUNTS)] == [0] * (len(TIMES) + len(COUNTS))
    assert (found.idle, found.launches, found.tensor_core) == (None, None, None)
    assert (found.top_kernels, found.streams, found.devices) == ((), (), 0)
    window = Window("iterations", 0, 10_000)
    assert summary.summarise(read(TraceFile(gpu="").op("aten::mm", 0, 10), summary.NEEDS), window).idle_ns == 0
    assert any("ProfilerActivity.CUDA" in note.en and "ProfilerActivity.CUDA" in note.zh for note in found.notes)


def test_what_stands_in_a_summary(tmp_path: Path) -> None:
    job = comm_bound(rank=1, world=2)
    trace = read(job, summary.NEEDS)
    found = summary.summarise(trace, top=2)
    assert (found.rank, found.world_size, found.gpu) == (1, 2, "NVIDIA H100 80GB HBM3")
    assert [k.name for k in found.top_kernels] == [ALLREDUCE, GEMM]
    assert found.top_kernels[0].kind is KernelClass.COMMUNICATION
    assert found.exposed_comm_ns > found.compute_ns
    assert {s.stream: s.comm_ns > 0 for s in found.streams} == {"7": False, "20": True}
    assert found.tensor_core is not None
    assert abs(found.tensor_core.yes + found.tensor_core.no + found.tensor_core.unknown - 1) < 1e-12
    assert found.tensor_core.yes == found.classes["gemm"] / sum(found.classes.values())
    assert list(found.classes.values()) == sorted(found.classes.values(), reverse=True)
    style = {
        s: replace(summary.summarise(read(job, summary.NEEDS, style=s)), file="") for s in ("kineto", "old", "compact")
    }
    assert style["kineto"] == style["old"] == style["compact"]


def test_jobs_show_their_ailments() -> None:
    found = {
        make: summary.summarise(read(make(), summary.NEEDS))
        for make in (compute_bound, data_bound, launch_bound, sync_bound)
    }
    for one in found.values():
        add_up(one)
    assert found[compute_bound].idle_ns < 0.05 * found[compute_bound].span_ns
    data, host, sync = (found[m].idle for m in (data_bound, launch_bound, sync_bound))
    assert data is not None
    assert data.data_loader_ns > 0.9 * data.total_ns
    assert host is not None
    assert host.host_ns > 0.6 * host.total_ns
    assert sync is not None
    assert sync.after_sync_ns > 0.8 * sync.total_ns


def test_notes_on_what_the_numbers_hide() -> None:
    early = TraceFile()
    for i in range(1, 4):
        early.launch(100 * i + 50, 5, correlation=i).kernel(GEMM, 100 * i, 10, correlation=i)
    lost = TraceFile(devices=2).kernel(GEMM, 0, 10, correlation=1).kernel(ELEMENTWISE, 20, 5, device=1)
    assert "clocks of host and device disagree" in summary.summarise(read(early, summary.NEEDS)).notes[0].en
    notes = [note.en for note in summary.summarise(read(lost, summary.NEEDS)).notes]
    assert [("not recorded" in n, "2 devices" in n) for n in notes] == [(True, False), (False, True)]
