"""What the words of a complaint point at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._rated import usual
from assistant.intent import symptoms
from assistant.intent.grammar import words_of
from assistant.intent.stated import negated
from knowledge.lazy import lazy
from knowledge.readings import Rating, scales
from knowledge.symptoms import hypotheses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.intent.query import Query
    from knowledge.observation import Observation

_CLAUSES = lazy(r"[,;，；。]|\.\s")


def pointed(query: Query) -> tuple[str, ...]:
    """Ids of the hypotheses that a sentence points at, the fullest match first; what it denies ("no flaps") points at nothing."""
    said = ", ".join(c for c in _CLAUSES.split(query.text) if not _denies(c))
    return symptoms.pointed(words_of(said), said)


def denied(query: Query, stated: Sequence[Observation]) -> frozenset[str]:
    """Ids of the hypotheses that a sentence speaks against: in words ("no flaps"), or by a usual reading of a fact of theirs."""
    named = symptoms.pointed(words_of(" ".join(filter(_denies, _CLAUSES.split(query.text)))))
    good = {o.fact for o in stated if o.fact in scales() and usual(o) is Rating.GOOD}
    return frozenset(named) | {h.id for h in hypotheses().values() if not good.isdisjoint(h.facts)}


def _denies(clause: str) -> bool:
    return negated(clause.casefold())
