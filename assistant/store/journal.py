"""The journal in the history: records that are only ever added, each with the hash of the one before.

`journal_head` holds the newest record's number and hash. Whoever appends holds that row until the transaction ends, so no two
records follow the same one; and a journal whose last records are gone is known by it. Triggers refuse everything but appending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assistant.journal.chain import COLUMNS as ROW
from assistant.journal.chain import GENESIS, Head, Row, linked
from assistant.store.file import Store, Transaction

Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
Rows = tuple[Row, ...]
Wanted = Callable[[Rows], Sequence[Row]]  # records of the subject so far -> what to add, without numbers and hashes
PAGE = 1000  # records that are read at once

COLUMNS: Mapping[str, tuple[str, ...]] = {"journal": ROW}
_ALL = ", ".join(f"j.{c}" for c in ROW)
_WHICH = (
    "(:subject = '' OR j.subject = :subject) AND (:kind = '' OR j.kind = :kind) AND (:who = '' OR j.who = :who) "
    "AND (:surface = '' OR j.surface = :surface) AND j.at >= :since"
)
SQL: Mapping[str, str] = {
    "journal head": "SELECT h.seq, h.hash FROM journal_head h WHERE h.id = 1",
    "journal on": f"SELECT {_ALL} FROM journal j WHERE j.seq > :after AND {_WHICH} ORDER BY j.seq LIMIT :limit",
    "journal back": f"SELECT {_ALL} FROM journal j WHERE j.seq < :before AND {_WHICH} ORDER BY j.seq DESC LIMIT :limit",
    "journal of": f"SELECT {_ALL} FROM journal j WHERE j.subject = :subject ORDER BY j.seq",
    "journal all": f"SELECT {_ALL} FROM journal j WHERE j.seq > :after ORDER BY j.seq LIMIT :limit",
    "journal next": "SELECT j.seq FROM journal j WHERE j.seq > :after ORDER BY j.seq LIMIT 1",
    "journal last": "SELECT j.seq FROM journal j ORDER BY j.seq DESC LIMIT 1",
}
STATEMENTS: Mapping[str, str] = {
    "into journal": f"INSERT INTO journal ({', '.join(ROW)}) VALUES (:{', :'.join(ROW)})",
    "held": "SELECT seq, hash FROM journal_head WHERE id = 1",
    "moves on": "UPDATE journal_head SET seq = :seq, hash = :hash WHERE id = 1",
}


def append(store: Store, subject: str, wanted: Wanted, *, asks: bool = True) -> Rows:
    """Add what `wanted` makes of the subject's records (none are read unless it `asks`); what was added.

    On the disk when it returns. Nobody else appends meanwhile; what `wanted` raises leaves the journal as it is.
    """
    with store.transaction(durable=True) as c:
        head = _held(c)
        before = tuple(Row(*r) for r in c.rows(SQL["journal of"], {"subject": subject})) if asks else ()
        rows: list[Row] = []
        for row in wanted(before):
            rows.append(linked(head, row))
            head = Head(rows[-1].seq, rows[-1].hash)
        c.many(STATEMENTS["into journal"], [row._asdict() for row in rows])
        if rows:
            c.touched(STATEMENTS["moves on"], head._asdict())
    return tuple(rows)


def _held(c: Transaction) -> Head:
    ((seq, hashed),) = c.rows(STATEMENTS["held"] + c.for_update, {})
    return Head(int(seq), str(hashed))


def head_of(ask: Ask) -> Head:
    """The newest record; number 0 where there is none."""
    for seq, hashed in ask(SQL["journal head"], {}):
        return Head(int(seq), str(hashed))
    return Head(0, GENESIS)


def which(subject: str = "", kind: str = "", who: str = "", surface: str = "", since: int = 0) -> dict[str, Any]:
    """Parameters that choose records; what is empty chooses all. `since`: ns UTC."""
    return {"subject": subject, "kind": kind, "who": who, "surface": surface, "since": since}
