"""What a sentence may have meant that the grammar could not read: a suggestion to confirm, never acted on alone.

The model only chooses: an intent of the list, and numbers and names that stand in the sentence. Each goes through the parser that
reads typed sentences; one that does not fit throws the whole suggestion away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assistant.intent.query import FOLLOW_UPS, Intent, Query, Slots
from assistant.narrate import prompt
from assistant.narrate.fence import parsed
from assistant.narrate.redact import Pseudonyms, Redacted
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

LONGEST, MOST = 600, 8  # characters of a sentence that are sent; values of one slot
INTENTS = tuple(sorted(str(i) for i in frozenset(Intent) - FOLLOW_UPS - {Intent.UNKNOWN}))
_SLOTS = ("xid", "pid", "gpu", "node", "rank", "job")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A payload about one sentence."""

    redacted: Redacted
    sentence: str  # as it was said, cleaned
    lang: str
    hosts: tuple[str, ...]

    @property
    def messages(self) -> tuple[Any, ...]:
        """All that is sent."""
        return self.redacted.messages


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What it may have meant, and the question that must be answered with yes before anything happens."""

    query: Query
    question: Text


def prepare(sentence: str, lang: str, hosts: Sequence[str] = (), pseudonyms: Pseudonyms | None = None) -> Prepared:
    """The payload about `sentence`; `hosts` are the names of the inventory."""
    said = excerpt(clean(sentence), LONGEST)
    messages = prompt.slots(said, INTENTS)
    return Prepared((pseudonyms or Pseudonyms({"node": hosts})).redact(messages), said, lang, tuple(hosts))


def finish(prepared: Prepared, raw: str) -> Suggestion | None:
    """The suggestion in `raw`; None when any part of it is not of the lists or not of the sentence. Never raises."""
    try:
        data = parsed(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not set(data) <= {"intent", "slots"} or data.get("intent") not in INTENTS:
        return None
    given = data.get("slots", {})
    if not isinstance(given, dict) or not set(given) <= set(_SLOTS):
        return None
    found: dict[str, tuple[Any, ...]] = {}
    for name, values in given.items():
        if not isinstance(values, list) or len(values) > MOST:
            return None
        read = [_read(name, v, prepared) for v in values]
        if None in read:
            return None
        if read:
            found[name] = tuple(dict.fromkeys(read))
    return _suggested(prepared, Intent(data["intent"]), Slots(**found))


def _read(name: str, value: object, p: Prepared) -> int | str | None:
    """The value as the parser of typed sentences reads it; None when it does not stand in the sentence."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    word = p.redacted.restore(str(value)).strip()
    if (
        not word
        or len(word) > 200
        or not re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])(?!\.\w)", p.sentence, re.IGNORECASE)
    ):
        return None
    from assistant.intent.slots import slots

    read = getattr(slots(f"{name} {word}", p.hosts).slots, name)
    return read[0] if len(read) == 1 else None


def _suggested(p: Prepared, intent: Intent, slots: Slots) -> Suggestion | None:
    from assistant.intent.echo import echo

    if intent is not Intent.HELP and not any(True for _ in slots.named()):
        return None  # a wish about nothing in particular
    query = echo(Query(text=p.sentence, lang=p.lang, intent=intent, slots=slots))
    return Suggestion(query, Text(f"Did you mean: {query.echo.en}?", f"您是想问：{query.echo.in_('zh')}？"))
