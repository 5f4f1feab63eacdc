"""Where the answer was written to; the session writes it (`assistant.session.export`)."""

from __future__ import annotations

from assistant.dialogue import Turn
from assistant.reply import Reply
from assistant.session import phrases
from assistant.session.steps import Written


def answer(turn: Turn) -> Reply:
    """What became of the file that `turn.recalled` tells about; without one there was nothing to write. Pure."""
    done = next((r for r in turn.recalled if isinstance(r, Written)), None)
    if done is None:
        return phrases.nothing_yet(turn.lang)
    if done.exists:
        return phrases.exists(done.path, turn.lang)
    return phrases.written(done.path, done.trouble, turn.lang)
