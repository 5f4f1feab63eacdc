"""Shape of ``knowledge/data/priors.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Sourced


class Cause(Strict):
    """One published cause."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    label: Bilingual
    value: float = Field(gt=0, strict=False)
    # `class` is a word of Python
    cls: Literal["gpu", "memory", "network", "software", "host", "storage", "power", "cooling", "unknown"] = Field(
        alias="class"
    )


class Figure(Strict):
    """One published number with its unit."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    value: float = Field(strict=False)
    unit: str
    text: Bilingual


class Entry(Sourced):
    """One publication; see `knowledge.priors.Publication`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Bilingual
    fleet: Bilingual
    days: int | None = None
    gpus: int | None = None
    unit: Literal["count", "percent", "rate"]
    total: float | None = Field(default=None, strict=False)
    causes: list[Cause] = []
    figures: list[Figure] = []
    certainty: Literal["read", "memory"]
    note: Bilingual | None = None

    @model_validator(mode="after")
    def _sums(self) -> Self:
        if not self.causes and not self.figures:
            raise ValueError("a publication holds causes or figures")
        if self.causes and (self.total is None or abs(sum(c.value for c in self.causes) - self.total) > 0.05):
            raise ValueError("the causes add up to the total")
        return self
