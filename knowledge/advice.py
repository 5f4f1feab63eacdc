"""Advice: which of two, whether something can be done beside running work, what to set. Of no machine in particular."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.record import dataclass


class When(NamedTuple):
    """What a sentence has that an entry answers: ids of any of its ways to ask, of all that it is about, and of none of the others."""

    asks: tuple[str, ...]
    about: tuple[str, ...]
    without: tuple[str, ...] = ()


class Told(NamedTuple):
    """What a sentence tells that an entry answers: all of the marks that it `has`, and none of `without`."""

    has: tuple[str, ...]
    without: tuple[str, ...] = ()
    reports: bool = False  # whether it says how a machine is: where one can be looked at, that comes first


@dataclass(frozen=True, slots=True)
class Advice:
    """One question that people have, and its answer."""

    id: str
    title: Text
    says: Text
    when: tuple[When, ...] = ()
    told: tuple[Told, ...] = ()
    variables: tuple[str, ...] = ()  # of the environment
    reports: bool = False  # whether a sentence of these words asks for it that only tells what happens
    more: tuple[Text, ...] = ()
    see: tuple[str, ...] = ()  # ids of pages: ``howto reset-gpu``
    sources: tuple[str, ...] = ()


@cache
def advice() -> Mapping[str, Advice]:
    """All entries by id. FaultsError when the data has faults."""
    return {d["id"]: _of(d) for d in shard("advice")}


def _of(d: Mapping[str, Any]) -> Advice:
    return Advice(
        id=d["id"],
        title=Text.of(d["title"]),
        says=Text.of(d["says"]),
        when=tuple(When(tuple(w["asks"]), tuple(w["about"]), tuple(w.get("without", ()))) for w in d.get("when", ())),
        told=tuple(
            Told(tuple(t["has"]), tuple(t.get("without", ())), t.get("reports", False)) for t in d.get("told", ())
        ),
        variables=tuple(d.get("variables", ())),
        reports=d.get("reports", False),
        more=tuple(Text.of(m) for m in d.get("more", ())),
        see=tuple(d.get("see", ())),
        sources=tuple(d["sources"]),
    )
