"""A law of "why not": what it names as lacking makes the rule hold, when it is supposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis
from assistant.dialogue._standing import Stand, standing, standings
from knowledge.facts import Type, vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Source, Subject, Value
from rules.condition import EventLeaf, FactLeaf, KnownLeaf, On, Op, Reference, Take
from rules.engine import what_if
from rules.model import Rule
from rules.proof import LeafProof, Truth
from tests.assistant.dialogue.talk import STATES, XIDS, rules, small
from tests.diagnoses import smaller

# --- why not: what it would take is enough --------------------------------------------------

_ORDERED = {Op.AT_LEAST: 0, Op.AT_MOST: 0, Op.ABOVE: 1, Op.BELOW: -1}


def making(leaf: FactLeaf | EventLeaf | KnownLeaf, subject: Subject, number: Iterator[int]) -> list[Observation] | None:
    """Observations that make a leaf true of `subject`; None for the forms that need a course, peers or several things."""
    if isinstance(leaf, KnownLeaf):
        return None
    if isinstance(leaf, EventLeaf):
        return _events(leaf, subject, number)
    if (
        leaf.take is not Take.LAST
        or leaf.peer_ratio
        or leaf.each is not None
        or leaf.via
        or isinstance(leaf.value, Reference)
    ):
        return None
    spec = vocabulary()[leaf.fact]
    where = subject.up(spec.scope)
    if where is None or spec.derived:
        return None
    value = _value(leaf, spec.type, spec.values)
    return None if value is None else [Observation(leaf.fact, where, value, origin=Origin.HYPOTHETICAL)]


def _value(leaf: FactLeaf, kind: Type, words: tuple[str, ...]) -> Value:
    """A value for which the comparison of a leaf is true; None when none is easily made."""
    wanted = leaf.value
    if leaf.negated:
        if isinstance(wanted, bool) and leaf.op is Op.IS:
            return not wanted
        return next((w for w in words if w != wanted), None) if leaf.op is Op.IS and kind is Type.ENUM else None
    if leaf.op is Op.IS:
        return wanted if isinstance(wanted, bool | int | float | str) else None
    if leaf.op is Op.IN and isinstance(wanted, tuple):
        return wanted[0]
    if leaf.op in _ORDERED and isinstance(wanted, int | float):
        return wanted + _ORDERED[leaf.op]
    return None


def _events(leaf: EventLeaf, subject: Subject, number: Iterator[int]) -> list[Observation] | None:
    spec = vocabulary()[leaf.event]
    if (
        leaf.negated
        or leaf.after
        or leaf.same
        or leaf.at_most is not None
        or leaf.on is not On.SELF
        or leaf.at_least > 1
    ):
        return None
    where = subject.up(spec.scope)
    if where is None:
        return None
    code, fields = None, {}
    for test in leaf.where:
        value = test.value[0] if test.op is Op.IN and isinstance(test.value, tuple) else test.value
        if test.op not in (Op.IS, Op.IN) or isinstance(value, tuple):
            return None
        if test.field == "code":
            assert isinstance(value, int)
            code = value
        else:
            fields[test.field] = value
    line = next(number)
    return [
        Observation(
            leaf.event,
            where,
            Event(code, fields),
            source=Source("law", "law", line),
            at=line,
            clock=Clock.MONOTONIC,
            origin=Origin.HYPOTHETICAL,
        )
    ]


def overlay(lacking: Sequence[LeafProof], subject: Subject) -> list[Observation] | None:
    """Observations that make all of `lacking` true; None where one cannot be made, or two want one fact otherwise."""
    number = count(1)
    made: list[Observation] = []
    for p in lacking:
        one = making(p.leaf, subject, number)
        if one is None:
            return None
        made += one
    values = {(o.fact, o.subject): o.value for o in made if not isinstance(o.value, Event)}
    plain_ones = [o for o in made if not isinstance(o.value, Event)]
    return made if len(values) == len(plain_ones) else None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["double-bit-error", "power-brake"])
def test_what_it_would_take_is_enough(name: str) -> None:
    """Overlaid hypothetically, the leaves that why-not names make the rule hold: for every rule where they can be made."""
    d = smaller(name)
    tried = 0
    for rule in rules().rules:
        for s in standings([rule], d):
            if s.stand not in (Stand.NOT_MATCHED, Stand.UNKNOWN) or s.subject is None:
                continue
            made = overlay(s.lacking, s.subject)
            if made is None or _others_move(rule, made, s.lacking):
                continue
            tried += 1
            assert _holds(rule, s.subject, d, made), (rule.id, [str(p.leaf) for p in s.lacking])
    assert tried > 60


def _others_move(rule: Rule, made: Sequence[Observation], lacking: Sequence[LeafProof]) -> bool:
    """Whether the same fact stands in a leaf of the rule that is not among those that have to differ."""
    from rules.condition import leaves

    facts = {o.fact for o in made}
    meant = {p.leaf.path for p in lacking}
    others = {x.event if isinstance(x, EventLeaf) else x.fact for x in leaves(rule.when) if x.path not in meant}
    return bool(facts & others)


def _holds(rule: Rule, subject: Subject, d: Diagnosis, made: Sequence[Observation]) -> bool:
    result = what_if([rule], d.facts, made)
    return any(f.rule.id == rule.id and f.subject == subject for f in (*result.findings, *result.ruled_out))


@given(
    XIDS,
    STATES,
    st.sampled_from(("uncorrectable-ecc", "ecc-disabled", "row-remap-pending", "gpu-fell-off-bus", "gsp-rpc-timeout")),
)
def test_in_any_small_world_what_it_would_take_is_enough(
    xids: list[int], states: dict[str, bool], rule_id: str
) -> None:
    d = small(xids, states)
    rule = rules()[rule_id]
    for subject in d.facts.subjects(rule.scope):
        s = standing(rule, subject, d)
        made = overlay(s.lacking, subject)
        if (
            s.stand in (Stand.NOT_MATCHED, Stand.UNKNOWN)
            and made is not None
            and not _others_move(rule, made, s.lacking)
        ):
            assert all(p.truth is not Truth.TRUE for p in s.lacking)
            assert _holds(rule, subject, d, made)
