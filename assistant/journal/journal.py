"""The journal of a history: what was about to be done and what came of it, appended and read.

Where the history is off or cannot be used, `StoreError` says why in one line. Whoever must not act without a record does nothing then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from assistant.journal.chain import Entry, Head, Record, Row, canonical
from assistant.store.keeping import kept, place
from assistant.store.location import Location
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.events import Hand
    from assistant.store.journal import Ask
    from assistant.store.read import Reader

T = TypeVar("T")
READ = 5.0  # seconds that a server has to answer
READ_ALL = 600.0  # to give the whole journal
OFF = Text(
    "the journal is kept in the history, and it is off (history_url)",
    "日志账本保存在历史中，而历史功能已关闭（history_url）",
)


class _Raised(Exception):
    """What `decide` raised: it is no trouble of the file or the server, whatever it is."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Journal:
    """The journal that one history holds. Each call opens it anew: there may be hours between two."""

    def __init__(self, store_url: str, clock: Callable[[], int] = time.time_ns) -> None:
        """`store_url`: the setting ``history_url``; `clock` tells ns UTC."""
        self._url, self._clock = store_url, clock

    # --- writing --------------------------------------------------------------------------

    def append(self, subject: str, hand: Hand, *entries: Entry) -> tuple[Record, ...]:
        """Add records; they are on the disk when this returns.

        StoreError when they could not be kept. Of a server that did not answer in time nobody knows whether they are.
        """
        return self._write(subject, hand, lambda _: entries, asks=False)

    def change(
        self, subject: str, hand: Hand, decide: Callable[[tuple[Record, ...]], Sequence[Entry]]
    ) -> tuple[Record, ...]:
        """Add what `decide` makes of the subject's records so far; nobody else writes meanwhile. What was added.

        What `decide` raises leaves the journal as it is. StoreError as in `append`.
        """
        return self._write(subject, hand, decide, asks=True)

    def _write(
        self, subject: str, hand: Hand, decide: Callable[[tuple[Record, ...]], Sequence[Entry]], *, asks: bool
    ) -> tuple[Record, ...]:
        from assistant.journal.cleaning import name
        from assistant.store import journal as store_

        subject = name(subject)
        who, surface = name(hand.who), name(hand.surface)

        def wanted(before: tuple[Row, ...]) -> list[Row]:
            try:
                entries = decide(tuple(row.record() for row in before))
            except Exception as error:  # carried past the database's own errors, and raised again as it was
                raise _Raised(error) from error
            now = self._clock()
            return [_row(entry, subject, who, surface, now) for entry in entries]

        try:
            rows = kept(place(self._url, OFF), lambda s: store_.append(s, subject, wanted, asks=asks), _not_kept)
        except _Raised as raised:
            raise raised.error from None
        return tuple(row.record() for row in rows)

    # --- reading --------------------------------------------------------------------------

    def of(self, subject: str) -> tuple[Record, ...]:
        """The records of a subject, in order. StoreError when they cannot be read."""
        from assistant.journal.cleaning import name
        from assistant.store.journal import SQL

        def work(ask: Ask) -> list[Row]:
            return [Row(*r) for r in ask(SQL["journal of"], {"subject": name(subject)})]

        nothing: list[Row] = []
        return tuple(row.record() for row in self._read(work, nothing))

    def records(self, after: int = 0, limit: int = 1000, **filters: Any) -> tuple[Record, ...]:
        """Records with greater numbers than `after`, in order, at most `limit`.

        `filters`: subject, kind, who, surface (words), since (ns UTC), node (of the data). StoreError when they cannot be read.
        """
        return self._filtered("on", "after", after, limit, filters)

    def newest(self, limit: int = 20, **filters: Any) -> tuple[Record, ...]:
        """The newest records, in order; filters as in `records`."""
        return self._filtered("back", "before", 2**63 - 1, limit, filters)[::-1]

    def head(self) -> Head:
        """The newest record's number and hash. StoreError when it cannot be read."""
        from assistant.journal.chain import GENESIS
        from assistant.store.journal import head_of

        return self._read(head_of, Head(0, GENESIS))

    def opened(self) -> Reader | None:
        """A reader that has time for the whole journal; None where nothing was written yet."""
        from assistant.store.read import open_reader

        return open_reader(self.location, patience=READ_ALL)

    @property
    def location(self) -> Location:
        """Where it lies. StoreError when the history is off."""
        return place(self._url, OFF)

    def _filtered(self, way: str, edge: str, at: int, limit: int, filters: dict[str, Any]) -> tuple[Record, ...]:
        from assistant.store.journal import PAGE, SQL, which

        node = str(filters.pop("node", "") or "")
        asked = which(**filters)
        size = min(limit, PAGE) if not node else PAGE

        def pages(ask: Ask) -> Iterator[Record]:
            at_ = at
            while True:
                rows = [Row(*r) for r in ask(SQL[f"journal {way}"], asked | {edge: at_, "limit": size})]
                yield from (r for r in (row.record() for row in rows) if not node or r.data.get("node") == node)
                if len(rows) < size:
                    return
                at_ = rows[-1].seq

        def first(ask: Ask) -> list[Record]:
            from itertools import islice

            return list(islice(pages(ask), limit))

        return tuple(self._read(first, []))

    def _read(self, work: Callable[[Ask], T], nothing: T) -> T:
        from assistant.store.read import open_reader

        reader = open_reader(self.location, patience=READ)
        if reader is None:
            return nothing
        with reader:
            return work(reader.ask)


def _row(entry: Entry, subject: str, who: str, surface: str, now: int) -> Row:
    from assistant.journal.cleaning import cleaned, name

    return Row(0, now, name(entry.kind), subject, who, surface, canonical(cleaned(entry.data)), "", "")


def _not_kept(location: Location, why: Text) -> Text:
    return Text(
        f"the journal cannot be written ({location.shown}): {why.en}",
        f"无法写入日志账本（{location.shown}）：{why.in_('zh')}",
    )
