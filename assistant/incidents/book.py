"""The incidents of a history: read, opened, added to.

Where the history is off or cannot be used, `StoreError` says why in one line; whoever shows incidents shows that instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from assistant.incidents.events import Entry, Hand
from assistant.incidents.fold import Incident
from assistant.store.keeping import kept, place
from assistant.store.location import Location
from knowledge.errors import UnknownNameError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.store.file import Store
    from assistant.store.incidents import Ask, Decide, Same

T = TypeVar("T")
LIMIT = 100  # incidents of a list, without another word
READ = 5.0  # seconds that a server has to answer
OFF = Text(
    "incidents are kept in the history, and it is off (history_url)",
    "事件保存在历史中，而历史功能已关闭（history_url）",
)


class Book:
    """The incidents that one history holds. Each call opens it anew: there may be hours between two."""

    def __init__(self, store_url: str, clock: Callable[[], int] = time.time_ns) -> None:
        """`store_url`: the setting ``history_url``; `clock` tells ns UTC."""
        self._url, self._clock = store_url, clock

    # --- reading --------------------------------------------------------------------------

    def incidents(self, closed: bool = True, limit: int = LIMIT) -> list[Incident]:
        """Open ones, then closed ones, the newest of each first. StoreError when they cannot be read."""
        from assistant.store.incidents import listed

        return self._read(lambda ask: listed(ask, closed, limit), [])

    def incident(self, number: int) -> Incident:
        """One of them. UnknownNameError for a number that none has; StoreError when it cannot be read."""
        from assistant.store.incidents import one

        found = self._read(lambda ask: one(ask, number), None)
        if found is None:
            raise _unknown(number)
        return found

    def opened_with(self, name: str, word: str) -> Incident | None:
        """The newest incident whose opening says `word` under `name`; an open one before closed ones. StoreError as above."""
        from assistant.store.incidents import opened_with

        return self._read(lambda ask: opened_with(ask, name, word), None)

    def _read(self, work: Callable[[Ask], T], nothing: T) -> T:
        from assistant.store.read import open_reader

        reader = open_reader(self._location(), patience=READ)
        if reader is None:
            return nothing
        with reader:
            return work(reader.ask)

    # --- writing --------------------------------------------------------------------------

    def open(
        self, hand: Hand, entries: Sequence[Entry], same: Same | None = None, opened: tuple[str, str] | None = None
    ) -> tuple[Incident, bool]:
        """A new incident, and True; the open one that `same` takes for it, with what it adds, and False.

        `opened`: a name and a word; `same` is asked only about those whose opening says that.
        StoreError when it cannot be kept.
        """
        from assistant.store.incidents import begin

        return self._write(lambda store: begin(store, hand, entries, self._clock(), same, opened))

    def change(self, number: int, hand: Hand, decide: Decide) -> Incident:
        """Add what `decide` makes of how it stands; nobody else writes to it meanwhile.

        UnknownNameError for a number that none has, StoreError when it cannot be kept; what `decide` raises leaves it as it is.
        """
        from assistant.store.incidents import change

        found = self._write(lambda store: change(store, number, hand, decide, self._clock()))
        if found is None:
            raise _unknown(number)
        return found

    def add(self, number: int, hand: Hand, *entries: Entry) -> Incident:
        """Add events, however it stands."""
        return self.change(number, hand, lambda _: entries)

    def _location(self) -> Location:
        return place(self._url, OFF)

    def _write(self, work: Callable[[Store], T]) -> T:
        return kept(self._location(), work, _not_kept)


def _not_kept(location: Location, why: Text) -> Text:
    said = f"the incident is not kept ({location.shown}): {why.en}"
    return Text(said, f"事件未能保存（{location.shown}）：{why.in_('zh')}")


def _unknown(number: int) -> UnknownNameError:
    error = UnknownNameError("incident", str(number), (), kind_zh="事件")
    error.hint = "gpudiag incident list --all names them"
    error.hint_zh = "gpudiag incident list --all 列出全部"
    return error
