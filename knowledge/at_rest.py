"""What a GPU shows while nothing runs on it, by its model: the values of ``data/at_rest.yaml``, typed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.readings import Rating
from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class AtRest:
    """What one fact is at rest, in its unit: `low` to `high`."""

    fact: str
    models: tuple[str, ...]  # words of the product's name; none: any GPU
    low: float
    high: float
    held: float | None  # up to here something may hold it awake; None: however much it is
    open: Text
    bad: Text = NO_TEXT
    good: Text = NO_TEXT  # where that depends on something

    def rating(self, value: float) -> tuple[Rating, Text]:
        """How `value` is at rest, and what it means where it is not usual."""
        if value <= self.high:
            return Rating.GOOD, self.good
        return (Rating.OPEN, self.open) if self.held is None or value <= self.held else (Rating.BAD, self.bad)


@cache
def _all() -> tuple[AtRest, ...]:
    return tuple(map(_of, shard("at_rest")))


def at_rest(fact: str, said: str) -> AtRest | None:
    """What `fact` is at rest on the model that `said` names, else on any; None where nobody knows."""
    words = frozenset(re.findall(r"[a-z0-9]+", said.casefold()[:2000]))
    mine = [a for a in _all() if a.fact == fact]
    return next((a for a in mine if words.intersection(a.models)), next((a for a in mine if not a.models), None))


def _of(d: dict[str, Any]) -> AtRest:
    return AtRest(
        d["fact"],
        tuple(d.get("models", ())),
        d["from"],
        d["to"],
        d.get("held"),
        Text.of(d["open"]),
        Text.of(d.get("bad")),
        Text.of(d.get("good")),
    )
