"""What `explain` can explain: one module a kind of thing, found by folder scan.

A topic has ``KIND`` (the word on the command line), ``HELP``, ``names()`` (for near
misses and for the search over everything) and ``sheet(words, lang)``, which raises
UnknownNameError or UsageError when `words` name nothing.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assistant.render.sheet import Sheet


class Topic(Protocol):
    """A kind of thing that can be explained."""

    KIND: str
    HELP: str

    def names(self) -> Iterable[str]:
        """Every name that can stand behind the kind."""

    def sheet(self, words: Sequence[str], lang: str) -> Sheet:
        """The page about `words`."""


def kinds() -> list[str]:
    """The kinds, in alphabetical order."""
    files = os.listdir(__path__[0])  # noqa: PTH208 - `explain` is on a budget, and a glob compiles patterns
    return sorted(name[:-3] for name in files if name.endswith(".py") and name[0] != "_")


def topic(kind: str) -> Topic:
    """The topic module of `kind`."""
    loaded: Topic = importlib.import_module(f"{__name__}.{kind}")  # a module is the protocol
    return loaded


def number(words: Sequence[str], what: str) -> int:
    """The one number that `words` hold: ``79``, ``0x4f``. UsageError otherwise."""
    from knowledge.errors import UsageError

    if len(words) == 1:
        try:
            value = int(words[0].strip().rstrip(",.:"), 0)
        except ValueError:
            value = -1
        if value >= 0:
            return value
    raise UsageError(
        f"{what} takes one number, not {' '.join(words) or 'nothing'!r}", hint=f"for example: gpudiag explain {what} 79"
    )
