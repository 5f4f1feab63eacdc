"""Shape of ``knowledge/data/compared.yaml``: what it means that a reading is not like those of its peers, not what it should be or was."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from knowledge.schema import Strict, Words
from knowledge.schema.glossary import Bilingual
from knowledge.schema.hypotheses import Slug

Factor = Annotated[float, Field(gt=0, strict=False)]


class Said(Strict):
    """RE2-like patterns of names, small letters."""

    en: list[str] = []
    zh: list[str] = []


class Meanings(Strict):
    """What the worse value means beside each other one. One that is missing is not judged."""

    peers: Bilingual | None = None
    expected: Bilingual | None = None
    past: Bilingual | None = None


class Entry(Strict):
    """See `knowledge.compared.Quantity`."""

    id: Slug
    fact: str
    expected: str = ""
    units: dict[str, Factor] = {}
    counts: bool = False
    fills: bool = False
    scale: Factor = 1.0
    mark: Literal["", "x", "gen"] = ""
    values: list[float] = []
    said: Said = Said()
    unless: Said = Said()
    needs_name: bool = False
    shown: Bilingual
    also: Words
    whose: Bilingual
    peers: Bilingual
    worse: Literal["low", "high"]
    least: Factor
    absolute: bool = False
    meaning: Meanings
    do: Annotated[list[str], Field(min_length=1)]
    bucket: str
    usable: Literal["unknown", "impaired"]
    runbook: str = ""
