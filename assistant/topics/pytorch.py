"""PyTorch: what its messages mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.render.sheet import Sheet
from assistant.topics._common import from_text
from knowledge.catalog.lookup import Family, signatures

KIND = "pytorch"
HELP = "a pasted PyTorch message, or the id of one"


def names() -> Iterable[str]:
    """Ids of all messages."""
    return (s.id for s in signatures(Family.PYTORCH))


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a message."""
    return from_text(words, Family.PYTORCH, KIND, lang)
