"""Sentences with what they want: ``knowledge/data/examples/*.yaml``, what the understanding of questions learns from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from knowledge.compiled import shard


class Example(NamedTuple):
    """One labelled sentence."""

    text: str
    intent: str
    tuned: bool  # the phrases of the lexicon were written with it in view


def examples() -> Iterator[Example]:
    """All of them, in the order of the files. FaultsError when a file is damaged."""
    for entry in shard("examples"):
        for lang in ("en", "zh"):
            for text in entry["said"].get(lang, ()):
                yield Example(text, entry["intent"], entry.get("tuned", False))
