"""What it means that a stated reading is not like those of its peers, not what it should be, or not what it was: ``data/compared.yaml``, typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.record import dataclass


class Against(StrEnum):
    """What a value is held against."""

    PEERS = "peers"  # others of its kind, at the same time
    EXPECTED = "expected"  # what it should be
    PAST = "past"  # what it was


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is read, and what a worse value of it means."""

    id: str
    fact: str  # that the value is of
    expected: str  # the fact that tells what it should be; "" where the vocabulary has none
    units: Mapping[str, float]  # a unit as it is written, in small letters -> by what a number has to be multiplied
    counts: bool  # whether a number without a unit may be of it
    fills: bool  # whether it is a part of a whole: 79 of 80 GB is how full it is, and no two values
    scale: float  # units of the fact in one of the unit that people say
    mark: str  # what stands ahead of its number: x16, gen 4
    values: tuple[float, ...]  # all that there are; empty where any may be
    said: re.Pattern[str] | None  # its names
    unless: re.Pattern[str] | None  # names of others that its unit and names are of as well
    needs_name: bool  # whether its unit alone does not tell it
    shown: Text  # the value within a sentence about the subject: "runs at {value} MHz"
    also: Text  # the same of another value, behind the first: "at {value} MHz"
    whose: Text  # the subject where nobody named it
    peers: Text  # the others
    low: bool  # whether less is worse
    least: float  # percent of difference (or units, where `absolute`) that is usual between sound ones
    absolute: bool
    meaning: Mapping[Against, Text]
    do: tuple[str, ...]  # commands that tell more
    bucket: str
    usable: str
    runbook: str

    def differs(self, value: float, other: float) -> bool:
        """Whether two values are further apart than sound ones are."""
        apart = abs(value - other)
        return apart > self.least if self.absolute else 100 * apart > self.least * max(abs(value), abs(other))

    def is_worse(self, value: float, other: float) -> bool:
        """Whether `value` is on the bad side of `other`."""
        return value < other if self.low else value > other


@cache
def quantities() -> tuple[Quantity, ...]:
    """All of them, those that are looked for first ahead. FaultsError when the data has faults."""
    return tuple(_of(d) for d in shard("compared"))


def quantity(name: str) -> Quantity | None:
    """The one with this id."""
    return next((q for q in quantities() if q.id == name), None)


def _of(d: Mapping[str, Any]) -> Quantity:
    meaning = {Against(k): Text.of(v) for k, v in d["meaning"].items() if v}
    return Quantity(
        d["id"], d["fact"], d.get("expected", ""), d.get("units", {}), d.get("counts", False), d.get("fills", False), d.get("scale", 1.0), d.get("mark", ""), tuple(d.get("values", ())),
        _names(d.get("said")), _names(d.get("unless")), d.get("needs_name", False), Text.of(d["shown"]), Text.of(d["also"]),
        Text.of(d["whose"]), Text.of(d["peers"]), d["worse"] == "low", d["least"], d.get("absolute", False), meaning, tuple(d["do"]),
        d["bucket"], d["usable"], d.get("runbook", ""),
    )  # fmt: skip


def _names(said: Mapping[str, list[str]] | None) -> re.Pattern[str] | None:
    en, zh = (said or {}).get("en", ()), (said or {}).get("zh", ())
    words = [rf"(?<![a-z0-9])(?:{'|'.join(en)})(?![a-z])"] if en else []
    return lazy("|".join([*words, *zh]), re.IGNORECASE) if words or zh else None
