"""Every shipped demo that records a machine: the plan, followed to its end, concludes what all its probes conclude."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest

from assistant.commands.demo import load, names
from assistant.diagnosis import Diagnosis, diagnose
from assistant.intent.query import Intent, Query, Slots
from assistant.planner import Goal, Plan, goal_of, plan
from knowledge.observation import Observation, Scope
from probes.live import ProbeSpec
from probes.runner import select
from rules.loader import load as load_rules
from rules.model import Usable
from tests.cases import Faults, each
from tests.diagnoses import few_gpus, incident, machine

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


def probes(name: str) -> tuple[ProbeSpec, ...]:
    """Those of the recording of a machine."""
    look = machine(name)
    return tuple(select(look.recording.probes) if look.recording else select())


def told(name: str, ran: frozenset[str]) -> tuple[Observation, ...]:
    """What these probes say, of the GPUs that something was found about and of two others: it is concluded from often."""
    said = [o for r in machine(name).results if r.probe in ran for o in r.observations]
    return few_gpus(said, gpus(name))


@cache
def gpus(name: str) -> frozenset[str]:
    d = incident(name)
    sick = {part.id for f in d.findings for part in f.subject.ancestors() if part.scope is Scope.GPU}
    return frozenset(sick | {g.id for g in sorted(d.facts.subjects(Scope.GPU), key=lambda g: g.id)[:2]})


def after(name: str, ran: Iterable[str]) -> Diagnosis:
    """What is known and what follows once these probes ran; those that were not recorded tell nothing."""
    return _after(name, frozenset(ran) & {r.probe for r in machine(name).results})


@cache
def _after(name: str, ran: frozenset[str]) -> Diagnosis:
    return diagnose(told(name, ran), load_rules(), as_of=machine(name).as_of, whole=True)


def whole(name: str) -> Diagnosis:
    """What follows from all that the probes say."""
    return after(name, [r.probe for r in machine(name).results])


def followed(name: str, query: Query) -> tuple[Goal, Plan, set[str], Diagnosis]:
    """The plan, round by round, until nothing runs unasked."""
    specs = probes(name)
    ran: set[str] = set()
    for _ in range(len(specs) + 1):
        d = after(name, ran)
        goal = goal_of(query, load_rules(), d.facts)
        found = plan(goal, d.facts, load_rules(), specs, ran)
        if not found.batch:
            return goal, found, ran, d
        assert not ran & set(found.batch)
        ran |= set(found.batch)
    raise AssertionError("a plan names a probe again")


def said(goal: Goal, d: Diagnosis) -> set[tuple[str, str, str]]:
    every = (*d.findings, *d.ruled_out)
    chosen = [f for f in every if goal.rules is None or f.rule.id in goal.rules]
    return {(f.id, str(f.grade), str(f.advice.bucket)) for f in chosen}


@pytest.mark.slow
@each("question", QUESTIONS)
@each("name", DEMOS)
def test_the_plan_finds_what_all_probes_find(name: str, question: str) -> None:
    goal, _, _, d = followed(name, QUESTIONS[question])
    if goal.verdict:
        assert d.verdict.usable is whole(name).verdict.usable
    if d.verdict.usable is Usable.YES or not goal.verdict:  # a no may be said before all of it is seen
        assert said(goal, d) == said(goal, whole(name))


def test_all_that_the_probes_say_is_all_that_a_look_tells() -> None:
    with Faults() as faults:
        for name in DEMOS:
            with faults.of(name):
                every = [o for r in machine(name).results for o in r.observations]
                assert every == list(machine(name).observations)


@each("name", DEMOS)
def test_the_health_of_it_all_takes_the_probes_of_check_in_one_round(name: str) -> None:
    specs, nothing = probes(name), after(name, ()).facts
    first = plan(goal_of(QUESTIONS["verdict"], load_rules(), nothing), nothing, load_rules(), specs)
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
