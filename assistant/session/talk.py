"""A conversation as the command line holds it: what it is about, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assistant.session.core import Session
from assistant.session.driver import Conversation, Eyes
from assistant.session.state import State, plain, restored
from knowledge.language import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from assistant.session.key import Key
    from assistant.session.steps import Step
    from assistant.session.store import Dialogues


def session_of(eyes: Eyes, *, agreed: bool = False) -> Session:
    """The session over what `eyes` can reach; `agreed`: see `Session.agreed`."""
    from assistant.session.inventory import known

    return Session(
        eyes.ruleset,
        known(eyes.settings, others=eyes.others),
        eyes.settings.output.lang,
        eyes.budget,
        eyes.without,
        eyes.absent,
        agreed,
    )


@contextmanager
def remembered(
    eyes: Eyes, memory: Dialogues, key: Key, *, new: bool = False, agreed: bool = False,
    on_step: Callable[[Step], None] | None = None,
) -> Iterator[Conversation]:  # fmt: skip
    """The conversation kept under `key`, kept again when the body ends; `new` begins another. `agreed`: see `Session.agreed`.

    One that nobody could go on with is not kept.
    """
    if not key.lasts:
        yield Conversation(session_of(eyes, agreed=agreed), eyes, State(), on_step)
        return
    with memory.opened(key) as kept:
        state = State()
        if kept.data is not None and not new:
            try:
                state = restored(kept.data)
            except ValueError as error:
                memory.set_aside(key, Text(f"is not understood ({error})", f"无法理解（{error}）"))
        talk = Conversation(session_of(eyes, agreed=agreed), eyes, state, on_step)
        try:
            yield talk
        finally:
            kept.data = plain(talk.state)
