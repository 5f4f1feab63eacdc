"""More evidence never makes the answer milder: of two inputs together the verdict is at least the worse of the two."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from assistant.diagnosis import Diagnosis, State, bad, diagnose
from assistant.sources import parse_text
from knowledge.observation import Observation, Origin
from rules.condition import EventLeaf, FactLeaf, leaves
from rules.engine import Finding
from rules.loader import load
from rules.model import Effect
from rules.testing import facts_of_case

STATES = (State.OK, State.UNKNOWN, State.DEGRADED, State.UNHEALTHY)
PAIRS = 600


@cache
def told(expect: str = "matched") -> dict[str, tuple[Observation, ...]]:
    """What the first test of each rule gives in which the rule holds (or does not), from a file of its own: two may contradict each other."""
    found: dict[str, tuple[Observation, ...]] = {}
    for rule in load().rules:
        case = next((t for t in rule.tests if t.expect == expect), None)
        if case is not None:
            facts = facts_of_case(case, parse_text)
            own = [k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED]
            found[rule.id] = tuple(replace(o, source=replace(o.source, call=f"{expect}-{rule.id}.txt")) for o in own)
    return found


@cache
def alone(rule_id: str) -> Diagnosis:
    """What is said of that."""
    return diagnose(told()[rule_id], load())


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
        if one not in told() or other not in told():
            continue
        tried += 1
        both = diagnose([*told()[one], *told()[other]], load())
        for part in (alone(one), alone(other)):
            if (found := bad(part.findings)) and not (
                refutes(both, found) or outlived(both, found) or left_open(both, found)
            ):
                assert STATES.index(both.verdict.state) >= STATES.index(part.verdict.state), (one, other)
                assert both.verdict.usable.rank >= part.verdict.usable.rank, (one, other)
    assert tried > 100


@pytest.mark.slow
def test_a_source_that_says_otherwise_clears_nothing() -> None:
    """The case in which a rule holds beside the near miss of the same rule: another file, of the same moment."""
    tried = 0
    for name, good in told("not_matched").items():
        if name not in told() or not (found := bad(alone(name).findings)):
            continue
        both = diagnose([*told()[name], *good], load())
        if refutes(both, found) or knows_more(good, told()[name]):
            continue
        tried += 1
        assert STATES.index(both.verdict.state) >= STATES.index(alone(name).verdict.state), name
        assert both.verdict.usable.rank >= alone(name).verdict.usable.rank, name
    assert tried > 200


def knows_more(one: tuple[Observation, ...], other: tuple[Observation, ...]) -> bool:
    """Whether `one` tells of what `other` does not, or of a later time: it may explain, where a contradiction cannot."""
    last = max((o.at for o in other if o.at is not None), default=None)
    later = last is not None and any(o.at is not None and o.at > last for o in one)
    return later or not {(o.fact, o.subject) for o in one} <= {(o.fact, o.subject) for o in other}


def outlived(both: Diagnosis, found: list[Finding]) -> bool:
    """Whether the other input is of so much later that all events of a finding lie before the span that its rule itself counts."""
    return any(
        isinstance(x, EventLeaf) and x.within is not None and f.events
        and all(o.at is not None and both.as_of is not None and o.at + x.within < both.as_of for o in f.events)
        for f in found for x in leaves(f.rule.when)
    )  # fmt: skip


def left_open(both: Diagnosis, found: list[Finding]) -> bool:
    """Whether a finding compares GPUs with all others, the other input brings more of them, of which that was not read, and
    the answer says that the rule is undecided there."""
    of_all = [f for f in found if any(isinstance(x, FactLeaf) and x.each is not None for x in leaves(f.rule.when))]
    return any((u.rule.id, u.subject) in {(f.rule.id, f.subject) for f in of_all} for u in both.undecided)


def refutes(d: Diagnosis, found: list[Finding]) -> bool:
    """Whether one of the findings is shown not to hold, or to be over: more is known, and nothing is contradicted."""
    gone = {f.id for f in d.ruled_out} | {f.id for f in d.findings if f.past or f.ended}
    return not gone.isdisjoint(f.id for f in found)


def test_what_ends_with_its_cause_is_over() -> None:
    cause, effect = "job-preempted", "rank-failed"
    assert alone(effect).verdict.state is not State.OK
    both = diagnose([*told()[cause], *told()[effect]], load())
    over = [f for f in both.findings if f.rule.id == effect]
    assert [f.ended for f in over] == [True]
    assert both.verdict.state is State.OK
