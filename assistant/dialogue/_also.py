"""What else a message asks: each question with the first sentence of its own answer, below that of the one that leads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent.query import Intent
from assistant.render.sheet import Items
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query
    from assistant.reply import Reply

_OF_A_BOOK = frozenset({Intent.EXPLAIN, Intent.FIX, Intent.RUNBOOK, Intent.COST})
_ITS = lazy(r"(?<![a-z])(?:its|it|that one)(?![a-z])|它|其", re.IGNORECASE)
_ALONE = Text("ask this by itself", "请单独提问")


def beside(reply: Reply, turn: Turn) -> Reply:
    """`reply` with what else was asked, as far as it says more."""
    rows = tuple(_rows(reply, turn))
    return replace(reply, parts=(Items(rows), *reply.parts)) if rows else reply


def _rows(reply: Reply, turn: Turn) -> Iterator[str]:
    said = {first(reply)}
    for also in turn.query.also:
        query = _of_one(also, reply)
        answer = _answer(query, turn)
        headline = first(answer) if answer is not None else _ALONE.in_(turn.lang)
        if headline not in said:
            said.add(headline)
            mark = Text("? ", "？").in_(turn.lang)
            yield f"{query.text.strip().rstrip(' ?？.。')}{mark}{headline}"


def _of_one(query: Query, reply: Reply) -> Query:
    """The question about the one GPU that the answer names, where it says "its"."""
    one = reply.data.get("one")
    if not one or any(query.slots) or not _ITS.search(query.text):
        return query
    kind, _, number = str(one).partition(":")
    gpu = int(number) if kind in ("index", "amd") and number.isdecimal() else str(one)  # a PCI address has two colons
    return replace(query, slots=query.slots._replace(gpu=(gpu,)))


def _answer(query: Query, turn: Turn) -> Reply | None:
    """The answer to one question from what is known; None where more would have to be looked at."""
    from assistant.dialogue import _became, _host_memory, answerer

    if query.intent is Intent.HISTORY:  # of what was given; other days stand in no diagnosis
        query = replace(query, intent=Intent.EVENTS)
    if turn.diagnosis is None and query.intent not in _OF_A_BOOK:
        return None
    own = replace(turn, query=query, base=query)
    asks = query.intent in (Intent.WHICH, Intent.EVENTS)  # of what was given
    of_life = _became.answer(own) if query.intent is Intent.VERDICT else None
    return of_life or (_host_memory.answer(own) if asks else None) or answerer(query.intent).answer(own)


def first(reply: Reply) -> str:
    """The first sentence of an answer."""
    whole = reply.shown or reply.diagnosis
    return reply.headline or (clean(whole.verdict.text.in_(reply.lang)) if whole is not None else "")
