"""From events to an incident: pure, in the order of the events, and never refusing one.

`after` takes one event, `fold` all of them; what was folded so far and the events that follow give the same as all at once.
Data that another writer left out or wrote differently changes nothing but the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import reduce
from typing import Any

from assistant.incidents.events import SEVERITIES, Event, Kind, Status, StepState
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """The last word about a step."""

    state: StepState
    who: str
    at: int  # ns UTC
    text: str = ""


@dataclass(frozen=True, slots=True)
class Linked:
    """A finding that belongs to the incident, as it stood in the diagnosis then."""

    key: str  # the finding's id
    rule: str
    title: Text
    severity: str
    host: str = ""
    subject: str = ""  # node:n1/gpu:0000:3b:00.0
    role: str = "root"
    grade: str = ""
    xid: int | None = None
    runbook: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)  # all that was kept of it


@dataclass(frozen=True, slots=True)
class Incident:
    """What an incident is now."""

    number: int = 0
    uid: str = ""  # says nothing about it: for places where numbers could be guessed
    title: Text = NO_TEXT
    severity: str = ""
    status: Status = Status.OPEN
    owner: str = ""
    origin: str = ""
    ended: str = ""  # how it ended, while it is closed
    closed_at: int | None = None  # ns UTC
    findings: tuple[Linked, ...] = ()
    runbooks: tuple[str, ...] = ()
    steps: Mapping[tuple[str, str], Mark] = field(default_factory=dict)  # runbook, step
    named: tuple[str, ...] = ()  # nodes that it was opened or alerted about
    links: tuple[int, ...] = ()  # numbers of the incidents that belong to it
    events: tuple[Event, ...] = ()

    @property
    def opened_at(self) -> int:
        """When its first event was written (ns UTC)."""
        return self.events[0].at if self.events else 0

    @property
    def changed_at(self) -> int:
        """When its newest event was written (ns UTC)."""
        return self.events[-1].at if self.events else 0

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.status is not Status.CLOSED

    @property
    def hosts(self) -> tuple[str, ...]:
        """The nodes that it is about, in the order in which they came in."""
        return tuple(dict.fromkeys(h for h in (*self.named, *(f.host for f in self.findings)) if h))

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody who wrote something."""
        return tuple(dict.fromkeys(e.who for e in self.events if e.who))

    @property
    def notes(self) -> tuple[Event, ...]:
        """What people noted."""
        return tuple(e for e in self.events if e.kind == Kind.NOTE)


def fold(events: Iterable[Event], number: int = 0, uid: str = "") -> Incident:
    """The incident that these events, in their order, make."""
    told = tuple(events)  # kept once: a list that grows by one each time costs its length squared
    return replace(reduce(_changed, told, Incident(number, uid)), events=told)


def after(incident: Incident, event: Event) -> Incident:
    """The incident with one more event."""
    return _changed(replace(incident, events=(*incident.events, event)), event)


def _changed(incident: Incident, event: Event) -> Incident:
    if event.kind in (Kind.OPENED, Kind.ALERT) and (host := event.text("host")) and host not in incident.named:
        incident = replace(incident, named=(*incident.named, host))
    change = _CHANGES.get(event.kind)
    return change(incident, event) if change is not None else incident


def _opened(i: Incident, e: Event) -> Incident:
    title = text_of(e.data.get("title"))
    return replace(i, title=title or i.title, severity=_severity(e) or i.severity, origin=e.text("origin") or i.origin)


def _finding(i: Incident, e: Event) -> Incident:
    key, rule = e.text("key"), e.text("rule")
    if not key:
        return i
    xid = e.data.get("xid")
    new = Linked(
        key, rule, text_of(e.data.get("title")) or Text(rule), _severity(e), e.text("host"), e.text("subject"),
        e.text("role") or "root", e.text("grade"), xid if isinstance(xid, int) else None, e.text("runbook"), e.data,
    )  # fmt: skip
    same = [f for f in i.findings if (f.host, f.key) == (new.host, new.key)]
    kept = tuple(new if f in same else f for f in i.findings) if same else (*i.findings, new)
    # What only explains itself by another finding is put right with it: the steps are those of the roots.
    return _with_runbook(replace(i, findings=kept), new.runbook if new.role == "root" else "")


def _runbook(i: Incident, e: Event) -> Incident:
    return _with_runbook(i, e.text("runbook"))


def _step(i: Incident, e: Event) -> Incident:
    book, name, state = e.text("runbook"), e.text("step"), e.text("state")
    if not book or not name or state not in list(StepState):
        return i
    marks = {**i.steps, (book, name): Mark(StepState(state), e.who, e.at, e.text())}
    return _with_runbook(replace(i, steps=marks), book)


def _status(i: Incident, e: Event) -> Incident:
    word = e.text("status")
    if word not in list(Status):
        return i
    if word == Status.CLOSED:
        return _closed(i, e)
    return replace(i, status=Status(word), ended="", closed_at=None)


def _owner(i: Incident, e: Event) -> Incident:
    return replace(i, owner=e.text("owner"))


def _grave(i: Incident, e: Event) -> Incident:
    return replace(i, severity=_severity(e) or i.severity)


def _linked(i: Incident, e: Event) -> Incident:
    other = e.data.get("incident")
    if not isinstance(other, int) or isinstance(other, bool) or other in (*i.links, i.number):
        return i
    return replace(i, links=(*i.links, other))


def _closed(i: Incident, e: Event) -> Incident:
    return replace(i, status=Status.CLOSED, ended=e.text(), closed_at=e.at)


_CHANGES: Mapping[str, Callable[[Incident, Event], Incident]] = {
    Kind.OPENED: _opened, Kind.FINDING: _finding, Kind.RUNBOOK: _runbook, Kind.STEP: _step, Kind.STATUS: _status,
    Kind.OWNER: _owner, Kind.SEVERITY: _grave, Kind.LINKED: _linked, Kind.CLOSED: _closed,
}  # fmt: skip


def _with_runbook(i: Incident, name: str) -> Incident:
    return replace(i, runbooks=(*i.runbooks, name)) if name and name not in i.runbooks else i


def _severity(e: Event) -> str:
    word = e.text("severity")
    return word if word in SEVERITIES else ""


def text_of(value: object) -> Text:
    """A text as it was written: a word, or one in each language."""
    if isinstance(value, str):
        return Text(value, value)
    if isinstance(value, dict):
        en, zh = (v if isinstance(v, str) else "" for v in (value.get("en"), value.get("zh")))
        return Text(en or zh, zh)
    return NO_TEXT
