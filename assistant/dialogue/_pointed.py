"""What the words of a complaint point at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.intent import symptoms
from assistant.intent.grammar import words_of
from assistant.intent.stated import negated
from knowledge.lazy import lazy

if TYPE_CHECKING:
    from assistant.intent.query import Query

_CLAUSES = lazy(r"[,;，；。]|\.\s")


def pointed(query: Query) -> tuple[str, ...]:
    """Ids of the hypotheses that a sentence points at, the fullest match first; what it denies ("no flaps") points at nothing."""
    said = (clause for clause in _CLAUSES.split(query.text) if not negated(clause.casefold()))
    return symptoms.pointed(words_of(" ".join(said)))
