"""How "why" and "how sure" begin: the finding that the words are about, or the answer there is without one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._looked import missed
from assistant.dialogue._named import chosen, named
from assistant.dialogue._scope import fine
from assistant.dialogue._words import Words, nothing_yet, words
from assistant.intent.query import Slots

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.reply import Reply
    from rules.engine import Finding


class Opening(NamedTuple):
    """What a follow-up is about; no finding: about the silence."""

    words: Words
    finding: Finding | None


def placed(turn: Turn) -> Turn:
    """A follow-up that names a part of the machine about which there is no finding: as if the talk had been of that part."""
    if turn.diagnosis is None or turn.base is None:
        return turn
    found = named(turn)
    if not found.missed or not found.scope.narrow or found.scope.unknown or len(found.what) > len(found.scope.subjects):
        return turn
    part = replace(turn.base, slots=turn.query.slots)
    return replace(turn, query=replace(turn.query, slots=Slots()), base=part, focus="")


def opening(turn: Turn) -> Opening | Reply:
    """The finding that is meant; a reply when nothing was looked at, what was named is not there, or only hypotheses stand."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, found = words(turn), named(turn)
    if found.missed:
        return missed(turn, w, found)
    f = None if not found.what and fine(turn) is not None else chosen(turn, found)
    if f is None and turn.base is not None and turn.base.symptoms:
        from assistant.dialogue import alternatives  # nothing is to blame yet: the hypotheses are the answer

        return alternatives.answer(turn)
    return Opening(w, f)
