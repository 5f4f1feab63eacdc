"""What was not known and becomes known never turns a decided condition round; what is not known decides nothing.

The exact law. A leaf rests on the pairs (fact, subject) that it reads. Let a set of observations
grow by answers about pairs that nobody had answered before, over the same subjects, at the same
``as_of``. Then a condition that was true stays true and one that was false stays false.

It does not speak of three things, each with a test below: a *new subject* joins the crowd that
``each`` looks at; a *newer answer* about an answered pair takes its place; and ``gap`` counts bursts,
which an event between two of them joins, unless somebody had looked.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject
from rules.engine import Grade, run
from rules.evaluate import evaluate
from rules.proof import Truth, leaf_proofs
from tests.rules.lab import (
    CONDITIONS,
    GPU,
    GPUS,
    HERE,
    LINKS,
    MINUTE,
    PLACES,
    UNANSWERED,
    bang,
    base,
    condition,
    events,
    quiet,
    rule,
    seen,
    silent,
    truth,
    values,
    worlds,
)

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
EVERYBODY = [*(seen("gpu.uuid", f"GPU-{g.id}", g) for g in GPUS), *(silent("crc", Status.NOT_ASKED, s) for s in LINKS)]


@st.composite
def grown(draw: st.DrawFn) -> tuple[list[Observation], list[Observation]]:
    """A world, and the same with answers about what nobody had answered; the gaps may stay beside them."""
    before = [*EVERYBODY, *draw(worlds())]
    answered = {(o.fact, o.subject) for o in before if o.status.answered and o.fact not in ("bang", "knock")}
    covered = {o.fact for o in before if o.subject == HERE and o.status is Status.NONE_SEEN}
    new: list[Observation] = []
    for name, places in PLACES.items():
        new += [draw(values(name, on)) for on in places if (name, on) not in answered and draw(st.booleans())]
    for name in {"bang", "knock"} - covered:
        new += [o for o in draw(st.lists(events(), max_size=4)) if o.fact == name]
        if draw(st.booleans()):
            new.append(quiet(name))
    filled = {(o.fact, o.subject) for o in new}
    kept = [o for o in before if o.status.answered or (o.fact, o.subject) not in filled or draw(st.booleans())]
    return before, [*kept, *new]


def _never_turned(plain: dict[str, Any], before: list[Observation], after: list[Observation]) -> None:
    tree = condition(plain)
    one, two = base(before), base(after)
    for subject in (*GPUS, HERE):
        first, second = evaluate(tree, subject, one).truth, evaluate(tree, subject, two).truth
        assert first in (U, second), f"{first} became {second} on {subject}"


@pytest.mark.slow
@given(CONDITIONS, grown())
def test_a_decided_condition_stays_when_gaps_are_filled(
    plain: dict[str, Any], pair: tuple[list[Observation], list[Observation]]
) -> None:
    _never_turned(plain, *pair)


@given(
    st.sampled_from(
        ({}, {"count": {"at_least": 2}}, {"count": {"at_most": 1}}, {"count": {"at_least": 2}, "within": "2m"})
    ),
    st.sampled_from(({}, {"on": "node"}, {"on": "others"}, {"same": ["place"]}, {"where": {"place": 0}})),
    st.sampled_from(
        ({}, {}, {"after": {"event": "knock", "within": "2m"}}, {"after": {"event": "bang", "within": "2m"}})
    ),
    st.lists(events("bang"), max_size=2),
    st.lists(events(), min_size=1, max_size=3),
    st.sampled_from(([], [quiet("bang", GPU)], [quiet("bang")], [quiet("knock")])),
)
def test_events_that_nobody_had_looked_for_turn_nothing(
    count: dict[str, Any], place: dict[str, Any], after: dict[str, Any], known: list[Observation],
    new: list[Observation], coverage: list[Observation],
) -> None:  # fmt: skip
    looked_at = {(o.fact, o.subject) for o in coverage}
    before = [*EVERYBODY, *known, *coverage]
    news = [o for o in new if not any((o.fact, s) in looked_at for s in o.subject.ancestors())]
    _never_turned({"event": "bang"} | count | place | after, before, [*before, *news])


@given(
    st.sampled_from(("below", "at_least", "above", "at_most")),
    st.sampled_from((0.5, 1, 1.5)),
    st.lists(st.none() | st.integers(1, 4), min_size=2, max_size=6),
    st.lists(st.integers(1, 4), min_size=6, max_size=6),
)
def test_peers_that_had_no_value_turn_nothing(
    op: str, bound: float, levels: list[int | None], later: list[int]
) -> None:
    crowd = [GPU, *(Subject(Scope.GPU, f"0000:1{i}:00.0", HERE) for i in range(5))][: len(levels)]
    plain = {"fact": "level", "peers": "ratio", "min_peers": 1, "op": op, "value": bound}
    before = [silent("level", on=g) if n is None else seen("level", n, g) for g, n in zip(crowd, levels, strict=True)]
    filled = [o if o.value is not None else seen("level", n, o.subject) for o, n in zip(before, later, strict=False)]
    first, second = truth(plain, before), truth(plain, filled)
    assert first in (U, second)


@pytest.mark.slow
@given(CONDITIONS, st.lists(CONDITIONS, max_size=2), grown())
def test_a_finding_stays_when_gaps_are_filled(
    when: Any, confirms: list[Any], pair: tuple[list[Observation], list[Observation]]
) -> None:
    one = rule("one", when, confirms=confirms)
    before, after = (run([one], base(world)) for world in pair)
    assert {f.id for f in before.findings} <= {f.id for f in after.findings}


# --- nothing known, nothing said ----------------------------------------------------------


@st.composite
def dark(draw: st.DrawFn) -> list[Observation]:
    """A world that nobody could look into."""
    places = [(name, on) for name, on_all in PLACES.items() for on in on_all]
    places += [("bang", HERE), ("knock", HERE), ("bang", GPU)]
    return [silent(name, draw(st.sampled_from(UNANSWERED)), on) for name, on in places if draw(st.booleans())]


@given(CONDITIONS, CONDITIONS, dark())
def test_no_verdict_from_missing_values(when: Any, excludes: Any, world: list[Observation]) -> None:
    everybody = [silent("level", Status.TIMEOUT, g) for g in GPUS]
    facts = base([*world, *everybody])
    for subject in GPUS:
        for leaf in leaf_proofs(evaluate(condition(when), subject, facts)):
            assert leaf.truth is U
            assert leaf.missing, "an unknown leaf says what is missing"
            assert all(gap.reason for gap in leaf.missing)
    result = run([rule("one", when, confirms=[excludes], excludes=[excludes])], facts)
    assert not result.findings
    assert not result.ruled_out
    assert not result.undecided


def test_each_reason_for_not_knowing_is_passed_on() -> None:
    leaf = condition({"fact": "level", "op": "above", "value": 5})
    for status in UNANSWERED:
        (proof,) = leaf_proofs(evaluate(leaf, GPU, base([silent("level", status)])))
        assert [gap.reason for gap in proof.missing] == [status]
        assert [gap.subject for gap in proof.missing] == [GPU]
    (proof,) = leaf_proofs(evaluate(leaf, GPU, base([])))
    assert [gap.reason for gap in proof.missing] == [Status.NOT_ASKED]


def test_an_excluding_fact_that_is_unknown_never_blocks_and_is_listed() -> None:
    excluded = rule("one", {"event": "bang"}, excludes=[{"fact": "busy", "op": "is", "value": True}])
    (found,) = run([excluded], base([bang(0), silent("busy", on=HERE)])).findings
    assert found.grade is Grade.CONFIRMED
    assert [(gap.fact, gap.subject) for gap in found.missing] == [("busy", HERE)]


# --- what the law does not speak of -------------------------------------------------------

HOT = {"fact": "level", "on": "node", "each": "all", "op": "above", "value": 5}


def test_each_speaks_of_the_subjects_that_are_known() -> None:
    two = [seen("level", 7, g) for g in GPUS[:2]]
    assert truth(HOT, two) is T
    assert truth(HOT, [*two, silent("good", on=GPUS[2])]) is U, "a third that is known to exist counts"
    assert truth(HOT, [*two, seen("level", 1, GPUS[2])]) is F


def test_each_along_a_broken_relation_is_not_about_everybody() -> None:
    # Two processes in the job; of one it is known which GPU it uses.
    job = Subject(Scope.JOB, "7")
    processes = [Subject(Scope.PROCESS, str(i), HERE) for i in (1, 2)]
    tied = [*(seen("is_rank", "job:7", p) for p in processes), seen("uses", f"gpu:{GPU.id}", processes[0])]
    hot = {"fact": "level", "via": ["process", "gpu"], "op": "above", "value": 5}
    world = [*tied, seen("level", 7)]
    assert truth(hot | {"each": "any"}, world, job) is T
    assert truth(hot | {"each": "all"}, world, job) is U
    assert truth(hot | {"each": "none"}, [*tied, seen("level", 1)], job) is U
    assert truth(hot | {"each": "any"}, [*tied, seen("level", 1)], job) is U
    whole = [*world, seen("uses", f"gpu:{GPUS[1].id}", processes[1]), seen("level", 9, GPUS[1])]
    assert truth(hot | {"each": "all"}, whole, job) is T


def test_a_newer_answer_takes_the_place_of_an_older_one() -> None:
    leaf = {"fact": "level", "op": "above", "value": 5}
    assert truth(leaf, [seen("level", 7, at=-2), silent("level", at=-1)]) is T
    assert truth(leaf, [seen("level", 7, at=-2), seen("level", 3, at=-1)]) is F


def test_an_event_between_two_bursts_joins_them() -> None:
    leaf = {"event": "bang", "gap": "3m", "count": {"at_least": 2}}
    apart = [bang(-10 * MINUTE), bang(-5 * MINUTE)]
    assert truth(leaf, apart) is T
    assert truth(leaf, [*apart, bang(-8 * MINUTE), bang(-6 * MINUTE), quiet()]) is F


# --- peers --------------------------------------------------------------------------------

SLOW = {"fact": "level", "peers": "ratio", "min_peers": 1, "op": "below", "value": 0.8}


def test_a_ratio_waits_for_peers_that_could_change_it() -> None:
    four = tuple(Subject(Scope.GPU, f"0000:1{i}:00.0", HERE) for i in range(4))
    like = [seen("level", n, g) for n, g in zip((10, 10, 10), four[:3], strict=True)]
    assert truth(SLOW, [seen("level", 5), *like]) is T
    assert truth(SLOW, [seen("level", 5), *like, silent("level", on=four[3])]) is T, (
        "one of four cannot move the median"
    )
    unlike = [seen("level", 4, four[0]), seen("level", 10, four[1]), silent("level", on=four[2])]
    assert truth(SLOW, [seen("level", 5), *unlike]) is U, "the third decides on which side the median lies"
    assert truth(SLOW, [seen("level", 5), *unlike, seen("level", 10, four[2])]) is T
    assert truth(SLOW, [seen("level", 5), *unlike, seen("level", 4, four[2])]) is F


def test_a_ratio_needs_its_own_value_and_enough_peers() -> None:
    assert truth(SLOW, [silent("level"), seen("level", 10, GPUS[1])]) is U
    assert truth(SLOW, [seen("level", 5)]) is U
    assert truth(SLOW | {"min_peers": 2}, [seen("level", 5), seen("level", 10, GPUS[1])]) is U
    assert truth(SLOW, [seen("level", 5), seen("level", 0, GPUS[1])]) is U, "no share of nothing"
    assert truth(SLOW, [seen("level", None, status=Status.NONE_SEEN), seen("level", 5, GPUS[1])]) is T, "none seen is 0"


def test_a_peer_that_cannot_have_it_is_no_peer() -> None:
    world = [seen("level", 5), seen("level", 10, GPUS[1]), seen("level", None, GPUS[2], status=Status.NOT_APPLICABLE)]
    assert truth(SLOW, world) is T
    assert truth(SLOW | {"min_peers": 2}, world) is U
