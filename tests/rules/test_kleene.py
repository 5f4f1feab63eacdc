"""Three-valued logic: the tables, quantifiers, and negation that is pushed to the leaves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from rules.condition import All, Any_, Quantifier, leaves
from rules.evaluate import evaluate, proof_of
from rules.proof import Truth, conjunction, disjunction, leaf_proofs
from rules.values import quantify
from tests.cases import each
from tests.rules.lab import CONDITIONS, GPU, GPUS, LEAVES, PLACES, base, condition, quiet, seen, silent, truth, worlds

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
TRUTHS = st.lists(st.sampled_from(Truth), max_size=8)


@each(
    ("a", "b", "both", "either"),
    [(T, T, T, T), (T, F, F, T), (T, U, U, T), (F, F, F, F), (F, U, F, U), (U, U, U, U)],
)
def test_tables(a: Truth, b: Truth, both: Truth, either: Truth) -> None:
    assert conjunction([a, b]) is conjunction([b, a]) is both
    assert disjunction([a, b]) is disjunction([b, a]) is either


def test_nothing_is_a_true_conjunction_and_a_false_disjunction() -> None:
    assert conjunction([]) is T
    assert disjunction([]) is F
    assert [~t for t in (T, F, U)] == [F, T, U]


# --- quantifiers --------------------------------------------------------------------------


QUANTIFIERS = st.one_of(
    st.sampled_from([Quantifier(k) for k in ("any", "all", "none")]),
    st.integers(1, 9).map(lambda n: Quantifier("at_least", n)),
    st.sampled_from([0.1, 0.3, 0.5, 0.55, 0.7, 1.0]).map(lambda s: Quantifier("share", s)),
)


def _exact(each: Quantifier, yes: int, total: int) -> bool:
    """The meaning of a quantifier when every truth is known, in whole numbers."""
    if each.kind == "share":
        return yes * 100 >= round(each.number * 100) * total
    need = {"any": 1, "all": total, "at_least": each.number, "none": 0}[each.kind]
    return yes == 0 if each.kind == "none" else yes >= need


@given(QUANTIFIERS, st.lists(st.sampled_from([T, F]), min_size=1, max_size=20))
def test_a_quantifier_over_known_truths_counts(each: Quantifier, truths: list[Truth]) -> None:
    assert quantify(each, truths) is (T if _exact(each, truths.count(T), len(truths)) else F)


@given(QUANTIFIERS, st.lists(st.sampled_from(Truth), min_size=1, max_size=6))
def test_a_quantifier_is_decided_exactly_when_the_unknown_cannot_change_it(
    each: Quantifier, truths: list[Truth]
) -> None:
    choices = [[t] if t is not U else [T, F] for t in truths]
    ends = {quantify(each, list(filled)) for filled in itertools.product(*choices)}
    got = quantify(each, truths)
    if got is not U:
        assert ends == {got}
    elif not all(t is U for t in truths):
        assert ends == {T, F}, "undecided although nothing could change it"


@given(QUANTIFIERS, st.integers(1, 8))
def test_a_quantifier_over_nothing_known_is_unknown(each: Quantifier, count: int) -> None:
    assert quantify(each, [U] * count) is U


def test_seven_of_ten_are_a_share_of_seven_tenths() -> None:
    # 0.07 * 100 is 7.000000000000001 in floating point
    assert quantify(Quantifier("share", 0.7), [T] * 7 + [F] * 3) is T
    assert quantify(Quantifier("share", 0.07), [T] * 7 + [F] * 93) is T
    assert quantify(Quantifier("share", 0.07), [T] * 6 + [F] * 94) is F


# --- negation -----------------------------------------------------------------------------


@given(CONDITIONS, worlds())
def test_pushed_negation_negates_the_result(plain: dict[str, Any], world: list[Observation]) -> None:
    applicable = [o for o in world if o.status is not Status.NOT_APPLICABLE]
    for gpu in GPUS:
        assert truth({"not": plain}, applicable, gpu) is ~truth(plain, applicable, gpu)


@given(CONDITIONS)
def test_negation_stands_in_the_leaves_only(plain: dict[str, Any]) -> None:
    once, twice = condition({"not": plain}), condition({"not": {"not": plain}})
    assert [leaf.negated for leaf in leaves(once)] == [not leaf.negated for leaf in leaves(condition(plain))]
    assert [leaf.negated for leaf in leaves(twice)] == [leaf.negated for leaf in leaves(condition(plain))]
    if isinstance(once, All | Any_):
        assert isinstance(twice, All) == isinstance(once, Any_)


@pytest.mark.slow
@given(LEAVES, worlds())
def test_a_leaf_that_does_not_apply_is_false_negated_or_not(plain: dict[str, Any], world: list[Observation]) -> None:
    assume("known" not in plain and "event" not in plain)
    name = plain["fact"]
    elsewhere = [o for o in world if o.fact != name]
    nowhere = [seen(name, None, on, status=Status.NOT_APPLICABLE) for on in PLACES[name]]
    assert truth(plain, elsewhere + nowhere) is F
    assert truth({"not": plain}, elsewhere + nowhere) is F


def test_an_event_that_cannot_be_is_false_negated_or_not() -> None:
    never = [seen("bang", None, GPU, status=Status.NOT_APPLICABLE)]
    for plain in ({"event": "bang"}, {"not": {"event": "bang"}}, {"event": "bang", "count": {"at_most": 0}}):
        assert truth(plain, never) is F
    assert truth({"not": {"event": "bang"}}, [quiet()]) is T


def test_one_subject_that_cannot_have_it_does_not_speak_for_the_others() -> None:
    leaf = {"fact": "level", "on": "node", "each": "all", "op": "above", "value": 5}
    world = [seen("level", 7, GPUS[0]), seen("level", 7, GPUS[1])]
    world.append(seen("level", None, GPUS[2], status=Status.NOT_APPLICABLE))
    assert truth(leaf, world) is T
    assert truth({"not": leaf}, world) is F


def test_a_threshold_that_cannot_be_makes_the_leaf_false() -> None:
    leaf = {"fact": "level", "op": "at_least", "value": {"fact": "limit"}}
    world = [seen("level", 7), seen("limit", None, status=Status.NOT_APPLICABLE)]
    assert truth(leaf, world) is truth({"not": leaf}, world) is F
    assert truth(leaf, [seen("level", 7), silent("limit")]) is U


def test_known_is_never_false_and_its_negation_never_true() -> None:
    for answered in (seen("level", 3), seen("level", None, status=Status.NONE_SEEN)):
        assert truth({"known": "level"}, [answered]) is T
        assert truth({"not": {"known": "level"}}, [answered]) is F
    assert truth({"known": "level"}, [silent("level")]) is U
    assert truth({"not": {"known": "level"}}, [silent("level")]) is U


def test_a_group_proof_keeps_every_child() -> None:
    plain = {"any": [{"fact": "good", "op": "is", "value": True}, {"known": "level"}, {"event": "bang"}]}
    full = evaluate(condition(plain), GPU, base([seen("good", True)]))
    assert [p.truth for p in leaf_proofs(full)] == [T, U, U], "no short cuts: the proof shows all of it"


def test_a_proof_is_kept_while_one_talks_about_its_facts() -> None:
    """That of a condition about a subject; of the last few fact bases, so that what is long over takes no memory."""
    hot, cold = (condition({"fact": "level", "op": op, "value": 50}) for op in ("above", "below"))
    bases = [base([seen("level", 40 + n, on=GPU), seen("level", 90, on=GPUS[1])]) for n in range(9)]
    for facts in bases:
        for part, subject in itertools.product((hot, cold), GPUS):
            first = proof_of(part, subject, facts)
            assert first == evaluate(part, subject, facts)
            assert proof_of(part, subject, facts) is first
    kept = [bool(facts.proofs) for facts in bases]
    assert kept == sorted(kept)
    assert 1 <= sum(kept) < len(kept)
