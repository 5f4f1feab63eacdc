"""Incidents in the history: a log of events that is only ever added to, one for each incident.

An event has its number within the incident as its key, so that two writers never make two of the same place: whoever
writes holds the incident until the transaction ends. The column ``is_open`` is what the events come to, kept beside them
in the same transaction, so that open incidents are found without reading the closed ones.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from assistant.incidents.events import Entry, Event, Hand
from assistant.incidents.fold import Incident, after, fold
from assistant.store.codec import storable
from assistant.store.file import Store, Transaction

Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
Decide = Callable[[Incident], Sequence[Entry]]
Same = Callable[[Incident], Sequence[Entry] | None]  # None: it is another one
PART = 400  # incidents that one statement names

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "incident": ("uid", "is_open", "opened_at"),
    "incident_event": ("incident_id", "seq", "at", "kind", "who", "surface", "data"),
}
_INSERT = {t: f"INSERT INTO {t} ({', '.join(c)}) VALUES (:{', :'.join(c)})" for t, c in COLUMNS.items()}
STATEMENTS: Mapping[str, str] = {
    **{f"into {table}": sql for table, sql in _INSERT.items()},
    "made": "SELECT id FROM incident WHERE uid = :uid",
    "held": "SELECT id, uid FROM incident WHERE id = :number",
    # One row that every incident can wait for: two openings at a time see each other.
    "turn": "SELECT version_num FROM gpudiag_version",
    "all open": "SELECT id, uid FROM incident WHERE is_open ORDER BY id",
    "open with": (
        "SELECT i.id, i.uid FROM incident i JOIN incident_event e ON e.incident_id = i.id WHERE i.is_open AND e.seq = 1 "
        "AND e.data LIKE CAST(:word AS TEXT) ORDER BY i.id"
    ),
    "so far": "SELECT seq, at, kind, who, surface, data FROM incident_event WHERE incident_id = :number ORDER BY seq",
    "stands": "UPDATE incident SET is_open = :is_open WHERE id = :number",
}
_EVENT = "e.incident_id, e.seq, e.at, e.kind, e.who, e.surface, e.data FROM incident_event e"
SQL: Mapping[str, str] = {
    "incidents": (
        "SELECT i.id, i.uid FROM incident i WHERE (:number = 0 OR i.id = :number) AND (:closed = 1 OR i.is_open) "
        "ORDER BY i.is_open DESC, i.id DESC LIMIT :limit"
    ),
    "incident opened with": (
        "SELECT i.id FROM incident i JOIN incident_event e ON e.incident_id = i.id WHERE e.seq = 1 AND e.kind = 'opened' "
        "AND e.data LIKE CAST(:word AS TEXT) ORDER BY i.is_open DESC, i.id DESC"
    ),
    "incident events": f"SELECT {_EVENT} WHERE e.incident_id >= :first AND e.incident_id <= :last ORDER BY e.incident_id, e.seq",
    "incident log": f"SELECT {_EVENT} WHERE e.incident_id = :number ORDER BY e.seq",
}


# --- writing ------------------------------------------------------------------------------


def begin(
    store: Store, hand: Hand, entries: Sequence[Entry], now: int, same: Same | None = None,
    opened: tuple[str, str] | None = None,
) -> tuple[Incident, bool]:  # fmt: skip
    """A new incident of these events, and True; or the open one that `same` takes for it, with what it adds, and False.

    `opened`: only those are asked about whose opening says the word under the name (see `opened_with`).
    """
    with store.transaction(durable=True) as c:
        if same is not None:
            c.rows(STATEMENTS["turn"] + c.for_update, {})
            some = ("open with", {"word": _like(*opened)}) if opened is not None else ("all open", {})
            for number, uid in c.rows(STATEMENTS[some[0]], some[1]):
                before = _folded(c, int(number), str(uid))
                more = same(before)
                if more is not None:
                    return _written(c, before, hand, more, now), False
        uid = secrets.token_hex(8)
        c.touched(_INSERT["incident"], {"uid": uid, "is_open": True, "opened_at": now})
        ((number,),) = c.rows(STATEMENTS["made"], {"uid": uid})
        return _written(c, Incident(int(number), uid), hand, entries, now), True


def change(store: Store, number: int, hand: Hand, decide: Decide, now: int) -> Incident | None:
    """The incident with the events that `decide` makes of how it stands; None when there is none of that number.

    Nobody else writes to it meanwhile; what `decide` raises leaves it as it is.
    """
    with store.transaction(durable=True) as c:
        held = c.rows(STATEMENTS["held"] + c.for_update, {"number": number})
        if not held:
            return None
        before = _folded(c, number, str(held[0][1]))
        return _written(c, before, hand, decide(before), now)


def _written(c: Transaction, incident: Incident, hand: Hand, entries: Sequence[Entry], now: int) -> Incident:
    was, rows = incident.is_open, []
    for entry in entries:
        seq = len(incident.events) + 1
        data = storable(json.dumps(dict(entry.data), ensure_ascii=False))
        row = {
            "incident_id": incident.number, "seq": seq, "at": entry.at or now, "kind": storable(entry.kind),
            "who": storable(hand.who), "surface": storable(hand.surface), "data": data,
        }  # fmt: skip
        rows.append(row)
        incident = after(incident, _event(tuple(row.values())))
    c.many(_INSERT["incident_event"], rows)
    if incident.is_open != was:
        c.touched(STATEMENTS["stands"], {"number": incident.number, "is_open": incident.is_open})
    return incident


def _folded(c: Transaction, number: int, uid: str) -> Incident:
    return fold((_event((number, *r)) for r in c.rows(STATEMENTS["so far"], {"number": number})), number, uid)


# --- reading ------------------------------------------------------------------------------


def listed(ask: Ask, closed: bool = True, limit: int = 100) -> list[Incident]:
    """Open incidents, then closed ones, the newest of each first."""
    found = ask(SQL["incidents"], {"number": 0, "closed": int(closed), "limit": limit})
    uids = {int(number): str(uid) for number, uid in found}
    events: dict[int, list[Event]] = {}
    for first, last in _stretches(sorted(uids)):
        for row in ask(SQL["incident events"], {"first": first, "last": last}):
            events.setdefault(int(row[0]), []).append(_event(row))
    return [fold(events.get(number, ()), number, uid) for number, uid in uids.items()]


def one(ask: Ask, number: int) -> Incident | None:
    """The incident of a number; None when there is none."""
    for found, uid in ask(SQL["incidents"], {"number": number, "closed": 1, "limit": 1}):
        return fold(map(_event, ask(SQL["incident log"], {"number": number})), int(found), str(uid))
    return None


def opened_with(ask: Ask, name: str, word: str) -> Incident | None:
    """The newest incident, an open one before closed ones, whose opening says `word` (letters and digits) under `name`."""
    for (number,) in ask(SQL["incident opened with"], {"word": _like(name, word)}):
        found = one(ask, int(number))
        if (
            found is not None and found.events and found.events[0].text(name) == word
        ):  # not as a label that somebody wrote
            return found
    return None


def _like(name: str, word: str) -> str:
    return f'%"{name}": "{word}"%'


def _stretches(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Ranges of numbers that follow each other closely enough to be read together."""
    if not numbers:
        return
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > 1 or number - first >= PART:
            yield first, last
            first = number
        last = number
    yield first, last


def _event(row: Sequence[Any]) -> Event:
    try:
        data = json.loads(row[6])
    except (ValueError, RecursionError):
        data = {}
    return Event(
        int(row[1]), int(row[2]), str(row[3]), str(row[4]), str(row[5]), data if isinstance(data, dict) else {}
    )
