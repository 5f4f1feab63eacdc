"""What a fact is, in a clause: the first one of its meaning. A fact's name is for machines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assistant.render.cells import cut
from knowledge.lazy import lazy
from knowledge.text import clean

if TYPE_CHECKING:
    from knowledge.facts import Vocabulary

MEANING = 110  # columns of what a fact means
NAMED = 60  # of a fact in a list of several
_CLAUSE_END = lazy(r"[;；。]|\.(?: |$)|\(|（")  # what ends the first clause of a fact's meaning
_FACT = lazy(r"\b[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\b")


def meaning(name: str, vocabulary: Vocabulary, lang: str) -> str:
    """What a fact or an event is, in one clause without a stop; its name where nothing says it."""
    spec = vocabulary.get(name)
    if spec is None:
        return name
    said = _CLAUSE_END.split(spec.meaning.in_(lang), maxsplit=1)[0].strip()
    return cut(clean(said), MEANING) or name


def within(said: str, lang: str) -> str:
    """A clause of ours within a sentence: its first word is written small, a name is not."""
    return said if lang == "zh" or not re.match(r"[A-Z][a-z]* |[A-Z][a-z]+$", said) else said[:1].lower() + said[1:]


def plain(line: str, vocabulary: Vocabulary, lang: str) -> str:
    """`line` with what facts are in the place of their names; other dotted words (a file, a unit) stay."""
    return _FACT.sub(lambda found: called(found[0], vocabulary, lang), line)


def called(name: str, vocabulary: Vocabulary, lang: str) -> str:
    """A fact in a list of several; a word that is no fact stays."""
    return cut(within(meaning(name, vocabulary, lang), lang), NAMED) if name in vocabulary else name
