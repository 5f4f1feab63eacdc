"""What a proof may still become, and which facts can move it.

A leaf that is unknown may become anything once somebody tells what it lacks. A decided leaf stays as it is, with
three exceptions: it rests on what a person said and a probe can measure it; it follows relations, and a probe that
has not run may tell more of them; it counts events, and a probe that has not run may tell more. A second source
for a value that one source has told is not among them: it could only contradict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from assistant.planner.tellers import Tellers
from knowledge.observation import Origin, Subject
from rules.condition import EventLeaf, FactLeaf, KnownLeaf, On, Reference
from rules.factbase import FactBase
from rules.index import Shape
from rules.proof import GroupProof, LeafProof, Proof, Truth

_ALL = frozenset(Truth)


class Outlook(NamedTuple):
    """What a part of a proof may become, and what would have to be told for it."""

    may: frozenset[Truth]
    by: frozenset[str] = frozenset()
    parts: tuple[Outlook, ...] = ()  # of a group

    @property
    def fixed(self) -> bool:
        """Whether nothing that can be told changes it."""
        return len(self.may) == 1

    def towards(self, wanted: Truth) -> frozenset[str]:
        """The facts that can make it `wanted`; none when it cannot become that, or is it for good."""
        if wanted not in self.may or self.fixed:
            return frozenset()
        if not self.parts:
            return self.by
        return frozenset[str]().union(*(part.towards(wanted) for part in self.parts))

    def moving(self) -> frozenset[str]:
        """The facts that can change it in any way."""
        if self.fixed:
            return frozenset()
        return self.by if not self.parts else frozenset[str]().union(*(part.moving() for part in self.parts))


def outlook(proof: Proof, subject: Subject, facts: FactBase, tellers: Tellers) -> Outlook:
    """What `proof` about `subject` may become with what `tellers` can tell."""
    if isinstance(proof, LeafProof):
        by = _movers(proof, subject, facts, tellers)
        return Outlook(_becomes(proof, facts, tellers) | {proof.truth} if by else frozenset({proof.truth}), by)
    parts = tuple(outlook(child, subject, facts, tellers) for child in proof.children)
    return Outlook(_of_group(proof, [p.may for p in parts]), frozenset(), parts)


def _of_group(proof: GroupProof, parts: list[frozenset[Truth]]) -> frozenset[Truth]:
    """Kleene's tables over sets of truths: `one` decides the group alone, the other only when all parts are it."""
    one, every = (Truth.FALSE, Truth.TRUE) if proof.op == "all" else (Truth.TRUE, Truth.FALSE)
    may = set()
    if any(one in p for p in parts):
        may.add(one)
    if all(every in p for p in parts):
        may.add(every)
    if any(Truth.UNKNOWN in p for p in parts) and not any(p == {one} for p in parts):
        may.add(Truth.UNKNOWN)
    return frozenset(may | {proof.truth})


def _movers(proof: LeafProof, subject: Subject, facts: FactBase, tellers: Tellers) -> frozenset[str]:
    """The facts that can still be told and that the leaf lacks, or that can open it again."""
    leaf = proof.leaf
    if isinstance(leaf, KnownLeaf):
        return frozenset({leaf.fact} & tellers.facts) if proof.truth is Truth.UNKNOWN else frozenset()
    if isinstance(leaf, EventLeaf):
        asked = {leaf.event} | ({leaf.after.event} if leaf.after else set())
        return frozenset() if _enough_events(proof, leaf) else frozenset(asked & tellers.facts)
    path = tellers.ties(leaf.via, subject.scope) if leaf.on is On.VIA else set()
    if proof.truth is Truth.UNKNOWN:
        return frozenset(path | _lacking(proof, leaf, subject, facts, tellers))
    own = {leaf.fact} if tellers.of(leaf.fact) else set()
    return frozenset(path | own if _only_told(proof) else path)


def _lacking(proof: LeafProof, leaf: FactLeaf, subject: Subject, facts: FactBase, tellers: Tellers) -> set[str]:
    """What an unknown fact leaf waits for and somebody can tell: the fact itself, its threshold, or both."""
    missing = {m.fact for m in proof.missing} or {leaf.fact}
    threshold = leaf.value.fact if isinstance(leaf.value, Reference) else ""
    if leaf.fact in missing and leaf.fact not in tellers.facts:
        return set()  # without its own value the threshold decides nothing
    out = missing & tellers.facts
    if threshold and threshold in tellers.facts and not _answered(threshold, subject, facts):
        out.add(threshold)
    return out


def _answered(fact: str, subject: Subject, facts: FactBase) -> bool:
    seen = facts.read_up(fact, subject)[1]
    return seen is not None and seen.status.answered


def _becomes(proof: LeafProof, facts: FactBase, tellers: Tellers) -> frozenset[Truth]:
    """What a leaf may become once what moves it is told."""
    leaf = proof.leaf
    if isinstance(leaf, KnownLeaf):
        return frozenset({Truth.FALSE if leaf.negated else Truth.TRUE})
    threshold = leaf.value.fact if isinstance(leaf, FactLeaf) and isinstance(leaf.value, Reference) else ""
    if threshold and threshold not in facts.facts and threshold not in tellers.facts:
        return frozenset({Truth.FALSE})  # nobody can tell it; only a fact that cannot be, decides without it
    return _ALL


def _enough_events(proof: LeafProof, leaf: EventLeaf) -> bool:
    """Whether a leaf that holds goes on holding, however many events there are more."""
    held = proof.truth is (Truth.FALSE if leaf.negated else Truth.TRUE) and proof.seen != "not applicable"
    return held and leaf.at_most is None and leaf.gap is None


def _only_told(proof: LeafProof) -> bool:
    """Whether the leaf rests on what a person said: a measurement counts for more."""
    return any(o.origin is Origin.TOLD for o in proof.observations)


def shape_towards(shape: Shape, tellable: frozenset[str]) -> frozenset[str]:
    """The facts that can make a condition hold of which nothing is known yet; none when it cannot hold."""
    if isinstance(shape, str):
        needed = frozenset(shape.split())
        return needed if needed <= tellable else frozenset()
    parts = [shape_towards(child, tellable) for child in shape[1:]]
    if shape[0] == "all" and not all(parts):
        return frozenset()
    return _union(parts)


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
