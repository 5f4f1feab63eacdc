"""Shape of ``knowledge/data/readings.yaml``: what a reading means by itself."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual


class Band(Strict):
    """Values from `from` (included) to `below` (not included), or the words of `is`."""

    from_: float | None = Field(default=None, alias="from", strict=False)
    below: float | None = Field(default=None, strict=False)
    is_: list[str] = Field(default=[], alias="is")
    rating: Literal["good", "open", "bad"]
    text: Bilingual


class Entry(Strict):
    """See `knowledge.readings.Scale`."""

    name: str  # of the fact
    range: str = ""
    measure: str = ""  # the same where a poor value is no fault by itself
    same_as: str = ""  # the fact that it has to equal
    under_load: bool = False
    bands: list[Band] = []
    bucket: str = ""
    usable: Literal["", "no", "not_yet", "impaired"] = ""
    runbook: str = ""
    do: Bilingual | None = None  # where the bucket's own words say too little

    @model_validator(mode="after")
    def _bad_ones_say_what_to_do(self) -> Self:
        if sum(map(bool, (self.range, self.measure, self.bands))) > 1:
            raise ValueError("bands of its own and those of a measure: one of them is meant")
        if (self.range or any(b.rating == "bad" for b in self.bands)) and not (self.bucket and self.usable):
            raise ValueError("a bad value has no bucket, or does not say whether the thing can be used")
        return self
