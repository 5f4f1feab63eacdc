"""What can happen in an incident: one kind of event each, with the plain data that it carries.

==========  ==================================================================================
opened      title, severity, origin (hand, diagnosis, ...), and of a diagnosis: host, verdict, as_of, ruleset, source
finding     a finding as it stood in the diagnosis: key, rule, title, severity, subject, host, events, evidence, runbook
runbook     runbook: its steps belong to the incident from here on
step        runbook, step, state (`StepState`), text
note        text
message     text, who said it (from) and where
status      status (`Status`), text
owner       owner; empty: nobody
severity    severity, text
probe       what was looked at, and what came of it
action      what was done, and what came of it
alert       one of Alertmanager's: state (firing, resolved), fingerprint, starts, ends, again (ns UTC), name, host, subject, rule,
            severity, labels, annotations, text; or how many `more` there are than were told
linked      incident: the number of another one that belongs to it; why, and whether it went into this one (merged)
closed      text: how it ended
==========  ==================================================================================

A reader keeps kinds and fields that it does not know: a newer gpudiag may have written them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from knowledge.errors import UnknownNameError, UsageError
from knowledge.record import dataclass
from knowledge.text import clean

if TYPE_CHECKING:
    from knowledge.runbook import Runbook

WORDS = 10_000  # characters of a note: a page of a log that somebody pastes
NAME = 200  # of a title, an owner, somebody's name
SEVERITIES = ("info", "warning", "error", "critical")


class Kind(StrEnum):
    """Kinds of events; see the table above."""

    OPENED = "opened"
    FINDING = "finding"
    RUNBOOK = "runbook"
    STEP = "step"
    NOTE = "note"
    MESSAGE = "message"
    STATUS = "status"
    OWNER = "owner"
    SEVERITY = "severity"
    PROBE = "probe"
    ACTION = "action"
    ALERT = "alert"
    LINKED = "linked"
    CLOSED = "closed"


class Status(StrEnum):
    """How far an incident is."""

    OPEN = "open"
    """Nobody works on it yet."""
    WORKING = "working"
    """Somebody does."""
    MITIGATED = "mitigated"
    """Work goes on elsewhere or again; the cause is still there."""
    CLOSED = "closed"
    """It is over."""


class StepState(StrEnum):
    """How far a step of a runbook is."""

    TODO = "todo"
    DOING = "doing"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do about it."""
        return self in (StepState.DONE, StepState.SKIPPED)


class Hand(NamedTuple):
    """Who writes, and through which surface (cli, tui, slack)."""

    who: str
    surface: str


class Entry(NamedTuple):
    """An event that is to be written. `at`: ns UTC; 0 is now."""

    kind: str
    data: Mapping[str, Any] = {}
    at: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it was written."""

    seq: int  # from 1 on, without gaps: the order of events, whatever their clocks say
    at: int  # ns UTC, of the writer's clock
    kind: str  # a `Kind`, or one that a newer gpudiag knows
    who: str
    surface: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str = "text") -> str:
        """A field as a word; empty when it is missing or none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


# --- what people write --------------------------------------------------------------------


def note(text: str) -> Entry:
    """A note. UsageError for one without words."""
    return Entry(Kind.NOTE, {"text": _needed(text, "a note")})


def message(text: str, where: str = "", said_by: str = "", at: int = 0) -> Entry:
    """What somebody said elsewhere (`where`), and when (ns UTC; 0: not told). UsageError for one without words."""
    told = {"text": _needed(text, "a message"), "where": _line(where), "from": _line(said_by), "at": at}
    return Entry(Kind.MESSAGE, {name: value for name, value in told.items() if value})


def linked(number: int, why: Mapping[str, str], merged: str = "") -> Entry:
    """Another incident belongs to this one. `why`: in each language. `merged`: ``into`` or ``from``, when one takes up the other."""
    return Entry(Kind.LINKED, {"incident": number, "why": dict(why), **({"merged": merged} if merged else {})})


def step(runbook: str, name: str, state: str, text: str = "") -> Entry:
    """A step that is begun, done, left out. UsageError for a state that is none."""
    known = [s.value for s in StepState]
    if state not in known:
        raise UsageError(
            f"there is no state {state!r} of a step", hint=f"allowed: {', '.join(known)}",
            zh=f"步骤没有状态 {state!r}", hint_zh=f"可用：{', '.join(known)}",
        )  # fmt: skip
    return Entry(Kind.STEP, {"runbook": runbook, "step": name, "state": state, **_why(text)})


def status(word: str, text: str = "") -> Entry:
    """Another status. UsageError for a word that is none; `closed` says how an incident ends."""
    known = [s.value for s in Status if s is not Status.CLOSED]
    if word == Status.CLOSED:
        return closed(text)
    if word not in known:
        raise UsageError(
            f"there is no status {word!r}", hint=f"allowed: {', '.join(known)}, closed",
            zh=f"没有状态 {word!r}", hint_zh=f"可用：{', '.join(known)}, closed",
        )  # fmt: skip
    return Entry(Kind.STATUS, {"status": word, **_why(text)})


def owner(name: str) -> Entry:
    """Somebody who takes care of it; nobody with an empty name."""
    return Entry(Kind.OWNER, {"owner": _line(name)})


def severity(word: str, text: str = "") -> Entry:
    """Another severity. UsageError for a word that is none."""
    return Entry(Kind.SEVERITY, {"severity": known_severity(word), **_why(text)})


def runbook(name: str) -> Entry:
    """Steps of one more runbook. UnknownNameError with the nearest ones."""
    from knowledge.runbook import runbook as shipped

    return Entry(Kind.RUNBOOK, {"runbook": shipped(name).id})


def closed(text: str = "") -> Entry:
    """The end, and how it came."""
    return Entry(Kind.CLOSED, _why(text))


def known_severity(word: str) -> str:
    """`word`, when it is a severity. UsageError otherwise."""
    if word not in SEVERITIES:
        raise UsageError(
            f"there is no severity {word!r}", hint=f"allowed: {', '.join(SEVERITIES)}",
            zh=f"没有级别 {word!r}", hint_zh=f"可用：{', '.join(SEVERITIES)}",
        )  # fmt: skip
    return word


def named_step(name: str, books: Mapping[str, Runbook | None]) -> tuple[str, str]:
    """Runbook and step that `name` means: ``reset``, its number ``8``, or ``gpu-off-bus/reset`` where several have it.

    `books` are the runbooks of the incident, by their ids. UnknownNameError, or UsageError when two have a step of that name.
    """
    where, _, own = name.rpartition("/")
    steps = [(i, s.id) for i, b in books.items() if b is not None for s in b.steps]
    if own.isdecimal():
        found = [
            (i, b.steps[int(own) - 1].id)
            for i, b in books.items()
            if b is not None and where in ("", i) and 0 < int(own) <= len(b.steps)
        ]
    else:
        found = [(i, s) for i, s in steps if s == own and where in ("", i)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"several runbooks have a step {name}", hint="one of " + ", ".join(f"{i}/{s}" for i, s in found),
            zh=f"多份手册都有步骤 {name}", hint_zh="请指定 " + ", ".join(f"{i}/{s}" for i, s in found),
        )  # fmt: skip
    if not books:
        raise UsageError(
            "the incident follows no runbook yet",
            hint="gpudiag incident change NUMBER --runbook ID",
            zh="该事件尚无处置手册",
        )
    raise UnknownNameError("step of " + ", ".join(books), name, [s for _, s in steps], kind_zh="步骤")


def words_of(text: str) -> str:
    """What a person wrote, safe to show: without escapes and invisible characters, of at most `WORDS` characters."""
    return clean(text).strip()[:WORDS]


def _line(text: str) -> str:
    return " ".join(clean(text).split())[:NAME]


def _needed(text: str, what: str) -> str:
    kept = words_of(text)
    if not kept:
        raise UsageError(f"{what} wants words")
    return kept


def _why(text: str) -> dict[str, str]:
    kept = words_of(text)
    return {"text": kept} if kept else {}


def title_of(text: str) -> str:
    """A title in one line. UsageError for one without words."""
    return _line(_needed(text, "a title"))
