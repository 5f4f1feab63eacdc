"""A conversation that goes on over the many turns of one process, and over its restarts.

Its file is locked while it is read or written, not while a probe is waited for: a turn that was given up may linger in a
driver that hangs, and the next one does not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assistant.session import phrases
from assistant.session.state import Origin, Seen, State, plain, restored
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.session.key import Key
    from assistant.session.state import Frame
    from assistant.session.store import Dialogues


class Continued:
    """The conversation kept under `key`. One turn at a time."""

    def __init__(self, memory: Dialogues, key: Key) -> None:
        self._memory, self._key = memory, key
        self._state = State()
        self._sum: Any = None  # of what was read or written last
        self._told: tuple[Text, ...] = ()

    def now(self) -> State:
        """As it stands: what another process said meanwhile counts."""
        data = self._memory.load(self._key)
        if data is not None and data.get("sum") != self._sum:
            try:
                self._state, self._sum = restored(data), data.get("sum")
            except ValueError as error:
                self._memory.set_aside(self._key, Text(f"is not understood ({error})", f"无法理解（{error}）"))
        return self._state

    def forget(self) -> None:
        """Begin anew: nothing was said."""
        self._memory.forget(self._key)
        self._state, self._sum = State(), None

    def keep(self, state: State) -> None:
        """The turn has ended well: so it stands now."""
        data = plain(state)
        self._state, self._sum = state, data["sum"]
        with self._memory.opened(self._key) as kept:
            kept.data = data

    def complaints(self) -> tuple[Text, ...]:
        """Why it is not remembered: each said once."""
        new = tuple(c for c in self._memory.complaints if c not in self._told)
        self._told += new
        return new


def about(state: State) -> str:
    """What a conversation is about, in one line; empty when nothing was asked."""
    query = state.frame.query
    return query.echo.in_(query.lang) if query is not None else ""


def adopts(state: State, seen: Seen, origin: Origin, *, pointed: bool, moved: bool) -> bool:
    """Whether the next sentence is to rest on `seen`, which a surface shows, rather than on what the talk rests on.

    `pointed`: somebody pointed at it. `moved`: since the last sentence the surface has turned to another source. A sentence
    that somebody types goes on with the talk, unless there is none yet.
    """
    frame = state.frame
    if frame.query is None or moved or (not origin.live and frame.origin != origin):
        return True
    if frame.origin == origin and any(_same(state.seen[n], seen) for n in frame.seen):
        return False
    return pointed or (frame.origin == origin and _own(frame))


def _same(a: Seen, b: Seen) -> bool:
    return (a.host, a.as_of, a.probes) == (b.host, b.as_of, b.probes)


def _own(frame: Frame) -> bool:
    """Whether nobody has asked anything: the frame is the one that a surface began with."""
    asked = frame.query.text if frame.query is not None else ""
    return asked in (phrases.HEALTHY.en, phrases.HEALTHY.zh) and frame.last is None and frame.pending is None
