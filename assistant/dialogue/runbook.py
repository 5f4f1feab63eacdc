"""The steps: the runbook of a code, of a topic, or of the finding that the talk is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.dialogue import _remedy
from assistant.dialogue._pages import (
    CHOICES,
    bare_numbers,
    choose,
    codes,
    data_of,
    meant,
    outright,
    read,
    slot_values,
    tasks_first,
    text_in,
    topics_of,
    unknown,
)
from assistant.find import search
from assistant.find.index import hints
from assistant.render.labels import listed
from assistant.render.sheet import Heading, Items, Part
from assistant.reply import Reply

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Topic

_ALL = 100  # steps: more than any runbook has


def answer(turn: Turn) -> Reply:
    """All steps, with placeholders filled where the sentence or the finding tells them."""
    query, lang = turn.query, turn.lang
    named = codes(query) or tuple(f"xid {n}" for n in bare_numbers(query))
    if named:
        books = _books(named, turn)
        return _shown(turn, books, named) if books else _without(turn, named)
    if (name := outright(query)) and (books := _books([name], turn)):
        return _shown(turn, books, (name,))
    found = [t for t in topics_of(query) if meant(t, query)]
    if query.unsure and len(found) > 1:
        return choose(query, found, lang, "runbook")
    for t in tasks_first(found, query) if "runbook" not in hints(read(query)) else found:
        if t.kind == "howto":
            from assistant.dialogue.fix import answer as fixed

            return fixed(replace(turn, query=replace(query, topics=(t,))))
        if books := _books([t.id], turn):
            return _shown(turn, books, (t.id,))
    if turn.finding is not None and turn.finding.advice.runbook:
        return _shown(turn, [turn.finding.advice.runbook], (f"rule {turn.finding.rule.id}",))
    near = [t for t in search(read(query), CHOICES, {"runbook"}) if meant(t, query)]
    if near:
        return _shown(turn, [near[0].name], (near[0].id,))
    return _offer(turn, search(read(query), CHOICES, {"runbook", "howto"}))


def _books(names: Iterable[str], turn: Turn) -> list[str]:
    """Ids of the runbooks that the topics lead to, each once."""
    found = (_remedy.of(name, turn.ruleset, turn.lang) for name in names)
    return list(dict.fromkeys(r.runbook for r in found if r is not None and r.runbook))


def _shown(turn: Turn, books: list[str], topics: Iterable[str]) -> Reply:
    from knowledge.runbook import runbook

    lang, values = turn.lang, slot_values(turn)
    book = runbook(books[0])
    parts: list[Part] = []
    for n, step in enumerate(book.steps, 1):
        parts += _remedy.step_parts(n, step, values, lang)
    if books[1:]:
        more = tuple(f"{name}: {runbook(name).title.in_(lang)}" for name in books[1:])
        parts += [Heading(text_in(lang, "Further runbooks", "其他处置手册")), Items(more)]
    parts += [Heading(text_in(lang, "Sources", "来源")), Items(book.references)]
    headline = text_in(
        lang,
        f"Runbook {book.id} ({len(book.steps)} steps): {book.summary.en}",
        f"处置手册 {book.id}（{len(book.steps)} 步）：{book.summary.zh}",
    )
    other = tuple(text_in(lang, f"show runbook {name}", f"查看处置手册 {name}") for name in books[1:CHOICES])
    return Reply(
        lang, headline, tuple(parts), suggestions=(*other, text_in(lang, "check this node", "检查本节点")),
        data=data_of("runbook", topics, runbook=book.id, further=books[1:], steps=[s.id for s in book.steps]),
    )  # fmt: skip


def _without(turn: Turn, named: tuple[str, ...]) -> Reply:
    """A code that no runbook is about: its action, which may need no steps at all."""
    from assistant.dialogue.fix import answer as fixed

    reply = fixed(turn)
    said = listed(named, turn.lang)
    head = text_in(
        turn.lang, f"No runbook is about {said}. {reply.headline}", f"没有针对 {said} 的处置手册。{reply.headline}"
    )
    return Reply(
        turn.lang, head, reply.parts, settled=reply.settled, suggestions=reply.suggestions,
        data={**reply.data, "answer": "runbook", "runbook": None},
    )  # fmt: skip


def _offer(turn: Turn, near: list[Topic]) -> Reply:
    """No runbook fits: the closest, and how to list them."""
    reply = unknown(turn.query, near, turn.lang, "runbook")
    head = text_in(turn.lang, "No runbook fits that.", "没有合适的处置手册。")
    return Reply(turn.lang, head, reply.parts, settled=False, suggestions=reply.suggestions, data=reply.data)
