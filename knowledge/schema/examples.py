"""Shape of ``knowledge/data/examples/*.yaml``: sentences with what they want, in both languages."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Line
from knowledge.schema.lexicon import Said


class Entry(Strict):
    """Sentences that want the same; see `assistant.intent.weights` for what is learned from them."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    intent: Line
    tuned: bool = (
        False  # the phrases of the lexicon were written with these in view: they do not show what phrases are worth
    )
    said: Said

    @model_validator(mode="after")
    def _once(self) -> Self:
        if not self.said.en and not self.said.zh:
            raise ValueError("holds no sentences")
        return self
