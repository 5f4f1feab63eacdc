"""Shape of ``knowledge/data/at_rest.yaml``: what a GPU shows while nothing runs on it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from knowledge.schema.glossary import Bilingual, Line, Sourced


class Entry(Sourced):
    """See `knowledge.at_rest.AtRest`; amounts are in the unit of the fact."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    fact: str
    models: list[Line] = []
    from_: float = Field(alias="from", strict=False)
    to: float = Field(strict=False)
    held: float | None = Field(default=None, strict=False)
    open: Bilingual
    bad: Bilingual | None = None
    good: Bilingual | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.from_ <= self.to < (self.held if self.held is not None else self.to + 1):
            raise ValueError("from, to and held do not follow each other")
        if (self.held is None) != (self.bad is None):
            raise ValueError("what is above `held` needs a text, and a text needs the bound")
        return self
