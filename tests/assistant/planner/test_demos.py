"""Every shipped demo that records a machine: the plan, followed to its end, concludes what all its probes conclude."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from assistant.commands.demo import FOLDER, load, names
from assistant.diagnosis import Diagnosis, diagnose
from assistant.intent.query import Intent, Query, Slots
from assistant.machine import Look, bundle
from assistant.planner import Goal, Plan, goal_of, plan
from knowledge.observation import Observation
from probes.live import ProbeSpec
from probes.runner import select
from rules.loader import load as load_rules
from rules.model import Usable

RULES = load_rules()
DEMOS = [name for name in names() if load(name).get("bundle")]
QUESTIONS = {
    "verdict": Query("", "en", Intent.VERDICT),
    "slow-training": Query("", "en", Intent.DIAGNOSE, symptoms=("slow-training",)),
    "gpu-missing": Query("", "en", Intent.DIAGNOSE, symptoms=("gpu-missing",)),
    "out-of-memory": Query("", "en", Intent.DIAGNOSE, symptoms=("out-of-memory",)),
    "memory-errors": Query("", "en", Intent.DIAGNOSE, symptoms=("memory-errors",)),
    "xid 79": Query("", "en", Intent.DIAGNOSE, Slots(xid=(79,))),
    "xid 63": Query("", "en", Intent.DIAGNOSE, Slots(xid=(63,))),
    "48 then 63": Query("", "en", Intent.VERDICT, Slots(xid=(48, 63))),
}


@cache
def machine(name: str) -> tuple[Look, tuple[ProbeSpec, ...], Diagnosis]:
    """A recorded machine, with what all its probes say."""
    _, look = bundle(str(FOLDER / name / load(name)["bundle"]))
    specs = tuple(select(look.recording.probes) if look.recording else select())
    return look, specs, diagnosed(look, look.observations)


def diagnosed(look: Look, observations: Sequence[Observation]) -> Diagnosis:
    return diagnose(observations, RULES, as_of=look.as_of, whole=True)


@cache
def after(name: str, ran: frozenset[str]) -> Diagnosis:
    """What is known once these probes ran."""
    look = machine(name)[0]
    return diagnosed(look, [o for r in look.results if r.probe in ran for o in r.observations])


def followed(name: str, query: Query) -> tuple[Goal, Plan, set[str], Diagnosis]:
    """The plan, round by round, until nothing runs unasked."""
    specs = machine(name)[1]
    ran: set[str] = set()
    for _ in range(len(specs) + 1):
        d = after(name, frozenset(ran))
        goal = goal_of(query, RULES, d.facts)
        found = plan(goal, d.facts, RULES, specs, ran)
        if not found.batch:
            return goal, found, ran, d
        assert not ran & set(found.batch)
        ran |= set(found.batch)
    raise AssertionError("a plan names a probe again")


def said(goal: Goal, d: Diagnosis) -> set[tuple[str, str, str]]:
    every = (*d.findings, *d.ruled_out)
    chosen = [f for f in every if goal.rules is None or f.rule.id in goal.rules]
    return {(f.id, str(f.grade), str(f.advice.bucket)) for f in chosen}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", DEMOS)
def test_the_plan_finds_what_all_probes_find(name: str, question: str) -> None:
    goal, _, _, d = followed(name, QUESTIONS[question])
    whole = machine(name)[-1]
    if goal.verdict:
        assert d.verdict.usable is whole.verdict.usable
    if d.verdict.usable is Usable.YES or not goal.verdict:  # a no may be said before all of it is seen
        assert said(goal, d) == said(goal, whole)


@pytest.mark.parametrize("name", DEMOS)
def test_the_health_of_it_all_takes_the_probes_of_check_in_one_round(name: str) -> None:
    specs, empty = machine(name)[1], after(name, frozenset())
    first = plan(goal_of(QUESTIONS["verdict"], RULES, empty.facts), empty.facts, RULES, specs)
    assert set(first.batch) == {s.name for s in specs if s.default}


def test_a_narrow_question_runs_few_probes() -> None:
    _, found, ran, _ = followed("healthy", QUESTIONS["xid 63"])
    assert ran == {"kernel-log", "nvml"}
    assert found.decided
    assert not found.questions


def test_a_lost_gpu_leaves_one_question_that_only_a_person_can_answer() -> None:
    _, found, _, d = followed("off-the-bus", QUESTIONS["verdict"])
    assert d.verdict.usable is not Usable.YES
    assert [q.fact for q in found.questions] == ["node.maintenance.gpu_reset"]
    assert found.questions[0].subject.scope == "node"
    assert not found.decided
