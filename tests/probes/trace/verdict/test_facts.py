"""What a trace tells in the vocabulary: every fact accounted for, the numbers those of the summary, the rest with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.facts import Type, vocabulary
from knowledge.observation import Clock, Observation, Scope, Status
from probes.trace.across import ranks
from probes.trace.columns import both
from probes.trace.model import PipelineStage, Ranks
from probes.trace.reading.reader import read as read_file
from probes.trace.verdict import digest as digest_
from probes.trace.verdict.digest import RankDigest
from probes.trace.verdict.facts import observations
from probes.trace.verdict.provides import FACTS, JOB_FACTS, NAMED_FACTS, RANK_FACTS
from tests.trace_files import (
    ELEMENTWISE,
    GEMM,
    Job,
    TraceFile,
    comm_bound,
    compute_bound,
    data_bound,
    launch_bound,
    read,
    sync_bound,
)

JOBS = (compute_bound, data_bound, launch_bound, comm_bound, sync_bound)


def digest(file: TraceFile | Job, window: str = "auto") -> RankDigest:
    """The digest of a trace."""
    return digest_.digest(read(file, digest_.NEEDS), window)


def told(file: TraceFile | Job, window: str = "auto") -> dict[str, Observation]:
    """What a trace told, by fact."""
    return {o.fact: o for o in observations([digest(file, window)])}


@pytest.mark.parametrize(
    "make", [*JOBS, lambda: TraceFile().op("aten::mul", 0, 10), lambda: TraceFile().kernel(GEMM, 0, 5)]
)
def test_every_fact_of_a_rank_is_told_or_has_a_reason(make: type[Job]) -> None:
    found = told(make())
    named = {f for f in RANK_FACTS if not f.endswith((".top", ".what", "trace.device", "trace.iteration.slow"))}
    assert named <= set(found)
    assert set(found) <= set(FACTS)
    for o in found.values():
        assert (o.value is None) == (o.status is not Status.OK)
        assert o.detail or o.status is Status.OK
        assert o.value is None or vocabulary()[o.fact].accepts(o.value)
        assert o.subject.scope is vocabulary()[o.fact].scope


def test_the_list_of_facts_is_that_of_the_vocabulary() -> None:
    shipped = {f.name for f in vocabulary() if f.name.startswith("trace.")}
    assert {*RANK_FACTS, *NAMED_FACTS} == shipped
    assert all(vocabulary()[name].scope is Scope.JOB for name in JOB_FACTS)


@pytest.mark.parametrize("make", JOBS)
@pytest.mark.parametrize("window", ["trace", "iterations"])
def test_the_causes_of_idleness_add_up_to_it(make: type[Job], window: str) -> None:
    found = told(make(), window)
    parts = ("data_loader", "sync", "host", "launch", "kernel", "unknown")
    values = [found[f"trace.idle.{p}.share"].value for p in parts]
    assert all(isinstance(v, float) for v in values)
    whole = found["trace.idle.share"].value
    assert isinstance(whole, float)
    assert sum(v for v in values if isinstance(v, float)) == pytest.approx(whole, abs=0.05)


@pytest.mark.parametrize("make", JOBS)
def test_no_share_leaves_0_to_100(make: type[Job]) -> None:
    for o in told(make()).values():
        spec = vocabulary()[o.fact]
        if spec.unit == "percent" and spec.type is Type.FLOAT and isinstance(o.value, float):
            assert 0 <= o.value <= 100, o.fact


def test_a_value_carries_its_numbers_its_file_and_the_traces_clock() -> None:
    o = told(TraceFile().kernel(GEMM, 0, 30).kernel(GEMM, 90, 10), "trace")["trace.idle.share"]
    assert (o.value, o.excerpt) == (60.0, "0.060 ms / 0.100 ms")
    assert (o.clock, o.window, o.source.probe) == (Clock.TRACE, (0, 100_000), "trace")
    assert o.source.call.endswith("trace.json")


def test_the_window_is_iterations_when_there_are_enough_of_them() -> None:
    assert told(compute_bound(steps=3))["trace.window"].value == "iterations"
    assert told(compute_bound(steps=2))["trace.window"].value == "trace"
    assert told(compute_bound(steps=3), "trace")["trace.window"].value == "trace"


def test_no_gpu_activity_tells_nothing_of_the_gpu() -> None:
    found = told(TraceFile().op("aten::mul", 0, 10))
    assert found["trace.gpu_events"].value == 0
    o = found["trace.idle.share"]
    assert (o.status, o.value) == (Status.UNSUPPORTED, None)
    assert "ProfilerActivity.CUDA" in o.detail
    assert not any(f.startswith("job.step") for f in found)


@pytest.mark.parametrize(
    ("fact", "hint"),
    [
        ("trace.idle.python.share", "with_stack=True"),
        ("trace.checkpoint.share", "with_stack=True"),
        ("trace.memory_bound.share", "record_shapes=True"),
        ("trace.allocator.growth", "profile_memory=True"),
        ("trace.iterations", "prof.step()"),
        ("trace.idle.host.share", "ProfilerActivity.CPU"),
        ("trace.data_loader.share", "DataLoader"),
        ("trace.optimizer", "Optimizer.step"),
    ],
)
def test_what_is_missing_names_what_would_tell(fact: str, hint: str) -> None:
    o = told(TraceFile().kernel(GEMM, 0, 30).kernel(GEMM, 90, 10))[fact]
    assert (o.status, o.value) == (Status.UNSUPPORTED, None)
    assert hint in o.detail


def test_idleness_without_launches_has_no_cause() -> None:
    found = told(TraceFile().kernel(GEMM, 0, 30).kernel(GEMM, 90, 10), "trace")
    assert found["trace.idle.unknown.share"].value == 60.0
    assert found["trace.idle.data_loader.share"].value is None
    assert "job.step.data_wait.share" not in found
    assert found["job.step.gpu_idle.share"].value == 60.0


def test_overlap_is_not_applicable_without_communication() -> None:
    assert told(compute_bound())["trace.overlap.share"].status is Status.NOT_APPLICABLE
    assert told(comm_bound())["trace.overlap.share"].value == 0.0


def test_a_name_full_of_control_characters_is_cleaned() -> None:
    o = told(TraceFile().kernel("evil\x1b[31m\nname", 0, 30))["trace.kernel.top"]
    assert isinstance(o.value, str)
    assert o.value.isprintable()


# --- ranks and jobs -----------------------------------------------------------------------


def _named(tmp_path: Path, *names: str, rank: int | None = None) -> list[RankDigest]:
    out = []
    for name in names:
        path = TraceFile(rank=rank).kernel(ELEMENTWISE, 0, 5).save(tmp_path / name)
        out.append(digest_.digest(read_file(path, digest_.NEEDS)))
    return out


def _subjects(digests: list[RankDigest]) -> list[str]:
    found = {o.subject for o in observations(digests) if o.fact == "trace.whole"}
    return sorted(s.id for s in found)


def test_a_rank_is_called_by_its_number_else_by_its_file(tmp_path: Path) -> None:
    assert _subjects(_named(tmp_path, "a.pt.trace.json", rank=3)) == ["3"]
    assert _subjects(_named(tmp_path, "alone.json.gz")) == ["alone"]
    assert _subjects(_named(tmp_path, "x.json", "y.json", rank=0)) == [
        "x",
        "y",
    ]  # both say rank 0: the files tell them apart


def test_one_trace_compares_no_ranks(tmp_path: Path) -> None:
    found = {o.fact: o for o in observations(_named(tmp_path, "a.json"))}
    assert found["job.trace.ranks"].value == 1
    assert found["job.straggler.share"].status is Status.UNSUPPORTED


def _compared(tmp_path: Path, late_us: float) -> tuple[list[RankDigest], Ranks]:
    """Two ranks of a job, of which rank 1 computes longer and so comes late to each collective."""
    digests, timed = [], []
    for rank in (0, 1):
        file = TraceFile(rank=rank, world=3)
        for step in range(4):
            at, work = step * 2000, 500 + (late_us if rank else 0)
            end = at + 500 + late_us + 100
            args: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
                    "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}  # fmt: skip
            file.annotation(f"ProfilerStep#{step}", at, 1990)
            file.launch(at + 1, 4, correlation=10 * step + 1).kernel(GEMM, at + 10, work, correlation=10 * step + 1)
            file.launch(at + 6, 4, correlation=10 * step + 2)
            file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 10 + work, end - work - at, stream=20,
                        correlation=10 * step + 2, **args)  # fmt: skip
        trace = read_file(file.save(tmp_path / f"rank{rank}.json"), both(digest_.NEEDS, ranks.NEEDS))
        digests.append(digest_.digest(trace))
        timed.append(ranks.digest(trace, digests[-1].window, found=digests[-1].iterations))
    return digests, ranks.compare(timed)


def test_the_rank_that_others_wait_for_is_named(tmp_path: Path) -> None:
    digests, compared = _compared(tmp_path, 600)
    found = {o.fact: o.value for o in observations(digests, compared)}
    assert found["job.straggler.rank"] == "1"
    assert found["job.straggler.cause"] == "compute"
    assert found["job.straggler.of_waiting"] == 100.0
    assert isinstance(found["job.straggler.share"], float)
    assert 25 < found["job.straggler.share"] < 35  # 600 of each 2000 us
    assert found["job.trace.missing"] == ("2",)
    assert found["job.trace.ranks"] == 2


def test_ranks_in_step_have_no_straggler(tmp_path: Path) -> None:
    digests, compared = _compared(tmp_path, 0)
    found = {o.fact: o.value for o in observations(digests, compared)}
    assert found["job.straggler.share"] in (0, 0.0)
    assert isinstance(found["job.collective.wait.share"], float)
    assert found["job.collective.wait.share"] < 1


def test_a_rank_that_waits_for_others_says_so_and_the_late_one_does_not(tmp_path: Path) -> None:
    digests, compared = _compared(tmp_path, 600)
    waits = {o.subject.id: o.value for o in observations(digests, compared) if o.fact == "trace.collective_wait.share"}
    assert isinstance(waits["0"], float)
    assert 25 < waits["0"] < 35
    assert waits["1"] == 0.0
    alone = {o.fact: o for o in observations(digests[:1])}["trace.collective_wait.share"]
    assert (alone.status, alone.value) == (Status.UNSUPPORTED, None)


def test_the_bubbles_of_a_pipeline_are_facts_of_the_job() -> None:
    d = digest(compute_bound())
    stages = [replace(d, stage=PipelineStage(r, "f", r, 2, 1000, 300, 300, 8, 2, 4)) for r in (0, 1)]
    found = {o.fact: o for o in observations(stages)}
    assert (found["job.pipeline.bubble.share"].value, found["job.pipeline.ideal.share"].value) == (30.0, 20.0)
    assert "job.pipeline.bubble.share" not in {o.fact for o in observations([d])}


# --- memory, iterations -------------------------------------------------------------------


def _leaking(keep: int) -> TraceFile:
    """Five steps that allocate 100 MiB each and free all but `keep` MiB of it."""
    file = TraceFile().kernel(GEMM, 0, 6000)
    held = 0
    for step in range(5):
        at = step * 1000
        file.annotation(f"ProfilerStep#{step}", at, 1000).launch(at + 1, 4, correlation=step).kernel(
            GEMM, at + 6, 900, correlation=step
        )
        held += 100 << 20
        file.memory(at + 100, 100 << 20, address=step + 1, allocated=held, reserved=800 << 20)
        held -= (100 - keep) << 20
        file.memory(at + 900, -((100 - keep) << 20), address=step + 1, allocated=held, reserved=800 << 20)
    return file


def test_growth_and_peak_of_the_allocator_are_told() -> None:
    leaking, steady = told(_leaking(10)), told(_leaking(0))
    growth = leaking["trace.allocator.growth"].value
    assert isinstance(growth, float)
    assert growth > 1
    assert steady["trace.allocator.growth"].value == 0.0
    assert steady["trace.allocator.peak"].value == 100.0


def test_what_is_reserved_is_cache_as_long_as_the_driver_is_asked_for_nothing() -> None:
    file = _leaking(0)
    assert told(file)["trace.allocator.fragmentation"].status is Status.NOT_APPLICABLE
    asked = told(file.launch(1500, 20, name="cudaMalloc"))["trace.allocator.fragmentation"]
    assert asked.value == 87.5


def test_a_slow_iteration_is_named_with_what_grew() -> None:
    job = Job()
    for number in range(8):
        job.train_step(number, data=8000 if number == 5 else 10, item=True)
    found = told(job)
    slow = found["trace.iteration.slow"].value
    assert isinstance(slow, tuple)
    assert len(slow) == 1
    assert slow[0].startswith("ProfilerStep#5 (")
    cost = found["trace.iteration.slow.share"].value
    assert isinstance(cost, float)
    assert cost > 20


def test_two_iterations_are_too_few_to_call_one_slow() -> None:
    found = told(compute_bound(steps=2))
    for fact in ("trace.iteration.first", "trace.iteration.slow"):
        assert found[fact].status is Status.NOT_APPLICABLE
