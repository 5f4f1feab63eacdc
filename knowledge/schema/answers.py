"""Shape of ``knowledge/data/answers.yaml``."""

from __future__ import annotations

from typing import Self

from pydantic import field_validator, model_validator

from knowledge.schema import Strict

LANGUAGES = ("en", "zh")


class Entry(Strict):
    """One thing that can be said to a question."""

    id: str
    said: dict[str, list[str]] = {}
    anywhere: bool = False
    numbers: dict[str, int] = {}

    @field_validator("said")
    @classmethod
    def _both(cls, said: dict[str, list[str]]) -> dict[str, list[str]]:
        if said and tuple(sorted(said)) != LANGUAGES:
            raise ValueError("phrases stand in en and in zh")
        for phrases in said.values():
            if not phrases or len(set(phrases)) < len(phrases) or any(p != p.strip().casefold() for p in phrases):
                raise ValueError("phrases are there, in lower case, each once")
        return said

    @model_validator(mode="after")
    def _something(self) -> Self:
        if bool(self.said) == bool(self.numbers):
            raise ValueError("an entry has phrases (said) or words for numbers, not both")
        return self
