"""Times as answers print them: exact, and honest about the clock they were read from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from knowledge.observation import Clock, Observation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(ns: int, *, zone: str = "Z") -> str:
    """`ns` since 1970 as ISO 8601; a fraction only where there is one (microseconds)."""
    moment = _EPOCH + timedelta(microseconds=ns // 1000)
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if ns // 1000 % 1_000_000 else "seconds")
    return text + zone


def stamp(at: int | None, clock: Clock) -> str | None:
    """A time of `clock`; None when there is none that means anything outside its source.

    UTC ends in ``Z``; a wall clock of an unnamed zone has no zone; a syslog time has no year
    (``--08-17T06:18:01``, ISO 8601's truncated form), a clock without a date no more than that; seconds since a boot are ``boot+...s``.
    """
    if at is None:
        return None
    match clock:
        case Clock.REALTIME:
            return iso(at)
        case Clock.LOCAL:
            return iso(at, zone="")
        case Clock.YEARLESS:
            return "-" + iso(at, zone="")[4:]
        case Clock.DAY:
            return iso(at, zone="").partition("T")[2]
        case Clock.BOOT:
            return f"boot+{at // 10**9}.{at % 10**9 // 1000:06d}s"
        case _:
            return None


def when(observation: Observation) -> str:
    """The time of an observation, or an empty string."""
    return stamp(observation.at, observation.clock) or ""


def readable(text: str) -> str:
    """A stamp for people: a blank for the T."""
    return text.replace("T", " ", 1) if text[:1].isdigit() or text.startswith("--") else text
