"""Shape of ``knowledge/data/ranges.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line, Sourced
from knowledge.schema.howto import Phrases


class Case(Strict):
    """What the values of a band are for one kind of work."""

    rating: Literal["good", "fair", "poor", "open"]
    text: Bilingual


class Band(Strict):
    """Values from `from` (included) to `below` (not included); open where a bound is absent."""

    from_: float | None = Field(default=None, alias="from", strict=False)
    below: float | None = Field(default=None, strict=False)
    rating: Literal["good", "fair", "poor", "bad", "open"]  # open: the value alone does not tell
    text: Bilingual
    for_: dict[str, Case] = Field(default={}, alias="for")  # by the id of a workload


class Row(Strict):
    """What is normal in one case."""

    case: Line
    value: Line


class Entry(Sourced):
    """What values of one measure mean; see `knowledge.ranges.Range`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Bilingual
    unit: str
    aliases: Phrases
    about: Bilingual
    depends: Bilingual | None = None
    bands: list[Band] = []
    rows: list[Row] = []
    shown_by: list[Line] = []  # facts, metrics, commands

    @model_validator(mode="after")
    def _bands_follow_each_other(self) -> Self:
        if not self.bands and not self.rows:
            raise ValueError("neither bands nor rows: nothing is said about any value")
        for before, band in zip(self.bands, self.bands[1:], strict=False):
            if before.below is None or before.below != band.from_:
                raise ValueError(f"a band ends at {before.below} and the next begins at {band.from_}")
        if self.bands and (self.bands[0].from_ is not None or self.bands[-1].below is not None):
            raise ValueError("the first band has no lower bound, the last no upper one")
        return self
