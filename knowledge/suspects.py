"""What people suspect in a word ("a cable problem", "the power supply"), and the hypotheses that they mean by it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.symptoms import Hypothesis, hypotheses

_READ = 2000  # characters of a sentence that are looked at
_WORD = re.compile(r"[a-z0-9/]+(?:'[a-z0-9]+)*")  # a hyphen parts words: "out-of-memory"


@dataclass(frozen=True, slots=True)
class Suspect:
    """One everyday name and what is meant by it."""

    id: str
    title: Text  # a noun phrase within a sentence
    hypotheses: tuple[Hypothesis, ...]


@cache
def suspects() -> Mapping[str, Suspect]:
    """All of them by id. KeyError when one names a hypothesis that does not exist."""
    known = hypotheses()
    return {
        e["id"]: Suspect(e["id"], Text.of(e["title"]), tuple(known[h] for h in e["hypotheses"]))
        for e in shard("suspects")
    }


@cache
def _words() -> tuple[tuple[str, str], ...]:
    """Phrase and id, the longest phrase first."""
    said = ((phrase, e["id"]) for e in shard("suspects") for lang in ("en", "zh") for phrase in e["said"][lang])
    every = [(phrase.casefold().replace("-", " "), name) for phrase, name in said]
    return tuple(sorted(every, key=lambda pair: (-len(pair[0]), pair[0])))


def suspected(text: str) -> Suspect | None:
    """What a sentence suspects: by the longest phrase of the data in it; None when it holds none. Pure and bounded."""
    folded = text[:_READ].casefold()
    latin = f" {' '.join(_WORD.findall(folded))} "
    for phrase, name in _words():
        if f" {phrase} " in latin if phrase.isascii() else phrase in folded:
            return suspects()[name]
    return None
