"""Shape of ``knowledge/data/advice/*.yaml``."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from knowledge.schema import Strict, Words
from knowledge.schema.glossary import Bilingual, Line, Sourced
from knowledge.schema.howto import Phrases
from knowledge.schema.lexicon import Said


class When(Strict):
    """What a sentence has that an entry answers, by the words of ``tasks.yaml``: any of the `asks`, all of `about`, none of `without`."""

    asks: list[str] = Field(min_length=1)
    about: list[str] = Field(min_length=1)
    without: list[str] = []

    @model_validator(mode="after")
    def _known(self) -> Self:
        from knowledge.compiled import shard

        known = [(e["kind"] == "ask", e["id"]) for e in shard("tasks")]
        for asking, names in ((True, self.asks), (False, [*self.about, *self.without])):
            for name in names:
                if (asking, name) not in known:
                    raise ValueError(f"{name!r} is no {'ask' if asking else 'verb or thing'} of tasks.yaml")
        return self


class Told(Strict):
    """What a sentence tells that an entry answers, by the marks of ``assistant/intent/busy.py``: all that it `has`, none of `without`.

    `reports`: it says how a machine is, so that where one can be looked at that comes first.
    """

    has: list[str] = Field(min_length=1)
    without: list[str] = []
    reports: bool = False


class Entry(Sourced):
    """One advice; see `knowledge.advice.Advice`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Words  # names of variables stay untranslated
    when: list[When] = []
    told: list[Told] = []
    variables: list[Line] = []  # of the environment
    said: Said | None = None  # phrases of it, as those of the lexicon
    reports: bool = False  # whether they ask for it where they only tell what happens
    ask: Phrases | None = None  # questions that it answers, in plain words: others like them find it
    says: Bilingual  # the answer, the first sentence by itself
    more: list[Bilingual] = []
    see: list[Line] = []  # pages: their kind and name

    @model_validator(mode="after")
    def _found(self) -> Self:
        if bool(self.when or self.said or self.ask or self.told) == bool(self.variables):
            raise ValueError("an entry has `when`, `told`, `said` or `ask`, or else `variables`")
        return self
