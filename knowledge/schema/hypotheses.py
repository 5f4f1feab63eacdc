"""Shape of ``knowledge/data/hypotheses/*.yaml``: what can be behind a symptom.

A hypothesis stands once and is named by every symptom that it can cause.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from knowledge.priors import CauseClass
from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line

Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
FactName = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")]


class Said(Strict):
    """Words of a complaint that point at it, where the complaint alone would leave it one of many."""

    en: Annotated[list[Line], Field(min_length=1)]
    zh: Annotated[list[Line], Field(min_length=1)]


class Entry(Strict):
    """See `knowledge.symptoms.Hypothesis`."""

    id: Slug
    title: Bilingual
    said: Said | None = None
    cause: Annotated[str, Field(pattern=rf"^({'|'.join(CauseClass)})$")]
    rules: list[Slug] = []  # one that holds speaks for it
    signs: list[Slug] = []  # rules that fit it and others as well
    decides: list[Slug] = []  # of `rules`: when none can hold, it is ruled out; without find_out all of them by default
    needs: FactName | None = None  # a set of a node: where it is known to be empty on all, it is ruled out
    facts: list[FactName] = []
    ask: FactName | None = None
    find_out: Bilingual | None = None
    sources: list[Line] = []

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        if not (self.rules or self.find_out):
            raise ValueError("neither a rule nor a person could ever tell: give rules or find_out")
        if self.find_out is not None and not self.sources:
            raise ValueError("find_out names tools and their output: give its sources")
        if stray := sorted(set(self.decides) - set(self.rules)):
            raise ValueError(f"decides names what is not among its rules: {', '.join(stray)}")
        both = [*self.rules, *self.signs]
        if len(set(both)) != len(both):
            raise ValueError("a rule stands twice")
        return self
