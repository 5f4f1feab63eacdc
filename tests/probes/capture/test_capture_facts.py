"""Facts of a capture that are its own: parts, cost, relations, iterations; and the format that reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Source, Status, Subject, node
from knowledge.observation_json import plain
from probes import registry
from probes.base import Context
from probes.capture import facts, manifest, trace_facts
from probes.capture.model import SCHEMA, Process, Target
from probes.parse import job_capture

HOST = "gpu-12"
PID = Subject(Scope.PROCESS, "4242", node(HOST))


def document(**row: Any) -> dict[str, Any]:
    """A capture of one process."""
    target = Target(Process(4242, 1, "python"), 1, 1, 2, "job-7", ("0000:3b:00.0",))
    return {
        "schema": SCHEMA, "id": "x", "host": HOST, "as_of": 1_700_000_000_000_000_000, "window": {"began": 10**9, "ended": 3 * 10**9},
        "targets": [{**json.loads(json.dumps(manifest.plain_target(target))), **row}],
    }  # fmt: skip


def told(found: Sequence[Observation], fact: str, subject: Subject = PID) -> Any:
    """The value of a fact."""
    return next((o.value for o in found if o.fact == fact and o.subject == subject and o.status is Status.OK), None)


def test_who_is_which_rank_on_which_gpu() -> None:
    found = facts.observations(document())
    rank = Subject(Scope.RANK, "1", Subject(Scope.JOB, "job-7", node(HOST)))
    assert told(found, "process.in_job") == "job:job-7"
    assert told(found, "process.is_rank") == "rank:1"
    assert told(found, "rank.is_process", rank) == "process:4242"
    assert told(found, "rank.uses_gpu", rank) == "gpu:0000:3b:00.0"
    assert told(found, "capture.window.seconds") == 2.0
    assert all(o.at == 1_700_000_000_000_000_000 for o in found if o.status is Status.OK)


def test_parts_that_were_not_got_are_named_and_those_not_agreed_to_are_not() -> None:
    parts = [
        {"item": i, "outcome": o}
        for i, o in (("stacks", "ok"), ("torch", "failed"), ("kernels", "declined"), ("shapes", "refused"))
    ]
    assert told(facts.observations(document(parts=parts)), "capture.parts.missing") == ("shapes", "torch")


def test_stacks_that_were_refused_are_lacked_with_the_reason() -> None:
    why, remedy = {"en": "it belongs to root", "zh": "x"}, {"en": "run it as root", "zh": "x"}
    for outcome, status in (("refused", Status.DENIED), ("failed", Status.FAILED), ("timeout", Status.TIMEOUT)):
        parts = [{"item": "stacks", "outcome": outcome, "why": why, "remedy": remedy}]
        lacked = next(o for o in facts.observations(document(parts=parts)) if o.fact == "stack.hot.function")
        assert (lacked.status, lacked.detail) == (status, "it belongs to root; run it as root")


def test_a_target_that_was_not_left_as_found_is_told() -> None:
    clean = {
        "worries": [],
        "longest_ns": 42_000_000,
        "iteration_before_ns": 10_000_000,
        "iteration_after_ns": 12_500_000,
    }
    found = facts.observations(document(aftermath=clean))
    assert told(found, "capture.left_clean") is True
    assert told(found, "capture.iteration.longest") == 0.042
    assert told(found, "capture.rate.loss") == 20.0
    found = facts.observations(document(aftermath={"worries": [{"en": "it is traced", "zh": ""}]}))
    assert told(found, "capture.left_clean") is False
    assert told(facts.observations(document()), "capture.left_clean") is None


def test_iterations() -> None:
    ends = [e * 10**6 for e in (0, 10, 20, 30, 90)]
    row = {
        "anchor": "Optimizer.step",
        "ends": ends,
        "batches": [4, 4, 4],
        "loss": [2.0, "nan", 1.5],
        "gradnorm": [1.0, 0.5],
    }
    found = facts.observations(document(iterations=row))
    assert told(found, "step.count") == 5
    assert told(found, "step.median") == 0.01
    assert told(found, "step.worst") == 0.06
    assert told(found, "step.worst.ratio") == 6.0
    assert told(found, "step.batches") == 4.0
    assert told(found, "step.loss.last") == 1.5
    assert told(found, "step.loss.nan") is True
    assert told(found, "step.gradnorm.last") == 0.5
    assert told(found, "step.anchor") == "Optimizer.step"


@pytest.mark.parametrize(
    ("window", "worst"),
    [({"duration_ns": 140 * 10**6}, 0.012), ({"iterations": 3}, 0.02), ({"duration_ns": 1}, None)],
    ids=["a time", "iterations", "nothing undisturbed"],
)
def test_iterations_in_which_the_profiler_started_stopped_or_wrote_are_not_the_jobs(
    window: dict[str, Any], worst: float | None
) -> None:
    ends = [e * 10**6 for e in (0, 10, 90, 110, 200, 210, 222, 290)]  # start, profiled, stop, two of its own, written
    part = {"item": "torch", "outcome": "ok", "began": 90 * 10**6, "ended": 150 * 10**6}
    whole = document(iterations={"ends": ends}, parts=[part])
    whole["window"] |= window
    assert told(facts.observations(whole), "step.worst") == worst


@given(st.lists(st.integers(0, 1 << 60), max_size=30))
def test_the_worst_iteration_is_no_better_than_the_usual_one(ends: list[int]) -> None:
    found = facts.observations(document(iterations={"ends": sorted(ends)}))
    ratio = told(found, "step.worst.ratio")
    assert ratio is None or ratio >= 1.0
    assert told(found, "step.count") == len(ends)


def test_every_fact_that_is_told_is_declared() -> None:
    found = facts.observations(document(aftermath={"worries": []}, iterations={"ends": [1, 2, 3], "loss": [1.0]}))
    assert {o.fact for o in found} <= set(job_capture.FORMAT.provides)


def test_what_another_version_kept_of_a_trace_is_told_and_left_out() -> None:
    kept = Observation("operator.hot", PID, "aten::mm", source=Source("trace", "trace.json", revision=1))
    rows = [
        plain(kept),
        plain(replace(kept, fact="widget.fault")),
        plain(replace(kept, fact="xid")),
        {"fact": "operator.hot"},
        7,
    ]
    whole = document(parts=[]) | {"observations": rows, "observations_revision": trace_facts.TRACE_REVISION}
    found = facts.observations(whole)
    assert [o for o in found if o.source.probe == "trace"] == [kept]
    (lost,) = (o for o in found if o.status is Status.FAILED)
    assert (lost.fact, lost.subject) == ("capture.parts.missing", PID)
    assert lost.detail == "facts that this version of gpudiag does not take from a capture: widget.fault, xid"


def test_the_same_document_gives_the_same_facts() -> None:
    one = document(aftermath={"worries": []}, iterations={"ends": [1, 2, 3]})
    assert facts.observations(one) == facts.observations(json.loads(json.dumps(one)))


def test_check_reads_it_by_its_schema(tmp_path: Path) -> None:
    manifest.write(tmp_path, document())
    text = (tmp_path / manifest.NAME).read_text()
    assert registry.sniff(text[:65536]) is job_capture.FORMAT
    parsed = job_capture.parse(text, Context("capture.json"))
    assert told(parsed, "process.is_rank") == "rank:1"
    read = job_capture.files([str(tmp_path / manifest.NAME)])
    assert {(o.fact, o.value) for o in read} == {(o.fact, o.value) for o in parsed}
    assert job_capture.parse(text[: len(text) // 2], Context("capture.json")) == []


def test_a_folder_of_traces_is_read_without_the_capture_beside_them(tmp_path: Path) -> None:
    from probes.trace.reading.reader import files

    manifest.write(tmp_path, document())
    (tmp_path / "rank1.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    assert [Path(f).name for f in files([str(tmp_path)])] == ["rank1.json"]
