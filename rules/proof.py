"""Verdicts and proofs: what was asked, what was seen, and how that settles the matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from knowledge.observation import Observation, Status, Subject
from knowledge.record import dataclass
from rules.condition import Leaf


class Truth(StrEnum):
    """Three-valued logic after Kleene."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"

    def __invert__(self) -> Truth:
        if self is Truth.UNKNOWN:
            return self
        return Truth.FALSE if self is Truth.TRUE else Truth.TRUE


def conjunction(truths: list[Truth]) -> Truth:
    """FALSE when any is, else UNKNOWN when any is, else TRUE."""
    if Truth.FALSE in truths:
        return Truth.FALSE
    return Truth.UNKNOWN if Truth.UNKNOWN in truths else Truth.TRUE


def disjunction(truths: list[Truth]) -> Truth:
    """TRUE when any is, else UNKNOWN when any is, else FALSE."""
    if Truth.TRUE in truths:
        return Truth.TRUE
    return Truth.UNKNOWN if Truth.UNKNOWN in truths else Truth.FALSE


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that a leaf lacks, and why."""

    fact: str
    subject: Subject
    reason: str  # a Status, or a sentence

    def __str__(self) -> str:
        return f"{self.fact} of {self.subject}: {self.reason}"


def gap_of(fact: str, subject: Subject, seen: Observation | None) -> Missing:
    """Why a fact of a subject decides nothing: `seen` is what was answered instead, if anything."""
    if seen is None:
        return Missing(fact, subject, str(Status.NOT_ASKED))
    return Missing(fact, subject, f"{seen.status}: {seen.detail}" if seen.detail else str(seen.status))


@dataclass(frozen=True, slots=True)
class LeafProof:
    """One leaf: its truth, the observations that made it so, or what is missing."""

    leaf: Leaf
    truth: Truth
    observations: tuple[Observation, ...] = ()
    missing: tuple[Missing, ...] = ()
    seen: str = ""  # the value that was compared, in words


@dataclass(frozen=True, slots=True)
class GroupProof:
    """``all`` or ``any`` over parts."""

    op: str
    truth: Truth
    children: tuple[Proof, ...]


Proof: TypeAlias = LeafProof | GroupProof


def leaf_proofs(proof: Proof) -> Iterator[LeafProof]:
    """All leaves of a proof, left to right."""
    if isinstance(proof, GroupProof):
        for child in proof.children:
            yield from leaf_proofs(child)
    else:
        yield proof


def deciding(proof: Proof) -> Iterator[LeafProof]:
    """The leaves that made a decided proof what it is: those with the same truth along the way."""
    if isinstance(proof, LeafProof):
        yield proof
        return
    for child in proof.children:
        if child.truth is proof.truth:
            yield from deciding(child)


def flips(proof: Proof, wanted: Truth) -> list[LeafProof]:
    """A smallest set of leaves that would have to differ for the proof to become `wanted`."""
    if proof.truth is wanted:
        return []
    if isinstance(proof, LeafProof):
        return [proof]
    parts = [flips(child, wanted) for child in proof.children]
    everything = (proof.op == "all") == (wanted is Truth.TRUE)
    if everything:
        return [leaf for part in parts for leaf in part]
    return min(parts, key=len, default=[])


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on: observations without repetition, and what is missing."""

    observations: tuple[Observation, ...] = ()
    missing: tuple[Missing, ...] = field(default=())


def evidence(*proofs: Proof | None) -> Evidence:
    """Observations of the deciding true leaves (of all true ones, where nothing is decided), and the gaps of all."""
    seen: dict[int, Observation] = {}
    gaps: dict[Missing, None] = {}
    for proof in proofs:
        if proof is None:
            continue
        for leaf in deciding(proof) if proof.truth is Truth.TRUE else leaf_proofs(proof):
            if leaf.truth is Truth.TRUE:
                for o in leaf.observations:
                    seen.setdefault(id(o), o)
        for leaf in leaf_proofs(proof):
            for gap in leaf.missing:
                if leaf.truth is Truth.UNKNOWN:
                    gaps.setdefault(gap)
    return Evidence(tuple(seen.values()), tuple(gaps))
