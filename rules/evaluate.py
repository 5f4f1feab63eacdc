"""Evaluation of conditions over a fact base, with the proof kept.

A leaf is decided only by answered observations. Everything that could not be looked at
makes it unknown, and the proof says what and why.
"""

from __future__ import annotations

from knowledge.observation import Subject
from rules.condition import All, Any_, Condition, EventLeaf, KnownLeaf
from rules.events import event_leaf
from rules.factbase import FactBase
from rules.proof import GroupProof, LeafProof, Proof, Truth, conjunction, disjunction, gap_of
from rules.values import fact_leaf


def evaluate(condition: Condition, subject: Subject, facts: FactBase) -> Proof:
    """The truth of `condition` about `subject`, with the whole tree (no short cuts)."""
    if isinstance(condition, All | Any_):
        children = tuple(evaluate(c, subject, facts) for c in condition.children)
        combine = conjunction if isinstance(condition, All) else disjunction
        return GroupProof(
            "all" if isinstance(condition, All) else "any", combine([c.truth for c in children]), children
        )
    if isinstance(condition, EventLeaf):
        return event_leaf(condition, subject, facts)
    if isinstance(condition, KnownLeaf):
        return _known(condition, subject, facts)
    return fact_leaf(condition, subject, facts)


def _known(leaf: KnownLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    where, seen = facts.read_up(leaf.fact, subject)
    if seen is not None and seen.status.answered:
        return LeafProof(leaf, Truth.FALSE if leaf.negated else Truth.TRUE, (seen,))
    return LeafProof(leaf, Truth.UNKNOWN, missing=(gap_of(leaf.fact, where, seen),))
