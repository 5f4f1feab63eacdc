"""Shape of ``knowledge/data/bottlenecks.yaml``: what people ask of a trace by name, and the rules and facts that tell."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from knowledge.schema import Strict, Words
from knowledge.schema.glossary import Line
from knowledge.schema.hypotheses import Slug


class Said(Strict):
    """Words of a sentence, small letters, hyphens as spaces."""

    en: Annotated[list[Line], Field(min_length=1)]
    zh: list[Line]


class Entry(Strict):
    """See `knowledge.bottlenecks.Bottleneck`."""

    id: Slug
    title: Words  # a noun phrase
    kind: Literal["cause", "remedy", "which"]
    said: Said
    rules: list[Slug]
    facts: Annotated[list[str], Field(min_length=1, max_length=8)]
    names: list[str] = []
    same: list[str] = []
    whole: list[str] = []
    over: list[Slug] = []
