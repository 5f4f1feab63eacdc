"""Evaluation of conditions over a fact base, with the proof kept.

A leaf is decided only by answered observations. Everything that could not be looked at
makes it unknown, and the proof says what and why.
"""

from __future__ import annotations

from collections import deque
from weakref import ref

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


_KEPT, _MOST = 4, 20_000  # fact bases whose proofs are kept, and proofs of one
_holders: deque[ref[FactBase]] = deque()


def proof_of(condition: Condition, subject: Subject, facts: FactBase) -> Proof:
    """`evaluate`, remembered: the plans and differentials of a talk ask the same of the same facts, turn after turn.

    The proofs of the last few fact bases are kept: a talk goes on about one of them.
    """
    found = facts.proofs.get((id(condition), subject))
    if found is not None:
        return found[1]
    proof = evaluate(condition, subject, facts)
    if not facts.proofs:
        _holders.append(ref(facts))
        if len(_holders) > _KEPT and (oldest := _holders.popleft()()) is not None:
            oldest.proofs.clear()
    if len(facts.proofs) < _MOST:
        facts.proofs[id(condition), subject] = condition, proof  # while it is held, no other has its id
    return proof


def _known(leaf: KnownLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    where, seen = facts.read_up(leaf.fact, subject)
    if seen is not None and seen.status.answered:
        return LeafProof(leaf, Truth.FALSE if leaf.negated else Truth.TRUE, (seen,))
    return LeafProof(leaf, Truth.UNKNOWN, missing=(gap_of(leaf.fact, where, seen),))
