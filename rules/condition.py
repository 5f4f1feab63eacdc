"""Conditions as a typed tree: ``all`` and ``any`` over leaves, with negation in the leaves.

A leaf asks one thing of one fact. It is checked against the vocabulary when the rule is
loaded, so a condition that exists can be evaluated. The surface forms::

    {event: xid, where: {code: 13}, same: [gpc, tpc], count: {at_least: 2}, within: 24h, gap: 3m,
     on: self|node|others, after: {event: ..., where: ..., within: 60s}}
    {fact: NAME, op: at_least, value: 5}
    {fact: NAME, op: at_least, value: {fact: OTHER, times: 0.9, plus: -5}}
    {fact: NAME, take: increase|rate|sustained|percentile, within: 10m, per: 1m, percentile: 95,
     coverage: 0.8, op: above, value: 16}
    {fact: NAME, on: below|peers|node, each: any|all|none|{at_least: 2}|{share: 0.5}, op: ..., value: ...}
    {fact: NAME, via: [process, gpu], each: any, op: ..., value: ...}
    {fact: NAME, peers: ratio, op: below, value: 0.8, min_peers: 3}     own value over the median of the others
    {known: NAME}                                                      somebody answered, whatever the answer
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from knowledge.observation import Scalar, Scope
from knowledge.record import dataclass

Path: TypeAlias = tuple[str | int, ...]


class Op(StrEnum):
    """How a value is compared."""

    IS = "is"
    IS_NOT = "is_not"
    IN = "in"
    NOT_IN = "not_in"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    ABOVE = "above"
    BELOW = "below"
    CONTAINS = "contains"
    MATCHES = "matches"
    VERSION_BELOW = "version_below"
    VERSION_AT_LEAST = "version_at_least"


class Take(StrEnum):
    """What is taken of a fact over time."""

    LAST = "last"
    INCREASE = "increase"  # growth within the window, resets of a counter survived
    RATE = "rate"  # increase per `per`
    SUSTAINED = "sustained"  # every sample of the window satisfies the comparison
    PERCENTILE = "percentile"


class On(StrEnum):
    """Which subjects a leaf looks at, seen from the rule's subject."""

    SELF = "self"  # the subject, what it is part of, and (events) what is part of it
    NODE = "node"  # everything on the same node
    OTHERS = "others"  # the same scope on the same node, without the subject
    BELOW = "below"  # parts of the subject
    VIA = "via"  # along relations


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How many of several subjects must satisfy a leaf."""

    kind: str  # any, all, none, at_least, share
    number: float = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """A threshold that another fact of the same subject gives: value * times + plus."""

    fact: str
    times: float = 1.0
    plus: float = 0.0


Operand: TypeAlias = Scalar | tuple[Scalar, ...] | Reference


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One condition on a field of an event."""

    field: str
    op: Op
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class EventLeaf:
    """Some events of a kind happened."""

    event: str
    where: tuple[FieldTest, ...] = ()
    same: tuple[str, ...] = ()
    at_least: int = 1
    at_most: int | None = None
    within: int | None = None  # ns; with at_least > 1 any span of this length
    gap: int | None = None  # ns; events closer together than this count as one (a burst)
    on: On = On.SELF
    after: EventLeaf | None = None  # and an event of this kind happened at most `within` before
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class FactLeaf:
    """A fact compares with a value."""

    fact: str
    op: Op
    value: Operand
    take: Take = Take.LAST
    within: int | None = None  # ns
    per: int = 10**9  # ns, unit of a rate
    percentile: float = 50.0
    coverage: float = 0.5  # of the window that samples must span
    on: On = On.SELF
    via: tuple[Scope, ...] = ()
    each: Quantifier | None = None
    peer_ratio: bool = False
    min_peers: int = 3
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class KnownLeaf:
    """A fact was answered. Its negation is never true: not knowing proves nothing."""

    fact: str
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class All:
    """Every child holds."""

    children: tuple[Condition, ...]
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Any_:
    """At least one child holds."""

    children: tuple[Condition, ...]
    path: Path = ()


Leaf: TypeAlias = EventLeaf | FactLeaf | KnownLeaf
Condition: TypeAlias = All | Any_ | Leaf


def leaves(condition: Condition) -> Iterator[Leaf]:
    """All leaves, left to right."""
    if isinstance(condition, All | Any_):
        for child in condition.children:
            yield from leaves(child)
    else:
        yield condition


def without(condition: Condition, broken: Collection[Path]) -> Condition | None:
    """The condition without the leaves in which something is broken; None when nothing is left."""
    if not isinstance(condition, All | Any_):
        return None if any(at[: len(condition.path)] == condition.path for at in broken) else condition
    kept = tuple(c for child in condition.children if (c := without(child, broken)) is not None)
    return replace(condition, children=kept) if kept else None


def facts_of(condition: Condition) -> frozenset[str]:
    """Names of all facts that a condition mentions."""
    names: set[str] = set()
    for leaf in leaves(condition):
        if isinstance(leaf, EventLeaf):
            names.add(leaf.event)
            if leaf.after:
                names.add(leaf.after.event)
        else:
            names.add(leaf.fact)
            if isinstance(leaf, FactLeaf) and isinstance(leaf.value, Reference):
                names.add(leaf.value.fact)
    return frozenset(names)
