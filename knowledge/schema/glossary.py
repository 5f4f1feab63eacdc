"""Shape of ``knowledge/data/glossary.yaml``, and the parts that the catalogues of knowledge share."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict, Words

_HAN = re.compile("[\u4e00-\u9fff]")
Line = Annotated[str, Field(min_length=1, pattern=r"^\S(.*\S)?$")]


class Bilingual(Words):
    """A sentence in English and in Chinese: neither empty, the Chinese really Chinese."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if not self.en.strip():
            raise ValueError("the English text is empty")
        if not _HAN.search(self.zh):
            raise ValueError("the Chinese text holds no Chinese characters")
        if _HAN.search(self.en):
            raise ValueError("the English text holds Chinese characters")
        return self


class Disagreement(Strict):
    """A source that says otherwise."""

    source: Line
    says: Bilingual


class Sourced(Strict):
    """What every entry carries: where it comes from, and what disagrees with it."""

    sources: list[Line] = Field(min_length=1)
    disagrees: list[Disagreement] = []


class Entry(Sourced):
    """One term; see `knowledge.catalog.lookup.Term`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    term: Words  # names often stay untranslated
    also: list[Line] = []
    text: Bilingual
    needed: Bilingual | None = None  # who needs it, where people ask that of it: reads as a sentence
    see_also: list[str] = []
