"""What a reading means by itself, nothing else being known: the scales of ``data/readings.yaml``, typed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Value
from knowledge.ranges import Band, ranges
from knowledge.record import dataclass


class Rating(StrEnum):
    """How a value is by itself."""

    GOOD = "good"
    OPEN = "open"  # the value alone does not tell
    BAD = "bad"


_OF_MEASURES = {"good": Rating.GOOD}
_OF_RANGES = {"good": Rating.GOOD, "fair": Rating.OPEN, "open": Rating.OPEN, "poor": Rating.BAD, "bad": Rating.BAD}


class Meaning(NamedTuple):
    """What one value means."""

    rating: Rating
    text: Text = NO_TEXT
    band: Band | None = None  # of numbers the limits


@dataclass(frozen=True, slots=True)
class Scale:
    """The values of one fact, and what is to be done about a bad one."""

    fact: str
    bands: tuple[tuple[Rating, Band], ...] = ()  # with limits and text
    words: Mapping[str, tuple[Rating, Text]] | None = None
    measure: str = ""  # the id of the measure (ranges.yaml) whose values it has
    same_as: str = ""  # the fact that it has to equal
    under_load: bool = False  # a bad value is bad only while the thing works
    bucket: str = ""
    usable: str = ""
    runbook: str = ""
    do: Text = NO_TEXT

    def meaning(self, value: Value) -> Meaning:
        """What `value` (in the unit of the fact) means; open without a text where nothing is known of it."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            rating, text = (self.words or {}).get(str(value).lower(), (Rating.OPEN, NO_TEXT))
            return Meaning(rating, text)
        return next((Meaning(rating, b.text, b) for rating, b in self.bands if b.holds(value)), Meaning(Rating.OPEN))


@cache
def scales() -> Mapping[str, Scale]:
    """All of them by the name of the fact. FaultsError when the data has faults."""
    return {d["name"]: _of(d) for d in shard("readings")}


def _of(d: Mapping[str, Any]) -> Scale:
    bands = d.get("bands", ())
    own = [
        (Rating(b["rating"]), Band(b.get("from"), b.get("below"), b["rating"], Text.of(b["text"])))
        for b in bands
        if not b.get("is")
    ]
    measure, ratings = (d["range"], _OF_RANGES) if d.get("range") else (d.get("measure", ""), _OF_MEASURES)
    of_range = [(ratings.get(b.rating, Rating.OPEN), b) for b in ranges()[measure].bands] if measure else []
    words = {w: (Rating(b["rating"]), Text.of(b["text"])) for b in bands for w in b.get("is", ())}
    return Scale(
        d["name"], (*own, *of_range), words, measure, d.get("same_as", ""), d.get("under_load", False), d.get("bucket", ""), d.get("usable", ""),
        d.get("runbook", ""), Text.of(d.get("do")),
    )  # fmt: skip
