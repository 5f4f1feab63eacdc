"""More evidence never makes the answer milder: of two inputs together the verdict is at least the worse of the two."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest

from assistant.diagnosis import Diagnosis, State, bad, diagnose
from assistant.sources import parse_text
from knowledge.observation import Observation, Origin
from rules.loader import load
from rules.model import Effect
from rules.testing import facts_of_case

STATES = (State.OK, State.UNKNOWN, State.DEGRADED, State.UNHEALTHY)
PAIRS = 600


@cache
def told() -> dict[str, tuple[Observation, ...]]:
    """What the first test of each rule gives in which the rule holds."""
    found: dict[str, tuple[Observation, ...]] = {}
    for rule in load().rules:
        case = next((t for t in rule.tests if t.expect == "matched"), None)
        if case is not None:
            facts = facts_of_case(case, parse_text)
            found[rule.id] = tuple(k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED)
    return found


@cache
def alone(rule_id: str) -> Diagnosis:
    """What is said of that."""
    return diagnose(told()[rule_id], load())


def contradict(one: str, other: str) -> bool:
    """Whether the two tell different values of the same thing: then they are no two inputs about one machine."""
    values = {(o.fact, o.subject): o.value for o in told()[one]}
    return any(values.get((o.fact, o.subject), o.value) != o.value for o in told()[other])


def edges() -> Iterator[tuple[str, str]]:
    """Causes with each effect that is graver."""
    for rule in load().rules:
        for e in rule.explains:
            if e.effect is Effect.STAYS:
                yield rule.id, e.rule


def drawn() -> Iterator[tuple[str, str]]:
    """Some of all pairs of rules, the same each time."""
    names = sorted(told())
    dice = random.Random(20261123)
    for _ in range(PAIRS):
        one, other = dice.sample(names, 2)
        yield one, other


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [edges, drawn], ids=["cause and graver effect", "any two rules"])
def test_of_two_inputs_the_worse_counts(pairs: object) -> None:
    assert callable(pairs)
    tried = 0
    for one, other in pairs():
        if one not in told() or other not in told() or contradict(one, other):
            continue
        tried += 1
        both = diagnose([*told()[one], *told()[other]], load())
        refuted = {f.id for f in both.ruled_out}  # not explained: shown not to hold
        for part in (alone(one), alone(other)):
            if (found := bad(part.findings)) and refuted.isdisjoint(f.id for f in found):
                assert STATES.index(both.verdict.state) >= STATES.index(part.verdict.state), (one, other)
                assert both.verdict.usable.rank >= part.verdict.usable.rank, (one, other)
    assert tried > 100


def test_what_ends_with_its_cause_is_over() -> None:
    cause, effect = "job-preempted", "rank-failed"
    assert alone(effect).verdict.state is not State.OK
    both = diagnose([*told()[cause], *told()[effect]], load())
    over = [f for f in both.findings if f.rule.id == effect]
    assert [f.ended for f in over] == [True]
    assert both.verdict.state is State.OK
