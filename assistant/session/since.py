"""Since when: "2h", "yesterday 14:00", "2026-11-20", as the slot `since` holds it, on the clock of this place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

_CLOCK = re.compile(r"([0-2]?[0-9]):([0-5][0-9])(?::([0-5][0-9]))?")
_DATE = re.compile(r"(20[0-9]{2}-[01][0-9]-[0-3][0-9])(?:[T ]([0-2][0-9]:[0-5][0-9](?::[0-5][0-9])?)(Z?))?")
_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NIGHT, MORNING = 18, 5  # hours at which "last night" and "this morning" begin: wide, so that nothing is left out


def start_of(said: str, now: int, boots: Sequence[int] = (), zone: tzinfo | None = None) -> int | None:
    """Where the time that `said` names begins (ns UTC); None when it is not understood.

    `now` is ns UTC; `boots` are the times at which boots were seen first, oldest first; `zone` is the place's own
    by default, because that is what people mean. A clock time that is still to come is yesterday's.
    """
    from knowledge.units import parse_duration

    word = " ".join(said.split()).casefold()
    if word == "boot":
        return max((b for b in boots if b <= now), default=None)
    try:
        return max(0, now - parse_duration(word))
    except ValueError:
        pass
    here = datetime.fromtimestamp(now // 10**9, UTC).astimezone(zone).replace(tzinfo=None)
    found = _moment(word, here)
    if found is None:
        return None
    # A time without a zone is read by the place's rules, summer time included.
    placed = found if found.tzinfo is not None or zone is None else found.replace(tzinfo=zone)
    return max(0, int(placed.timestamp())) * 10**9


def _moment(word: str, here: datetime) -> datetime | None:
    if dated := _DATE.fullmatch(word.upper()):
        return _dated(dated)
    if _CLOCK.fullmatch(word):
        at = _at(here, word)
        return at - timedelta(days=1) if at is not None and at > here else at
    day, _, clock = word.rpartition(" ") if _CLOCK.fullmatch(word.rpartition(" ")[2]) else (word, "", "")
    begin = _day(day, here)
    return _at(begin, clock) if begin is not None and clock else begin


def _day(name: str, here: datetime) -> datetime | None:
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    if name in _WEEK:
        return midnight - timedelta(days=(here.weekday() - _WEEK.index(name)) % 7 or 7)
    ago = {"today": 0, "yesterday": 1}
    if name in ago:
        return midnight - timedelta(days=ago[name])
    if name == "this morning":
        return midnight.replace(hour=MORNING)
    return (midnight - timedelta(days=1)).replace(hour=NIGHT) if name == "last night" else None


def _at(day: datetime, clock: str) -> datetime | None:
    found = _CLOCK.fullmatch(clock)
    if found is None or int(found[1]) > 23:
        return None
    return day.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=0)


def _dated(found: re.Match[str]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}")
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if found[3] else moment
