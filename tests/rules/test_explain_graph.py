"""Grades, and which finding stands above which: one root cause, no effect before its cause, no circles."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.xid import xid
from knowledge.observation import Clock, Observation, Scope, Subject
from rules.engine import Evaluation, Finding, Grade, Role, covers, grade_of, moments, run
from rules.model import SLACK, Bucket, Explains, Rule, Severity
from rules.proof import Truth
from tests.cases import each
from tests.rules.lab import GPU, GPUS, HERE, MINUTE, PROCESS, SECOND, bang, base, rule, seen, silent

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
CAUSE, EFFECT = {"event": "bang", "where": {"code": 1}}, {"event": "bang", "where": {"code": 2}}


def pair(*explains: Explains, effect_explains: tuple[Explains, ...] = (), **more: Any) -> list[Rule]:
    """A cause (code 1) that outranks its effect (code 2)."""
    return [
        rule("cause", CAUSE, explains=explains, severity=Severity.CRITICAL, **more),
        rule("effect", EFFECT, explains=effect_explains),
    ]


def one(result: Evaluation, name: str, on: Subject = GPU) -> Finding:
    (found,) = [f for f in result.findings if f.rule.id == name and f.subject == on]
    return found


def folded(rules: list[Rule], world: list[Observation]) -> bool:
    """Whether the effect on GPU is a symptom."""
    return one(run(rules, base(world)), "effect").role is Role.SYMPTOM


# --- grades -------------------------------------------------------------------------------


@each(
    ("confirms", "excludes", "expected"),
    [
        ([], [], Grade.CONFIRMED), ([T], [], Grade.CONFIRMED), ([F, T], [], Grade.CONFIRMED), ([U, T], [], Grade.CONFIRMED),
        ([U], [], Grade.PROBABLE), ([U, U], [], Grade.PROBABLE), ([F], [], Grade.POSSIBLE), ([F, U], [], Grade.POSSIBLE),
        ([], [U], Grade.CONFIRMED), ([], [F], Grade.CONFIRMED), ([U], [U], Grade.PROBABLE), ([T], [T], Grade.RULED_OUT),
        ([F], [U, T], Grade.RULED_OUT), ([], [T], Grade.RULED_OUT),
    ],
)  # fmt: skip
def test_the_table_of_grades(confirms: list[Truth], excludes: list[Truth], expected: Grade) -> None:
    assert grade_of(confirms, excludes) is expected


@given(st.lists(st.sampled_from(Truth), max_size=4), st.lists(st.sampled_from(Truth), max_size=3), st.randoms())
def test_a_grade_does_not_depend_on_order(confirms: list[Truth], excludes: list[Truth], random: Any) -> None:
    mixed = [*confirms]
    random.shuffle(mixed)
    assert grade_of(mixed, excludes[::-1]) is grade_of(confirms, excludes)


@each(("good", "busy"), list(product((True, False, None), repeat=2)))
def test_a_finding_carries_its_grade_and_its_gaps(good: bool | None, busy: bool | None) -> None:
    a_rule = rule(
        "r",
        CAUSE,
        confirms=[{"fact": "good", "op": "is", "value": True}],
        excludes=[{"fact": "busy", "op": "is", "value": True}],
    )
    world = [bang(0)]
    world.append(silent("good") if good is None else seen("good", good))
    world.append(silent("busy", on=HERE) if busy is None else seen("busy", busy, HERE))
    result = run([a_rule], base(world))
    expected = Grade.RULED_OUT if busy else {True: Grade.CONFIRMED, None: Grade.PROBABLE, False: Grade.POSSIBLE}[good]
    (found,) = (*result.findings, *result.ruled_out)
    assert found.grade is expected
    assert bool(result.ruled_out) is bool(busy)
    assert {m.fact for m in found.missing} == {n for n, v in (("good", good), ("busy", busy)) if v is None}


# --- root and symptom ---------------------------------------------------------------------


def test_an_effect_folds_only_when_every_event_is_covered() -> None:
    rules = pair(Explains(rule="effect", within=MINUTE))
    assert folded(rules, [bang(0), bang(30 * SECOND, code=2), bang(MINUTE, code=2)])
    world = [bang(0), bang(30 * SECOND, code=2), bang(MINUTE + 1, code=2)]
    result = run(rules, base(world))
    effect = one(result, "effect")
    assert effect.role is Role.ROOT, "one event is left over"
    assert effect.explained_by == (one(result, "cause").id,), "and yet the tie is told"


def test_two_causes_may_cover_an_effect_together() -> None:
    rules = [
        rule("a", CAUSE, explains=[Explains(rule="effect", within=MINUTE)], severity=Severity.CRITICAL),
        rule("b", {"event": "bang", "where": {"code": 3}}, explains=[Explains(rule="effect", within=MINUTE)],
             severity=Severity.CRITICAL),
        rule("effect", EFFECT),
    ]  # fmt: skip
    world = [bang(0), bang(SECOND, code=2), bang(60 * MINUTE, code=3), bang(61 * MINUTE, code=2)]
    assert folded(rules, world)
    assert not folded(rules, world[:1] + world[1:2] + world[3:])


@each(
    ("later", "expected"),
    [(0, True), (1, True), (MINUTE, True), (MINUTE + 1, False), (-SLACK, True), (-SLACK - 1, False), (-MINUTE, False)],
)
def test_a_cause_is_not_later_than_its_effect(later: int, expected: bool) -> None:
    world = [bang(0), bang(later, code=2)]
    assert folded(pair(Explains(rule="effect", within=MINUTE)), world) is expected
    result = run(pair(Explains(rule="effect", within=MINUTE)), base(world))
    assert bool(one(result, "cause").explains) is expected


@each(("later", "expected"), [(-5 * MINUTE, True), (-5 * MINUTE - 1, False), (MINUTE, True), (MINUTE + 1, False)])
def test_a_cause_that_is_told_late_says_by_how_much(later: int, expected: bool) -> None:
    rules = pair(Explains(rule="effect", within=MINUTE, late=5 * MINUTE))
    assert folded(rules, [bang(0), bang(later, code=2)]) is expected


@given(st.lists(st.integers(0, 400), min_size=1, max_size=5), st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_every_folded_event_has_a_cause_in_time(causes: list[int], effects: list[int]) -> None:
    """By hand: some cause at most a minute before, or two seconds after."""
    world = [bang(s * SECOND) for s in causes] + [bang(s * SECOND, code=2) for s in effects]
    expected = all(any(-2 <= e - c <= 60 for c in causes) for e in effects)
    assert folded(pair(Explains(rule="effect", within=MINUTE)), world) is expected


@each(("many", "expected"), [(60, True), (3, False)])
def test_what_a_folded_event_stands_for_lies_evenly_in_its_window(many: int, expected: bool) -> None:
    """Of a burst that took an hour and of which the first and the last line are told: the effect lies between them."""
    first, last = bang(0), bang(60 * MINUTE)
    last = replace(last, times=many, window=(first.at or 0, last.at or 0))
    assert folded(pair(Explains(rule="effect", within=MINUTE)), [first, last, bang(30 * MINUTE, code=2)]) is expected


@pytest.mark.parametrize("clock", [Clock.BOOT, Clock.LOCAL, Clock.YEARLESS])
def test_clocks_that_cannot_be_compared_speak_against_nothing(clock: Clock) -> None:
    assert folded(pair(Explains(rule="effect")), [bang(90 * MINUTE), bang(0, code=2, clock=clock)])
    assert not folded(pair(Explains(rule="effect")), [bang(90 * MINUTE, clock=clock), bang(0, code=2, clock=clock)])


def test_seconds_since_boot_of_two_machines_are_two_clocks() -> None:
    there = Subject(Scope.GPU, GPU.id, Subject(Scope.NODE, "n2"))
    rules = pair()
    for on, clock, expected in (
        (GPU, Clock.BOOT, None), (there, Clock.BOOT, {0}), (GPU, Clock.REALTIME, None), (there, Clock.REALTIME, None),
    ):  # fmt: skip
        result = run(rules, base([bang(90 * MINUTE, clock=clock), bang(0, on, code=2, clock=clock)]))
        assert covers(moments(one(result, "cause")), one(result, "effect", on), MINUTE, SLACK) == expected


def test_without_a_time_nothing_speaks_against_it() -> None:
    assert folded(pair(Explains(rule="effect")), [bang(None), bang(0, code=2)])
    assert folded(pair(Explains(rule="effect")), [bang(0), bang(None, code=2)])


def test_a_state_explains_and_is_explained_at_any_time() -> None:
    rules = [
        rule("cause", {"fact": "good", "op": "is", "value": False}, explains=[Explains(rule="effect")],
             severity=Severity.CRITICAL),
        rule("effect", EFFECT),
    ]  # fmt: skip
    assert folded(rules, [seen("good", False), bang(-900 * MINUTE, code=2)])
    states = [rules[0], rule("effect", {"fact": "level", "op": "above", "value": 5})]
    assert folded(states, [seen("good", False), seen("level", 9)])


def test_a_possible_cause_never_folds() -> None:
    doubtful = pair(Explains(rule="effect"), confirms=[{"fact": "good", "op": "is", "value": True}])
    events = [bang(0), bang(0, code=2)]
    assert folded(doubtful, [*events, seen("good", True)])
    assert folded(doubtful, [*events, silent("good")]), "probable is enough"
    assert not folded(doubtful, [*events, seen("good", False)])


def test_a_cause_that_is_ruled_out_never_folds() -> None:
    rules = pair(Explains(rule="effect"), excludes=[{"fact": "good", "op": "is", "value": True}])
    assert not folded(rules, [bang(0), bang(0, code=2), seen("good", True)])


def test_of_two_that_explain_each_other_the_worse_one_is_the_root() -> None:
    rules = pair(Explains(rule="effect"), effect_explains=(Explains(rule="cause"),))
    for order in (rules, rules[::-1]):
        result = run(order, base([bang(0), bang(0, code=2)]))
        assert one(result, "cause").role is Role.ROOT
        assert one(result, "effect").role is Role.SYMPTOM
        assert one(result, "effect").explains == ()


_NAMES = ("a", "b", "c", "d")


@given(
    st.sets(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES))),
    st.lists(st.sampled_from(Severity), min_size=4, max_size=4),
    st.lists(st.integers(0, 4), min_size=4, max_size=4),
)
def test_the_graph_has_no_circle_and_a_root(edges: set[tuple[str, str]], how: list[Severity], times: list[int]) -> None:
    rules = [
        rule(
            n,
            {"event": "bang", "where": {"code": i}},
            explains=[Explains(rule=b) for a, b in edges if a == n],
            severity=s,
        )
        for i, (n, s) in enumerate(zip(_NAMES, how, strict=True))
    ]
    result = run(rules, base([bang(t * SECOND, code=i) for i, t in enumerate(times)]))
    found = {f.id: f for f in result.findings}
    assert len(found) == 4, "symptoms never vanish"
    assert any(f.role is Role.ROOT for f in found.values())
    for f in found.values():
        assert set(f.explained_by) == {g.id for g in found.values() if f.id in g.explains}
        assert {(f.rule.id, found[e].rule.id) for e in f.explains} <= edges
        below, stack = set(), list(f.explains)
        while stack:
            here = stack.pop()
            assert here != f.id
            if here not in below:
                below.add(here)
                stack.extend(found[here].explains)
    roles = [f.role for f in result.findings]
    assert roles == sorted(roles, key=lambda r: r is Role.SYMPTOM), "roots first"


# --- where --------------------------------------------------------------------------------


def test_on_self_reaches_parts_and_wholes_but_no_neighbour() -> None:
    rules = [
        *pair(Explains(rule="effect"), Explains(rule="knock")),
        rule("knock", {"event": "knock"}, scope=Scope.NODE),
    ]
    world = [bang(0), bang(0, code=2), bang(0, GPUS[1], code=2), bang(0, HERE, name="knock")]
    result = run(rules, base(world))
    assert one(result, "effect").role is Role.SYMPTOM
    assert one(result, "effect", GPUS[1]).role is Role.ROOT
    assert one(result, "knock", HERE).role is Role.SYMPTOM


def test_on_node_reaches_the_neighbour_and_no_other_node() -> None:
    there = Subject(Scope.GPU, GPU.id, Subject(Scope.NODE, "n2"))
    world = [bang(0), bang(0, GPUS[1], code=2), bang(0, there, code=2)]
    result = run(pair(Explains(rule="effect", on="node")), base(world))
    assert one(result, "effect", GPUS[1]).role is Role.SYMPTOM
    assert one(result, "effect", there).role is Role.ROOT


def _via(world: list[Observation]) -> Evaluation:
    """A bang on a GPU explains a knock of the process that uses it."""
    rules = [
        rule("cause", CAUSE, explains=[Explains(rule="effect", via=(Scope.PROCESS,))], severity=Severity.CRITICAL),
        rule("effect", {"event": "knock"}, scope=Scope.PROCESS),
    ]
    return run(rules, base([bang(0), bang(0, PROCESS, name="knock"), *world]))


def test_via_a_relation_folds() -> None:
    result = _via([seen("uses", f"gpu:{GPU.id}", PROCESS)])
    assert one(result, "effect", PROCESS).role is Role.SYMPTOM
    assert one(result, "cause").may_explain == ()


def test_via_a_relation_that_nobody_told_may_explain_and_never_folds() -> None:
    result = _via([])
    effect = one(result, "effect", PROCESS)
    assert (effect.role, effect.explained_by) == (Role.ROOT, ())
    assert one(result, "cause").may_explain == (effect.id,)
    assert one(result, "cause").explains == ()


def test_via_a_relation_that_leads_elsewhere_says_nothing() -> None:
    other = Subject(Scope.PROCESS, "43", HERE)
    result = _via([seen("uses", f"gpu:{GPU.id}", other), seen("uses", f"gpu:{GPUS[1].id}", PROCESS)])
    assert one(result, "effect", PROCESS).role is Role.ROOT
    assert one(result, "cause").may_explain == ()


def test_a_code_that_asks_for_nothing_does_not_hide_one_that_does() -> None:
    def rules(bucket: Bucket) -> list[Rule]:
        return [
            rule(
                "cause", CAUSE, explains=[Explains(rule="effect")], severity=Severity.CRITICAL, bucket=bucket, xid=144
            ),
            rule("effect", EFFECT, bucket=Bucket.RESET_GPU, xid=48),
        ]

    world = [bang(0), bang(0, code=2)]
    assert not folded(rules(Bucket.IGNORE), world)
    assert folded(rules(Bucket.RESET_GPU), world)


# --- same ---------------------------------------------------------------------------------


def test_same_means_the_same_value_and_no_value_is_not_the_same() -> None:
    rules = pair(Explains(rule="effect", same=("place",)))
    assert folded(rules, [bang(0, place=1), bang(0, code=2, place=1)])
    assert not folded(rules, [bang(0, place=1), bang(0, code=2, place=2)])
    for ours, theirs in ((None, None), (1, None), (None, 1)):
        result = run(rules, base([bang(0, place=ours), bang(0, code=2, place=theirs)]))
        assert one(result, "effect").role is Role.ROOT, (ours, theirs)
        assert one(result, "cause").may_explain == (one(result, "effect").id,), (ours, theirs)


def test_an_entry_that_may_hold_does_not_hide_one_that_does() -> None:
    unsure = Explains(rule="effect", via=(Scope.PROCESS, Scope.GPU))
    for entries in ((unsure, Explains(rule="effect")), (Explains(rule="effect"), unsure)):
        assert folded(pair(*entries), [bang(0), bang(0, code=2)])
    assert not folded(pair(unsure), [bang(0), bang(0, code=2)])


def test_the_catalogue_and_a_rule_that_oppose_each_other_make_no_circle() -> None:
    # NVIDIA's catalogue has an uncorrectable ECC error (48) lead to a row remap (63); a rule that
    # says the opposite outranks it by its severity.
    catalogue, rows = Explains(by="xid_catalogue"), xid(48)
    assert rows is not None
    assert 63 in rows.explains
    for first, second in ((Severity.CRITICAL, Severity.WARNING), (Severity.WARNING, Severity.CRITICAL)):
        rules = [
            rule("ecc", CAUSE, explains=[catalogue], severity=first, bucket=Bucket.RESET_GPU, xid=48),
            rule("remap", EFFECT, explains=[Explains(rule="ecc")], severity=second, bucket=Bucket.RESET_GPU, xid=63),
        ]
        result = run(rules, base([bang(0), bang(0, code=2)]))
        root, symptom = result.findings
        assert (root.role, symptom.role) == (Role.ROOT, Role.SYMPTOM)
        assert (root.explained_by, symptom.explains) == ((), ())
        assert root.rule.id == ("ecc" if first is Severity.CRITICAL else "remap")
