"""Facts of ranks from a capture's document: every fact is known, of the declared type, and carries what a person can look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Observation, Scope, Status
from probes.capture.hang import flight_files, hang, rank_facts
from tests.probes.capture.hang.test_across import DECODE, LOAD, WAIT, document
from tests.probes.capture.hang_jobs import ranks

CAPTURES = Path(__file__).parents[3] / "captures/flight"


def told(found: list[Observation], fact: str) -> list[Observation]:
    return [o for o in found if o.fact == fact]


def value(found: list[Observation], fact: str) -> Any:
    (one,) = told(found, fact)
    assert one.status is Status.OK
    return one.value


def test_every_fact_is_declared() -> None:
    known = vocabulary()
    assert {f for f in rank_facts.FACTS if f not in known} == set()


@pytest.mark.process
def test_a_hung_job_end_to_end(tmp_path: Path) -> None:
    with ranks(tmp_path, "all_reduce(end)", "all_reduce(end)", "stuck_in_tokenizer()") as targets:
        part = json.loads(json.dumps(hang.look(targets)))
        pids = [t.process.pid for t in targets]
    raw = {"as_of": 1_795_000_000_000_000_000, "targets": part["targets"], "hang": part}
    found = rank_facts.observations(raw, "gpu-7", "/records/x/capture.json")
    assert value(found, "job.hung") is True
    assert value(found, "job.hung.rank") == "2"
    assert value(found, "job.hung.is_process") == f"process:{pids[2]}"
    assert value(found, "job.hung.function").startswith("stuck_in_tokenizer (train2.py:")
    assert value(found, "job.hung.collective") == "all_reduce"
    assert value(found, "job.hung.ranks_waiting") == 2
    assert value(found, "job.hung.desync") is False
    assert value(found, "job.ranks.captured") == 3
    assert not told(found, "job.hung.absent")
    kinds = {o.subject.id: o.value for o in told(found, "process.hung.kind")}
    assert kinds == {str(pids[0]): "collective", str(pids[1]): "collective", str(pids[2]): "sleep"}
    assert [o.value for o in told(found, "process.hung")] == [True, True, True]
    ranked = told(found, "rank.is_process")
    assert [(o.subject.id, o.value) for o in ranked] == [(str(i), f"process:{p}") for i, p in enumerate(pids)]
    (job,) = {o.subject for o in found if o.subject.scope is Scope.JOB}
    assert (job.id, job.host) == ("standin", "gpu-7")
    known = vocabulary()
    for o in found:
        assert o.source.call == "/records/x/capture.json"
        assert o.fact in known
        assert str(known[o.fact].scope) == str(o.subject.scope)
        assert o.status is not Status.OK or o.value is not None


def test_the_late_rank(tmp_path: Path) -> None:
    raw = document([WAIT, LOAD] * 40, [DECODE, LOAD] * 40)
    for row in raw["targets"]:
        row["job"] = "job"
    found = rank_facts.observations(raw, "gpu-7")
    assert value(found, "job.slow_rank") == "1"
    assert value(found, "job.slow_rank.is_process") == "process:101"
    assert value(found, "job.slow_rank.wait.share") == 50.0
    assert value(found, "job.slow_rank.function") == "decode_slowly (data.py:30)"
    assert value(found, "job.waiting.function") == "all_reduce, called by average (train.py:60)"
    assert not told(found, "job.hung")


@pytest.mark.process
def test_flight_recorders_of_ranks_that_lost_step(tmp_path: Path) -> None:
    with ranks(tmp_path, "all_reduce(end)", "all_gather(end)") as targets:
        part = json.loads(json.dumps(hang.look(targets)))
    dumps = {str(r): {"dump": flight_files.load((CAPTURES / f"desync_{r}.json").read_bytes())} for r in (0, 1)}
    found = rank_facts.observations({"targets": part["targets"], "hang": part | {"flight": {"ranks": dumps}}}, "gpu-7")
    assert value(found, "job.hung.desync") is True
    assert value(found, "nccl.flight.collective") == "all_gather"
    assert value(found, "nccl.flight.seq") == 2
    assert value(found, "nccl.flight.missing_ranks") == ("0",)
    assert not told(found, "job.hung.rank")  # one rank each: nobody is in the minority


def test_what_cannot_be_told_is_said_and_is_not_false() -> None:
    look = {
        "at": 1,
        "processes": {"7": {"state": "S", "threads": {"7": {"state": "S", "ran": 1, "switches": 1, "quiet": 5}}}},
    }
    raw = {
        "targets": [{"process": {"pid": 7}, "job": "job", "rank": 0}],
        "hang": {"dumps": [], "proc": {"looks": [look, look | {"at": 5}]}},
    }
    found = rank_facts.observations(raw, "gpu-7")
    for fact in ("process.hung", "job.hung"):
        (one,) = told(found, fact)
        assert (one.status, one.value) == (Status.FAILED, None)
        assert one.detail


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=6), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3)
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["as_of", "targets", "hang", "stacks", "threads"]), anything))
def test_hostile_documents_never_raise(raw: dict[str, Any]) -> None:
    rank_facts.observations(raw)
    rank_facts.observations(
        {"targets": [{"process": {"pid": 7}, "job": "j", "rank": 1}, {"process": {"pid": 8}, "job": "j", "rank": 2}]}
        | raw
    )
