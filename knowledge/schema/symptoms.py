"""Shape of ``knowledge/data/symptoms/*.yaml``: what people say is wrong, and the hypotheses behind it."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line
from knowledge.schema.hypotheses import Slug

_HAN = re.compile("[\u4e00-\u9fff]")


class Said(Strict):
    """How people say it: short phrases in plain words."""

    en: Annotated[list[Line], Field(min_length=20)]
    zh: Annotated[list[Line], Field(min_length=15)]

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        if wrong := [p for p in self.en if _HAN.search(p)]:
            raise ValueError(f"English phrases hold Chinese characters: {wrong}")
        if wrong := [p for p in self.zh if not _HAN.search(p)]:
            raise ValueError(f"Chinese phrases hold no Chinese characters: {wrong}")
        for phrases in (self.en, self.zh):
            plain = [p.casefold() for p in phrases]
            if twice := {p for p in plain if plain.count(p) > 1}:
                raise ValueError(f"phrases stand twice: {sorted(twice)}")
        return self


class Entry(Strict):
    """See `knowledge.symptoms.Symptom`."""

    id: Slug
    title: Bilingual
    text: Bilingual  # what it is and what it is not, in two or three sentences
    said: Said
    tags: list[Slug] = []
    hypotheses: Annotated[list[Slug], Field(min_length=6, max_length=40)]
    running: Annotated[
        list[Slug], Field(max_length=15)
    ] = []  # instead of them for a job that is looked into while it runs
    state: Slug | None = None  # of a state of the hardware the hypothesis that is the state itself
    sources: Annotated[list[Line], Field(min_length=1)]
