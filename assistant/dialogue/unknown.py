"""Not understood: said so, with what is closest, when anything is near, and a few sentences that would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._pages import CHOICES, ask_for, closest, data_of, distinct, quoted, read, text_in
from assistant.dialogue.help import examples
from assistant.find import named, search
from assistant.reply import Reply

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query, Topic

NAME = 0.3  # of the sentence that must be a topic's name to call it close: one common word of ten is chance


def answer(turn: Turn) -> Reply:
    """The question stays open: exit code 3, nothing was looked at."""
    query, lang = turn.query, turn.lang
    near = close(query)
    said = quoted(query)
    headline = text_in(lang, f'"{said}" was not understood.', f"没有听懂“{said}”。") if said else (
        text_in(lang, "Nothing was asked.", "没有提出问题。")
    )  # fmt: skip
    asks = (*(ask_for(t, lang) for t in near), *examples(lang))
    return Reply(
        lang, headline, closest(near, lang), settled=False, suggestions=tuple(dict.fromkeys(asks))[:CHOICES],
        data=data_of("unknown", [], closest=[t.id for t in near]),
    )  # fmt: skip


def close(query: Query) -> list[Topic]:
    """The topics that a sentence names somewhere; none for a sentence about something else."""
    called = named(read(query))
    return distinct(t for t in search(read(query), CHOICES * 2) if called.get(t.id, 0.0) >= NAME)[:CHOICES]
