"""The incidents of a history: read, opened, added to.

Where the history is off or cannot be used, `StoreError` says why in one line; whoever shows incidents shows that instead.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from assistant.incidents.events import Entry, Hand
from assistant.incidents.fold import Incident
from assistant.store.location import Location, StoreError, parse
from knowledge.errors import ConfigError, UnknownNameError
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

    def _read(self, work: Callable[[Ask], T], nothing: T) -> T:
        from assistant.store.read import open_reader

        reader = open_reader(self._location(), patience=READ)
        if reader is None:
            return nothing
        with reader:
            return work(reader.ask)

    # --- writing --------------------------------------------------------------------------

    def open(self, hand: Hand, entries: Sequence[Entry], same: Same | None = None) -> tuple[Incident, bool]:
        """A new incident, and True; the open one that `same` takes for it, with what it adds, and False.

        StoreError when it cannot be kept.
        """
        from assistant.store.incidents import begin

        return self._write(lambda store: begin(store, hand, entries, self._clock(), same))

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
        try:
            location = parse(self._url)
        except ConfigError as error:
            raise StoreError(Text(f"{error.message}; {error.hint}")) from error
        if location is None:
            raise StoreError(OFF)
        return location

    def _write(self, work: Callable[[Store], T]) -> T:
        location = self._location()
        if location.path is not None:
            return _kept(location, work)
        from assistant.store.patience import AFTER, Hurry

        hurry = Hurry(AFTER)
        try:
            return hurry(lambda: _kept(location, work))
        finally:
            hurry.close()


def _kept(location: Location, work: Callable[[Store], T]) -> T:
    """What `work` gives with tables of the newest revision. StoreError for all that a file or a server may refuse."""
    from assistant.store.trouble import reason
    from assistant.store.write import opened

    def refused(error: Exception) -> StoreError:
        why = error.said if isinstance(error, StoreError) else reason(error)
        said = f"the incident is not kept ({location.shown}): {why.en}"
        return StoreError(Text(said, f"事件未能保存（{location.shown}）：{why.in_('zh')}"))

    try:
        store = opened(location)
    except ModuleNotFoundError as error:
        raise refused(StoreError(Text(f"{error.name} is not installed", f"未安装 {error.name}"))) from error
    except (sqlite3.Error, OSError, StoreError) as error:
        raise refused(error) from error
    try:
        return work(store)
    except (sqlite3.Error, OSError, StoreError) as error:
        raise refused(error) from error
    finally:
        store.close()


def _unknown(number: int) -> UnknownNameError:
    error = UnknownNameError("incident", str(number), ())
    error.hint = "gpudiag incident list --all names them"
    return error
