"""One sentence of a narration, with what it cites, as the guards look at it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from assistant.narrate.material import Item, Material
from assistant.narrate.placeholders import PLACEHOLDER, Slot
from assistant.narrate.vocabulary import Words, together
from assistant.narrate.wording import folded, marks, tokens

_CLAUSE = re.compile(r"[,;:()（），；：、]|\b(?:while|whereas|but|although|and|so|then)\b|而|但")


@dataclass(frozen=True)
class Sentence:
    """A sentence and its findings."""

    raw: str  # as the model wrote it
    items: tuple[Item, ...]
    material: Material

    @cached_property
    def text(self) -> str:
        """With one word for each meaning."""
        return folded(self.raw, self.lang)

    @property
    def lang(self) -> str:
        """en or zh."""
        return self.material.lang

    @property
    def cites(self) -> tuple[str, ...]:
        """The ids that it cites."""
        return tuple(i.id for i in self.items)

    @cached_property
    def words(self) -> Words:
        """What it may use."""
        return together(self.items, self.lang)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Its tokens as written."""
        return tuple(tokens(self.text))

    @cached_property
    def low(self) -> tuple[str, ...]:
        """Its tokens in small letters."""
        return tuple(t.lower() for t in self.tokens)

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What it is compared by."""
        return tuple(marks(self.text, self.lang))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The placeholders in it."""
        return tuple(PLACEHOLDER.findall(self.text))

    @property
    def slots(self) -> Mapping[str, Slot]:
        """The table."""
        return self.material.slots

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """Its parts between commas and conjunctions."""
        return tuple(c for c in _CLAUSE.split(self.text) if c.strip())
