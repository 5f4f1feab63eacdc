"""How much a message may hold. Slack refuses a message that is over, as a whole: so nothing ever is.

Limits as published at docs.slack.dev (reference/block-kit); the budgets are ours and lower where a limit was found to be
lower than published: a message of 50 blocks fails near 13,200 characters.
"""

from __future__ import annotations

from typing import Any

BLOCKS = 40  # of a message; Slack takes 50
CHARACTERS = 10_000  # of a message, in all its blocks
SECTION = 3_000  # of one block of text
ELEMENTS = 25  # of an actions block
BUTTON = 75  # characters on a button
FALLBACK = 1_000  # of the line that notifications show; Slack takes 40,000, a lock screen some hundred
MARK = " ... "  # where something was left out

Block = dict[str, Any]


def size(text: str) -> int:
    """Length as JavaScript counts it (UTF-16 units): never less than the number of characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` units: two thirds of it from its beginning, one from its end, and a mark between."""
    if len(text) <= limit and size(text) <= limit:
        return text
    room = limit - len(MARK)
    raw = text.encode("utf-16-le", "replace")
    tail = 2 * (room // 3)
    head = 2 * room - tail  # in bytes; half of a pair at the edge is dropped
    ends = (part.decode("utf-16-le", "ignore") for part in (raw[:head], raw[len(raw) - tail :]))
    return MARK.join(ends)


def characters(value: object) -> int:
    """Units of all texts within a block or a list of blocks."""
    if isinstance(value, dict):
        own = value.get("text")
        return (size(own) if isinstance(own, str) else 0) + sum(
            characters(v) for v in value.values() if isinstance(v, dict | list)
        )
    return sum(map(characters, value)) if isinstance(value, list) else 0
