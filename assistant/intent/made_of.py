"""A wish about all that was given, by the kinds of words that a sentence is made of, in whatever order they stand.

"Which card do I pull out", "what went on around 02:40", "the short version for management": each word must be of a kind that
the wish allows, and each kind that it needs must be there. One word of another kind, and the sentence says something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assistant.intent.grammar import runs
from assistant.intent.query import Intent

MOST = 24  # words: whoever says more tells something


class _Made(NamedTuple):
    intent: Intent
    needs: tuple[str, ...]  # roles of the lexicon, each of which a word must have
    may: tuple[str, ...] = ()  # roles of the words that may stand beside


_WISHES = (
    _Made(Intent.WHICH, ("which", "part", "at-fault"), ("take-out",)),
    _Made(Intent.WHICH, ("which", "part", "take-out")),
    _Made(Intent.HISTORY, ("what", "happened", "time"), ("event",)),
    _Made(Intent.EVENTS, ("recount", "event", "in-order"), ("time", "happened", "what")),
    _Made(Intent.SUMMARY, ("brief", "tell"), ("audience", "state-of", "what", "happened")),
    _Made(Intent.SUMMARY, ("brief", "audience"), ("state-of", "what", "happened")),
    _Made(Intent.SUMMARY, ("brief", "state-of"), ("what", "happened")),
    _Made(Intent.SUMMARY, ("tell", "audience", "what"), ("state-of", "happened")),
    _Made(Intent.CAUSE, ("cause", "blame", "is-it")),
)


def asked(words: Sequence[str]) -> Intent | None:
    """The wish that the words of a sentence make up; None where they make up none."""
    said = [w.removesuffix("'s") for w in words if w not in "?!,"]
    if not 1 < len(said) <= MOST:
        return None
    every = frozenset(range(len(said)))
    telling = every - _places("plain", said) - _places("filler", said)
    return next((m.intent for m in _WISHES if _is(m, said, telling)), None)


def _is(made: _Made, said: Sequence[str], rest: frozenset[int]) -> bool:
    """Whether the words `rest` of a sentence are all of the kinds that a wish is made of."""
    for role in made.needs:
        here = _places(role, said)
        if not here:
            return False
        rest -= here
    for role in made.may:
        rest -= _places(role, said)
    return not rest


def _places(role: str, said: Sequence[str]) -> frozenset[int]:
    found = {at for start, end, _ in runs(role).find(said) for at in range(start, end)}
    return frozenset(found | {at for at, word in enumerate(said) if role == "time" and word[0].isdigit()})
