"""Evaluation of conditions over a fact base, with the proof kept.

A leaf is decided only by answered observations. Everything that could not be looked at
makes it unknown, and the proof says what and why.
"""

from __future__ import annotations

from knowledge.observation import Subject
from rules.condition import All, Condition, EventLeaf, FactLeaf, KnownLeaf
from rules.events import event_leaf
from rules.factbase import FactBase
from rules.proof import GroupProof, LeafProof, Proof, Truth, conjunction, disjunction, gap_of
from rules.values import fact_leaf


def evaluate(condition: Condition, subject: Subject, facts: FactBase) -> Proof:
    """The truth of `condition` about `subject`, with the whole tree (no short cuts)."""
    if isinstance(condition, FactLeaf):
        return fact_leaf(condition, subject, facts)
    if isinstance(condition, EventLeaf):
        return event_leaf(condition, subject, facts)
    if isinstance(condition, KnownLeaf):
        return _known(condition, subject, facts)
    children = tuple([evaluate(c, subject, facts) for c in condition.children])
    truths = [c.truth for c in children]
    if isinstance(condition, All):
        return GroupProof("all", conjunction(truths), children)
    return GroupProof("any", disjunction(truths), children)


def _known(leaf: KnownLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    where, seen = facts.read_up(leaf.fact, subject)
    if seen is not None and seen.status.answered:
        return LeafProof(leaf, Truth.FALSE if leaf.negated else Truth.TRUE, (seen,))
    return LeafProof(leaf, Truth.UNKNOWN, missing=(gap_of(leaf.fact, where, seen),))
