"""Shape of ``knowledge/data/suspects.yaml``: everyday names of what somebody suspects, and the hypotheses meant by them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from knowledge.schema import Strict, Words
from knowledge.schema.glossary import Line
from knowledge.schema.hypotheses import Slug


class Said(Strict):
    """Words of one to three parts, small letters."""

    en: Annotated[list[Line], Field(min_length=1)]
    zh: list[Line]


class Entry(Strict):
    """See `knowledge.suspects.Suspect`."""

    id: Slug
    title: Words  # a noun phrase within a sentence; a name such as NVLink is the same in both languages
    said: Said
    hypotheses: Annotated[list[Slug], Field(min_length=1, max_length=8)]
