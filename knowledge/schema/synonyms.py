"""Shape of ``knowledge/data/synonyms.yaml``: everyday words that mean the same, for finding pages."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Line


class Entry(Strict):
    """One group; see `assistant.find.corpus.spellings`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    en: list[Line]
    zh: list[Line] = []

    @model_validator(mode="after")
    def _several(self) -> Self:
        if len({*self.en, *self.zh}) < 2 or len({*self.en, *self.zh}) != len([*self.en, *self.zh]):
            raise ValueError("a group holds at least two words, each once")
        return self
