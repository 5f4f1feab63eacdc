"""One sentence of a narration, with what it cites, as the guards look at it."""

from __future__ import annotations

from functools import cached_property

from assistant.narrate.material import Item, Material
from assistant.narrate.placeholders import PLACEHOLDER
from knowledge.record import dataclass


@dataclass(frozen=True)
class Sentence:
    """A sentence and its findings."""

    text: str  # as the model wrote it
    items: tuple[Item, ...]
    material: Material

    @property
    def lang(self) -> str:
        """en or zh."""
        return self.material.lang

    @property
    def cites(self) -> tuple[str, ...]:
        """The ids that it cites."""
        return tuple(i.id for i in self.items)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The placeholders in it."""
        return tuple(PLACEHOLDER.findall(self.text))
