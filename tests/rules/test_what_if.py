"""Questions about a proof: what would have to differ, what decided it, what if something else were seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowledge.observation import Observation, Origin, Status
from rules.condition import KnownLeaf
from rules.engine import Evaluation, Grade, run, what_if
from rules.proof import (
    GroupProof,
    LeafProof,
    Proof,
    Truth,
    conjunction,
    deciding,
    disjunction,
    evidence,
    flips,
    leaf_proofs,
)
from tests.rules.lab import CONDITIONS, GPU, HERE, UNANSWERED, bang, base, quiet, rule, seen, silent, values, worlds

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
LEAF = KnownLeaf("level")

# --- what would have to differ --------------------------------------------------------------

Shape: TypeAlias = "Truth | tuple[str, list[Shape]]"
_SHAPES: st.SearchStrategy[Shape] = st.recursive(
    st.sampled_from(Truth),
    lambda inner: st.tuples(st.sampled_from(("all", "any")), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)


def build(shape: Shape) -> Proof:
    """A proof with the truths of `shape` at its leaves."""
    if isinstance(shape, Truth):
        return LeafProof(LEAF, shape)
    op, parts = shape
    children = tuple(map(build, parts))
    combine = conjunction if op == "all" else disjunction
    return GroupProof(op, combine([c.truth for c in children]), children)


def again(proof: Proof, changed: set[int], wanted: Truth) -> Truth:
    """The truth with the leaves of these ids set to `wanted`."""
    if isinstance(proof, LeafProof):
        return wanted if id(proof) in changed else proof.truth
    truths = [again(c, changed, wanted) for c in proof.children]
    return conjunction(truths) if proof.op == "all" else disjunction(truths)


@given(_SHAPES, st.sampled_from((T, F)))
def test_flips_are_enough_and_no_smaller_set_is(shape: Shape, wanted: Truth) -> None:
    proof = build(shape)
    found = {id(leaf) for leaf in flips(proof, wanted)}
    assert again(proof, found, wanted) is wanted
    everything = [id(leaf) for leaf in leaf_proofs(proof)]
    for fewer in range(len(found)):
        for some in combinations(everything, fewer):
            assert again(proof, set(some), wanted) is not wanted


@given(_SHAPES)
def test_deciding_leaves_alone_decide(shape: Shape) -> None:
    """With every other leaf unknown a decided proof stays what it is; each of them has its truth."""
    proof = build(shape)
    assume(proof.truth is not U)
    kept = {id(leaf) for leaf in deciding(proof)}
    assert kept
    others = {id(leaf) for leaf in leaf_proofs(proof)} - kept
    assert again(proof, others, U) is proof.truth
    assert all(leaf.truth is proof.truth for leaf in deciding(proof))


def test_why_not() -> None:
    proof = build(("all", [T, ("any", [F, ("all", [F, U])]), U]))
    assert [leaf.truth for leaf in flips(proof, T)] == [F, U]
    assert flips(proof, F) == []
    assert [leaf.truth for leaf in flips(build(("any", [T, T, F])), F)] == [T, T]


def test_evidence_is_what_decided_and_what_is_missing() -> None:
    plain = {"any": [{"fact": "level", "op": "above", "value": 5}, {"fact": "good", "op": "is", "value": True}]}
    world = [seen("level", 9), silent("good")]
    (found,) = run([rule("r", plain)], base(world)).findings
    assert [o.fact for o in found.because] == ["level"]
    told = evidence(found.proof)
    assert [(m.fact, m.reason) for m in told.missing] == [("good", "denied")]
    assert evidence(None).observations == ()


# --- what if ------------------------------------------------------------------------------


def told(result: Evaluation) -> object:
    return (
        [(f.id, f.grade, f.role, f.proof.truth, f.missing) for f in (*result.findings, *result.ruled_out)],
        [(u.rule.id, u.subject, u.missing) for u in result.undecided],
        result.rules_tried,
    )


_HYPOTHESES = st.lists(
    st.one_of(
        values("level", GPU), values("good", GPU), values("mode", GPU), values("busy", HERE),
        st.sampled_from(UNANSWERED).map(lambda s: silent("level", s)),
        st.just(bang(0)), st.just(quiet()),
    ),
    max_size=3,
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(CONDITIONS, min_size=1, max_size=3), worlds(), _HYPOTHESES)
def test_what_if_is_a_fresh_evaluation_and_touches_nothing(
    plains: list[object], world: list[Observation], overlay: list[Observation]
) -> None:
    rules = [rule(f"r{i}", plain) for i, plain in enumerate(plains)]
    facts = base(world)
    before, kept = told(run(rules, facts)), facts.observations
    supposed = what_if(rules, facts, overlay)
    fresh = run(rules, base([*world, *(_hypothetical(o) for o in overlay)]))
    assert told(supposed) == told(fresh)
    assert facts.observations == kept
    assert told(run(rules, facts)) == before
    assert told(what_if(rules, facts, [])) == before, "supposing nothing changes nothing"


def _hypothetical(o: Observation) -> Observation:
    return replace(o, origin=Origin.HYPOTHETICAL)


def test_a_hypothesis_stands_over_what_was_measured_and_is_marked() -> None:
    hot = rule("hot", {"fact": "level", "op": "above", "value": 5})
    facts = base([seen("level", 9)])
    assert run([hot], facts).findings
    assert not what_if([hot], facts, [seen("level", 1)]).findings
    cold = base([seen("level", 1)])
    (found,) = what_if([hot], cold, [seen("level", 9)]).findings
    assert {o.origin for o in found.because} == {Origin.HYPOTHETICAL}


def test_what_if_none_had_been_seen() -> None:
    rules = [rule("r", {"event": "bang"})]
    facts = base([bang(0)])
    assert run(rules, facts).findings
    assert not what_if(rules, facts, [quiet()]).findings
    assert what_if(rules, facts, [quiet("knock")]).findings


def test_what_if_it_had_not_been_possible_to_look() -> None:
    rules = [
        rule("r", {"all": [{"fact": "level", "op": "above", "value": 5}, {"fact": "good", "op": "is", "value": True}]})
    ]
    facts = base([seen("level", 9), seen("good", True)])
    assert run(rules, facts).findings
    supposed = what_if(rules, facts, [silent("good", Status.TIMEOUT)])
    assert not supposed.findings
    assert [m.reason for u in supposed.undecided for m in u.missing] == ["timeout"]


def test_a_hypothesis_may_confirm() -> None:
    rules = [rule("r", {"event": "bang"}, confirms=[{"fact": "good", "op": "is", "value": True}])]
    facts = base([bang(0)])
    assert [f.grade for f in run(rules, facts).findings] == [Grade.PROBABLE]
    assert [f.grade for f in what_if(rules, facts, [seen("good", True)]).findings] == [Grade.CONFIRMED]
    assert [f.grade for f in what_if(rules, facts, [seen("good", False)]).findings] == [Grade.POSSIBLE]


def test_what_if_the_whole_had_seen_nothing() -> None:
    """An event of the node counts for its GPUs; supposing it away takes it from them too."""
    rules = [rule("r", {"event": "knock"})]
    facts = base([bang(0, HERE, name="knock"), seen("level", 1)])
    assert run(rules, facts).findings
    assert not what_if(rules, facts, [quiet("knock")]).findings
