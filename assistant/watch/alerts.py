"""Alerts: what becomes of findings over time. Pure: the same rounds give the same alerts.

A finding raises an alert when it was seen often enough for its severity. An alert is cleared
only after it was looked for and not found, several times and for long enough; a round that could not look
proves nothing. What comes back soon is the same fault: each return doubles how long it must stay away,
and one that keeps returning is taken more seriously. So a fault that comes and goes never reads as healthy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from knowledge.record import dataclass
from rules.model import Severity

SECOND = 10**9  # ns
MOST = 1000  # cleared alerts that are remembered: more than any machine has parts that fail in a day


class Phase(StrEnum):
    """Where an alert stands."""

    PENDING = "pending"  # seen, not often enough to say so
    FIRING = "firing"
    HOLDING = "holding"  # not seen at present, not away for long enough


class What(StrEnum):
    """What happened to an alert in a round."""

    FIRED = "firing"
    ESCALATED = "escalated"
    CLEARED = "resolved"


@dataclass(frozen=True, slots=True)
class Policy:
    """How quick and how slow. Times in seconds."""

    # Rounds in a row before it is said. Errors are said at once: their rules rest on events or on counters.
    rounds: Mapping[Severity, int] = field(
        default_factory=lambda: {Severity.WARNING: 2, Severity.ERROR: 1, Severity.CRITICAL: 1}
    )
    hold: float = 600.0  # away for this long, and
    clear_rounds: int = 3  # looked for and not found this often
    memory: float = 86_400.0  # what returns within it is the same fault
    longest_hold: float = 86_400.0
    escalate_at: int = 3  # returns within `memory` that raise the severity by one


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding of one round, as far as alerts need it."""

    rule: str
    subject: str
    host: str
    severity: Severity
    grade: str = "confirmed"
    xid: int | None = None
    title: Mapping[str, str] = field(default_factory=dict)  # language -> title
    bucket: str = ""
    usable: str = ""
    evidence: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()  # titles of symptoms, English
    facts: tuple[tuple[str, str], ...] = ()  # (fact, subject) that it rests on
    event: int | None = None  # ns UTC of the newest event that it rests on
    boot: str = ""  # boot in which it was seen; empty when unknown

    @property
    def key(self) -> str:
        """What makes two findings of different rounds the same."""
        return f"{self.host}|{self.rule}|{self.subject}"


@dataclass(frozen=True, slots=True)
class Alert:
    """A fault over time. Times are ns since 1970 UTC."""

    last: Sighting
    phase: Phase
    severity: Severity  # as said: raised when it keeps returning
    first_seen: int
    last_seen: int
    seen: int = 1  # rounds in a row
    missed: int = 0  # rounds in a row that looked and did not find it
    fired: int | None = None
    returns: tuple[int, ...] = ()  # when it came back after not being seen


@dataclass(frozen=True, slots=True)
class Change:
    """Something to tell people."""

    what: What
    alert: Alert
    at: int


@dataclass(frozen=True, slots=True)
class Book:
    """All alerts, and those that were cleared and may return."""

    alerts: Mapping[str, Alert] = field(default_factory=dict)
    past: Mapping[str, Alert] = field(default_factory=dict)

    @property
    def firing(self) -> list[Alert]:
        """What is said to be wrong now, worst first; what is held counts."""
        said = [a for a in self.alerts.values() if a.phase is not Phase.PENDING]
        return sorted(said, key=lambda a: (-a.severity.rank, a.first_seen, a.last.key))


def step(
    book: Book, sightings: Collection[Sighting], blind: Collection[str], now: int, policy: Policy
) -> tuple[Book, tuple[Change, ...]]:
    """The book after a round, and what changed. `blind` are keys of alerts that the round could not look for."""
    book = _not_ahead(book, now)
    alerts: dict[str, Alert] = {}
    past = {k: a for k, a in book.past.items() if now - a.last_seen <= policy.memory * SECOND}
    changes: list[Change] = []
    worst: dict[str, Sighting] = {}
    for s in sightings:  # two findings of one key in a round: the worse one speaks
        if s.key not in worst or s.severity.rank > worst[s.key].severity.rank:
            worst[s.key] = s
    for key, s in worst.items():
        before = book.alerts.get(key)
        old = past.pop(key, None) if before is None else None
        alert, change = _seen(before, old, s, now, policy)
        alerts[key] = alert
        if change:
            changes.append(Change(change, alert, now))
    for key, before in book.alerts.items():
        if key in alerts:
            continue
        after = before if key in blind else _missed(before, now, policy)
        if after is not None:
            alerts[key] = after
        else:
            past[key] = before
            if before.phase is not Phase.PENDING:
                changes.append(Change(What.CLEARED, before, now))
    if len(past) > MOST:
        past = dict(sorted(past.items(), key=lambda item: item[1].last_seen)[-MOST:])
    ordered = sorted(changes, key=lambda c: (c.what is What.CLEARED, -c.alert.severity.rank, c.alert.last.key))
    return Book(alerts, past), tuple(ordered)


def hold(alert: Alert, now: int, policy: Policy) -> float:
    """Seconds that it must stay away before it is cleared: doubled by each return."""
    recent = sum(now - t <= policy.memory * SECOND for t in alert.returns)
    return min(policy.hold * 2.0 ** min(recent, 30), policy.longest_hold)


def shifted(book: Book, by: int) -> Book:
    """The book after the clock was set by `by` ns: how long things are ago has not changed."""

    def moved(a: Alert) -> Alert:
        return replace(
            a, first_seen=a.first_seen + by, last_seen=a.last_seen + by, fired=None if a.fired is None else a.fired + by,
            returns=tuple(t + by for t in a.returns),
        )  # fmt: skip

    return Book({k: moved(a) for k, a in book.alerts.items()}, {k: moved(a) for k, a in book.past.items()})


def renamed(book: Book, subjects: Mapping[str, str], hosts: Mapping[str, str]) -> Book:
    """The book after things were found to have other names: a GPU known by index has an address, a node was renamed.

    Two alerts that turn out to be one fault are one; nothing is said for it.
    """
    if not subjects and not hosts:
        return book

    def subject(text: str) -> str:
        head, _, rest = text.partition(" link ")
        head = subjects.get(head, head)
        return f"{head} link {rest}" if rest else head

    def under_new_names(part: Mapping[str, Alert]) -> dict[str, Alert]:
        out: dict[str, Alert] = {}
        for a in part.values():
            s = a.last
            facts = tuple((fact, subject(about)) for fact, about in s.facts)
            s = replace(s, subject=subject(s.subject), host=hosts.get(s.host, s.host), facts=facts)
            a = replace(a, last=s) if s != a.last else a
            out[s.key] = _one(out[s.key], a) if s.key in out else a
        return out

    return Book(under_new_names(book.alerts), under_new_names(book.past))


def _one(a: Alert, b: Alert) -> Alert:
    """Two alerts of one fault: what was said counts, and the newest sighting speaks."""
    newest, other = (a, b) if a.last_seen >= b.last_seen else (b, a)
    phase = newest.phase if newest.phase is not Phase.PENDING else other.phase
    fired = min((t for t in (a.fired, b.fired) if t is not None), default=None)
    returns = tuple(sorted({*a.returns, *b.returns}))[-16:]
    worst = max(a.severity, b.severity, key=lambda s: s.rank)
    first = min(a.first_seen, b.first_seen)
    return replace(newest, phase=phase, fired=fired, returns=returns, severity=worst, first_seen=first)


def _not_ahead(book: Book, now: int) -> Book:
    """Without times ahead of `now`: a clock was wrong when they were noted. What they say happened lately."""

    def moved(a: Alert) -> Alert:
        if max(a.first_seen, a.last_seen, a.fired or 0, *a.returns, 0) <= now:
            return a
        fired = None if a.fired is None else min(a.fired, now)
        returns = tuple(min(t, now) for t in a.returns)
        return replace(
            a, first_seen=min(a.first_seen, now), last_seen=min(a.last_seen, now), fired=fired, returns=returns
        )

    return Book({k: moved(a) for k, a in book.alerts.items()}, {k: moved(a) for k, a in book.past.items()})


def _seen(before: Alert | None, old: Alert | None, s: Sighting, now: int, policy: Policy) -> tuple[Alert, What | None]:
    if before is None:
        returns = (*old.returns, now)[-16:] if old and old.fired is not None else (old.returns if old else ())
        first = old.first_seen if old else now
        # What flickers adds up: sightings that were too few to be said count again when it returns.
        alert = Alert(
            s,
            Phase.PENDING,
            s.severity,
            first,
            now,
            1 + (old.seen if old else 0),
            0,
            old.fired if old else None,
            returns,
        )
        before_severity = None
    else:
        came_back = before.phase is Phase.HOLDING
        returns = (*before.returns, now)[-16:] if came_back else before.returns
        alert = replace(
            before, last=s, last_seen=now, seen=before.seen + 1 if not before.missed else 1, missed=0, returns=returns
        )
        before_severity = before.severity if before.phase is not Phase.PENDING else None
    recent = sum(now - t <= policy.memory * SECOND for t in alert.returns)
    severity = _worse(s.severity) if recent >= policy.escalate_at else s.severity
    known = alert.fired is not None and (before is not None or recent > 0)
    if before_severity is None and not known and alert.seen < policy.rounds.get(s.severity, 1):
        return replace(alert, severity=severity), None
    fired = alert.fired if alert.fired is not None else now
    firing = replace(alert, phase=Phase.FIRING, severity=severity, fired=fired)
    if before_severity is None:
        return firing, What.FIRED
    return firing, What.ESCALATED if severity.rank > before_severity.rank else None


def _missed(before: Alert, now: int, policy: Policy) -> Alert | None:
    if before.phase is Phase.PENDING:
        return None
    after = replace(before, phase=Phase.HOLDING, missed=before.missed + 1, seen=0)
    away = now - before.last_seen
    if after.missed >= policy.clear_rounds and away >= hold(before, now, policy) * SECOND:
        return None
    return after


def _worse(severity: Severity) -> Severity:
    order = sorted(Severity, key=lambda s: s.rank)
    return order[min(order.index(severity) + 1, len(order) - 1)]


# --- kept over restarts -------------------------------------------------------------------


def dump(book: Book) -> dict[str, Any]:
    """The book as plain data."""
    return {part: {k: _plain(a) for k, a in getattr(book, part).items()} for part in ("alerts", "past")}


def restore(data: Any) -> Book:
    """The opposite of `dump`; what cannot be understood is left out."""

    def some(part: str) -> dict[str, Alert]:
        rows = data.get(part) if isinstance(data, dict) else None
        out = {}
        for key, row in (rows or {}).items() if isinstance(rows, dict) else ():
            try:
                out[key] = _alert(row)
            except (KeyError, TypeError, ValueError):
                continue
        return out

    return Book(some("alerts"), some("past"))


def _plain(a: Alert) -> dict[str, Any]:
    s = a.last
    return {
        "rule": s.rule, "subject": s.subject, "host": s.host, "found_severity": str(s.severity), "grade": s.grade, "xid": s.xid,
        "title": dict(s.title), "bucket": s.bucket, "usable": s.usable, "evidence": list(s.evidence),
        "explains": list(s.explains), "facts": [list(f) for f in s.facts],
        "event": s.event, "boot": s.boot,
        "phase": str(a.phase), "severity": str(a.severity), "first_seen": a.first_seen, "last_seen": a.last_seen,
        "seen": a.seen, "missed": a.missed, "fired": a.fired, "returns": list(a.returns),
    }  # fmt: skip


def _alert(row: Mapping[str, Any]) -> Alert:
    sighting = Sighting(
        str(row["rule"]), str(row["subject"]), str(row["host"]), Severity(row["found_severity"]), str(row["grade"]), row["xid"],
        {str(k): str(v) for k, v in row["title"].items()}, str(row["bucket"]), str(row["usable"]),
        tuple(map(str, row["evidence"])), tuple(map(str, row["explains"])),
        tuple((str(fact), str(subject)) for fact, subject in row["facts"]),
        None if row.get("event") is None else int(row["event"]), str(row.get("boot", "")),
    )  # fmt: skip
    fired = None if row["fired"] is None else int(row["fired"])
    return Alert(
        sighting, Phase(row["phase"]), Severity(row["severity"]), int(row["first_seen"]), int(row["last_seen"]),
        int(row["seen"]), int(row["missed"]), fired, tuple(map(int, row["returns"])),
    )  # fmt: skip
