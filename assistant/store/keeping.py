"""Something written into the history that somebody waits for: what a file or a server refuses is one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from assistant.store.location import Location, StoreError, parse
from knowledge.errors import ConfigError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.store.file import Store

T = TypeVar("T")
Refusal = Callable[[Location, Text], Text]  # where, why -> the whole line


def place(store_url: str, off: Text) -> Location:
    """Where the history lies. StoreError that says `off` where there is none, or why the setting names none."""
    try:
        location = parse(store_url)
    except ConfigError as error:
        raise StoreError(Text(f"{error.message}; {error.hint}")) from error
    if location is None:
        raise StoreError(off)
    return location


def kept(location: Location, work: Callable[[Store], T], refusal: Refusal) -> T:
    """What `work` gives with tables of the newest revision; of a server, within so many seconds.

    StoreError for all that a file or a server may refuse. Of a server that came too late nobody knows whether it stands.
    """
    if location.path is not None:
        return _kept(location, work, refusal)
    from assistant.store.patience import AFTER, Hurry

    hurry = Hurry(AFTER)
    try:
        return hurry(lambda: _kept(location, work, refusal))
    finally:
        hurry.close()


def _kept(location: Location, work: Callable[[Store], T], refusal: Refusal) -> T:
    from assistant.store.trouble import reason
    from assistant.store.write import opened

    def refused(error: Exception) -> StoreError:
        return StoreError(refusal(location, error.said if isinstance(error, StoreError) else reason(error)))

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
