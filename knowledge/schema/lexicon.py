"""Shape of ``knowledge/data/lexicon/*.yaml``: the words that people use, in both languages alike."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Line

Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Lines = list[Line]


class Said(Strict):
    """The same list in both languages; one may have nothing of the kind."""

    en: Lines = []
    zh: Lines = []

    @model_validator(mode="after")
    def _some(self) -> Said:
        if not (self.en or self.zh):
            raise ValueError("holds no words")
        for lines in (self.en, self.zh):
            if len(set(lines)) != len(lines):
                raise ValueError(f"says twice: {sorted({line for line in lines if lines.count(line) > 1})}")
        return self


class Phrases(Strict):
    """How a wish is put. See `assistant.intent.phrases` for what a phrase is made of."""

    kind: Literal["phrases"]
    id: Id
    intent: Line
    weight: int = Field(ge=1, le=12)
    whole: bool = False  # counts only when nothing but politeness is left of the sentence
    page: str = ""  # of an explanation: the page that answers, such as "term busy-and-working"
    said: Said


class Class(Strict):
    """Words that mean the same: ``@id`` in a phrase, and one word when symptoms are compared."""

    kind: Literal["class"]
    id: Id
    said: Said


class Words(Strict):
    """Words that play a part, whatever sentence they stand in."""

    kind: Literal["words"]
    id: Id
    role: Literal[
        "field",
        "weak",
        "elsewhere",
        "never",
        "filler",
        "common",
        "program",
        "nothost",
        "linking",
        "otherpart",
        "counted-port",
        "counted-nvlink",
        "counted-link",
        "counted-psu",
        "counted-fan",
        "counted-pump",
        "counted-memory",
        "counted-drive",
        "counted-gpu",
        "well",
        "ill",
        "absent",
        "plain",
        "which",
        "part",
        "at-fault",
        "take-out",
        "what",
        "happened",
        "time",
        "recount",
        "event",
        "in-order",
        "brief",
        "tell",
        "audience",
        "state-of",
        "cause",
        "is-it",
        "blame",
    ]
    said: Said


class Spellings(Strict):
    """Other spellings of a word: contractions, abbreviations."""

    kind: Literal["spellings"]
    id: Id
    read: dict[Line, Line]


class Sounds(Strict):
    """How Han characters sound, and the words that are meant when only the sound is right."""

    kind: Literal["sounds"]
    id: Id
    read: dict[Line, Line]  # a syllable -> its characters
    words: Lines

    @model_validator(mode="after")
    def _once(self) -> Sounds:
        every = "".join(self.read.values())
        if twice := sorted({c for c in every if every.count(c) > 1}):
            raise ValueError(f"has two sounds: {twice}")
        return self


class Fact(Strict):
    """What people call a fact of the vocabulary."""

    kind: Literal["fact"]
    id: Id
    fact: Line
    said: Said


class Value(Strict):
    """What people call a value."""

    kind: Literal["value"]
    id: Id
    value: Line
    said: Said


class Told(Strict):
    """A fact that a statement tells. `value` may be a number of the sentence: ``<n>``, or ``<m>`` for the second one."""

    fact: Line
    value: bool | int | float | str | None = None
    where: dict[str, str] = {}  # the fields of an event
    others: str | None = (
        None  # the value of the same fact on the things of its kind that were not meant: "one link is down"
    )


class Statement(Strict):
    """How people state what is so: phrases, and the facts that they tell. ``<n>`` and ``<m>`` are numbers."""

    kind: Literal["statement"]
    id: Id
    tells: Annotated[list[Told], Field(min_length=1)]
    said: Said


class Entry(
    RootModel[
        Annotated[Phrases | Class | Words | Spellings | Sounds | Fact | Value | Statement, Field(discriminator="kind")]
    ]
):
    """One list of words; see `knowledge.lexicon`."""
