"""The same facts give the same answer in any order, however often they are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import UndeclaredFactError
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Status, Subject, Value, node
from rules.engine import Evaluation, run
from rules.factbase import sort_key, subject_key
from rules.model import Bucket, Explains, Rule, Severity
from tests.cases import each
from tests.rules.lab import CONDITIONS, GPU, GPUS, HERE, UNANSWERED, bang, base, rule, seen, silent, worlds

NAMES = ("one", "two", "three")


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Rule]:
    """Three rules that confirm, exclude and explain each other at random."""
    some = st.lists(CONDITIONS, max_size=2)
    return [
        rule(
            name,
            draw(CONDITIONS),
            confirms=draw(some),
            excludes=draw(some) if draw(st.integers(0, 3)) == 0 else (),
            explains=[Explains(rule=other) for other in NAMES if other != name and draw(st.booleans())],
            severity=draw(st.sampled_from(Severity)),
            bucket=draw(st.sampled_from((Bucket.MONITOR, Bucket.RESET_GPU, Bucket.IGNORE))),
        )
        for name in NAMES
    ]


def _told(result: Evaluation) -> Any:
    """All that an evaluation says, as plain data: readable when a test fails."""
    return (
        [
            (f.id, f.grade, f.role, f.explains, f.explained_by, f.may_explain, f.advice, f.because, f.missing, f.proof)
            for f in (*result.findings, *result.ruled_out)
        ],
        [(u.rule.id, u.subject, u.because, u.missing, u.proof) for u in result.undecided],
        result.rules_tried,
    )


@given(rule_sets(), worlds(), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(rules: list[Rule], world: list[Observation], random: Any) -> None:
    expected = run(rules, base(world))
    shuffled, twice = list(rules), [*world, *world]
    random.shuffle(shuffled)
    random.shuffle(twice)
    again = run(shuffled, base(twice))
    assert _told(again) == _told(expected)
    assert again == expected


@pytest.mark.slow
@given(worlds(), st.randoms(use_true_random=False))
def test_every_fact_settles_alike_in_any_order(world: list[Observation], random: Any) -> None:
    mixed = list(world)
    random.shuffle(mixed)
    one, two = base(world), base(mixed)
    assert one.observations == two.observations
    assert one.conflicts == two.conflicts
    for scope in Scope:
        assert one.subjects(scope) == two.subjects(scope)
    for o in world:
        assert one.current(o.fact, o.subject) == two.current(o.fact, o.subject)


def test_two_reasons_of_one_moment_settle_alike() -> None:
    # Nothing but the status tells the two apart.
    both = [silent("level", status) for status in (Status.DENIED, Status.TIMEOUT)]
    assert base(both).current("level", GPU) == base(reversed(both)).current("level", GPU)


def test_the_order_of_an_event_s_fields_says_nothing() -> None:
    one = seen("bang", Event(1, {"place": 0, "slot": 1}))
    two = seen("bang", Event(1, {"slot": 1, "place": 0}))
    assert len(base([one, two]).events("bang")) == 1


@given(st.lists(st.sampled_from(UNANSWERED), min_size=2, max_size=2, unique=True), st.sampled_from(Origin))
def test_only_equal_observations_share_a_key(statuses: list[Status], origin: Origin) -> None:
    one, two = (silent("level", s) for s in statuses)
    assert sort_key(one) != sort_key(two)
    assert (sort_key(one) == sort_key(silent("level", statuses[0], origin=origin))) == (origin is Origin.MEASURED)


def test_subjects_of_one_name_are_told_apart() -> None:
    same = [Subject(Scope.GPU, "0000:3b:00.0", node(host)) for host in ("a", "b")]
    slices = [Subject(Scope.MIG, "1", gpu) for gpu in GPUS]
    assert len({subject_key(s) for s in (*same, *slices)}) == 5


def test_findings_of_parts_with_one_name_keep_apart() -> None:
    # MIG device 1 of each GPU: one id for all of them would merge their findings.
    slices = [Subject(Scope.MIG, "1", gpu) for gpu in GPUS]
    broken = rule("broken", {"event": "bang"}, scope=Scope.MIG)
    found = run([broken], base([bang(0, s) for s in slices])).findings
    assert len({f.id for f in found}) == 3


_PROGRAM = """
from knowledge.observation import Scope, Subject, node
from rules.engine import run
from tests.rules.lab import VOCABULARY, base, rule, seen
same = [Subject(Scope.GPU, "0000:3b:00.0", node(h)) for h in "abcdefgh"]
job = Subject(Scope.JOB, "7")
tied = [seen("uses", "job:7", Subject(Scope.PROCESS, str(i), s.parent)) for i, s in enumerate(same)]
facts = base([seen("level", i, s) for i, s in enumerate(same)] + tied)
print([str(s.parent) for s in facts.related(job, Scope.PROCESS)])
"""


@pytest.mark.process
def test_the_hash_seed_of_the_process_changes_nothing() -> None:
    root = Path(__file__).parents[2]
    told = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            check=True,
            cwd=root,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
    assert b"node h" in told.pop()


# --- which value counts -------------------------------------------------------------------


def test_the_newest_of_a_source_counts() -> None:
    facts = base([seen("level", 3, at=-20), seen("level", 7, at=-10)])
    assert _value(facts.current("level", GPU)) == 7


def test_measured_beats_told_and_hypothetical_beats_all() -> None:
    told = seen("level", 1, at=0, origin=Origin.TOLD)
    measured = seen("level", 2, at=-99)
    imagined = seen("level", 3, at=-999, origin=Origin.HYPOTHETICAL)
    assert _value(base([told, measured]).current("level", GPU)) == 2
    assert _value(base([told, measured, imagined]).current("level", GPU)) == 3
    unknown = base([measured, silent("level", Status.NOT_ASKED, origin=Origin.HYPOTHETICAL)])
    assert _status(unknown.current("level", GPU)) is Status.NOT_ASKED


def test_sources_that_contradict_each_other_leave_a_state_unknown() -> None:
    facts = base([seen("limit", 5, probe="a", at=-1), seen("limit", 6, probe="b", at=-2)])
    settled = facts.current("limit", GPU)
    assert settled is not None
    assert settled.status is Status.FAILED
    assert "5" in settled.detail
    assert "6" in settled.detail
    assert len(facts.conflicts) == 1


def test_conflicts_are_listed_before_any_rule_has_asked() -> None:
    assert len(base([seen("limit", 5, probe="a"), seen("limit", 6, probe="b")]).conflicts) == 1


def test_a_state_that_changed_between_two_times_is_no_conflict() -> None:
    facts = base([seen("limit", 5, probe="a", at=-600 * 10**9), seen("limit", 6, probe="b", at=0)])
    assert _value(facts.current("limit", GPU)) == 6
    assert facts.conflicts == ()


def test_a_gauge_may_differ_between_two_sources() -> None:
    facts = base([seen("level", 5, probe="a", at=-1), seen("level", 6, probe="b", at=0)])
    assert _value(facts.current("level", GPU)) == 6


def test_an_old_value_is_stale_and_a_told_one_then_counts() -> None:
    old = seen("aged", 5, at=-61 * 10**9)
    assert _status(base([old]).current("aged", GPU)) is Status.STALE
    assert _value(base([old], as_of=None).current("aged", GPU)) == 5, "without a time of judging nothing is old"
    assert _value(base([old, seen("aged", 9, origin=Origin.TOLD)]).current("aged", GPU)) == 9
    assert _value(base([seen("aged", 5, at=-61 * 10**9, clock=Clock.BOOT)]).current("aged", GPU)) == 5


def test_a_value_that_the_fact_cannot_have_is_no_value() -> None:
    for name, value in (("level", "5"), ("level", True), ("watts", float("nan")), ("mode", "pink"), ("level", None)):
        settled = base([seen(name, value)]).current(name, GPU)
        assert settled is not None
        assert settled.status is Status.FAILED, (name, value)
        assert repr(value) in settled.detail


@each("status", list(Status))
@each("value", [None, 1, Event(1)])
def test_a_fact_that_nobody_declared_is_a_bug_whatever_it_says(status: Status, value: Value) -> None:
    one = seen("levle", value, status=status)
    with pytest.raises(UndeclaredFactError, match=r"^p tells 'levle', which is no fact; the nearest is 'level'$"):
        base([seen("level", 1), one])


def test_an_event_with_a_field_that_nobody_declared_still_happened() -> None:
    assert len(base([seen("bang", Event(1, {"surprise": 1}))]).events("bang")) == 1


# --- relations ----------------------------------------------------------------------------


def test_a_relation_finds_its_other_end_whatever_the_facts_are_called() -> None:
    # "level" stands before "uses" in the alphabet, "watts" behind it.
    process = Subject(Scope.PROCESS, "42", HERE)
    for name in ("level", "watts"):
        facts = base([seen(name, 1, GPU), seen("uses", f"gpu:{GPU.id}", process)])
        assert facts.related(process, Scope.GPU) == [GPU]
        assert facts.related(GPU, Scope.PROCESS) == [process]


def test_a_relation_to_what_is_no_part_of_a_node_names_no_node() -> None:
    process, job = Subject(Scope.PROCESS, "42", HERE), Subject(Scope.JOB, "7")
    assert base([seen("uses", "job:7", process)]).related(process, Scope.JOB) == [job]
    known = base([seen("uses", "job:7", process), seen("level", 1, job)])
    assert known.related(process, Scope.JOB) == [job]


def test_a_relation_without_a_node_finds_the_only_one_of_that_name() -> None:
    rank, process = Subject(Scope.RANK, "3"), Subject(Scope.PROCESS, "42", HERE)
    facts = base([seen("uses", "process:42", rank), seen("level", 1, process)])
    assert facts.related(rank, Scope.PROCESS) == [process]


def test_a_relation_that_could_mean_two_things_ties_nothing() -> None:
    process = Subject(Scope.PROCESS, "42", HERE)
    ranks = [Subject(Scope.RANK, "3", Subject(Scope.JOB, job)) for job in ("7", "8")]
    facts = base([seen("is_rank", "rank:3", process), *(seen("level", 1, r) for r in ranks)])
    assert facts.related(process, Scope.RANK) == []


def _value(o: Observation | None) -> object:
    assert o is not None
    assert o.status is Status.OK
    return o.value


def _status(o: Observation | None) -> Status:
    assert o is not None
    return o.status
