"""What a session is told, and what it wants done: the two alphabets of `assistant.session.core`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from assistant.intent.query import Query
from assistant.reply import Reply
from assistant.session.state import Origin, Pending, Seen
from knowledge.language import Text
from knowledge.observation import Value
from knowledge.record import dataclass

# --- steps: what the session wants ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collect:
    """Run these probes (none: read what was given), and tell what they saw."""

    origin: Origin
    probes: tuple[str, ...] = ()
    budget: float | None = None  # seconds for all of them
    options: Mapping[str, str] = field(default_factory=dict)  # what the question names, for the probes that take it


@dataclass(frozen=True, slots=True)
class Recall:
    """Look into the history."""

    query: Query
    host: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write the answer that stands to a file."""

    reply: Reply
    path: str = ""  # empty: a name of its own in the current folder
    format: str = ""  # text, markdown, html, json; empty: by the path, else markdown
    replace: bool = False  # an existing file may be overwritten


@dataclass(frozen=True, slots=True)
class Conclude:
    """Say this: the turn is over, unless an `Ask` or a `Confirm` stands beside it."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the person; the answer comes as the next sentence, or as `Answered`."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class Confirm:
    """Ask for consent; it comes as the next sentence, or as `Confirmed`."""

    pending: Pending


Step: TypeAlias = Collect | Recall | Write | Conclude | Ask | Confirm

# --- events: what the session is told ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """A person said something. `at` (ns UTC) tells how old earlier readings are by now. `query`: as what it is to be
    understood, where it was not put in words (a value that was edited, a row that was pointed at)."""

    text: str
    origin: Origin = field(default_factory=Origin)
    at: int | None = None
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """What a `Collect` gave."""

    seen: Seen


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a `Recall` gave: rows of the history, or why there are none."""

    rows: Sequence[Any]
    note: Text | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Where a `Write` wrote to; or why not. `exists`: consent to overwrite is wanted."""

    path: str
    trouble: str = ""
    exists: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The value of the fact that was asked for; None: the person does not know."""

    value: Value


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Whether consent was given."""

    yes: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The person gave up what was under way."""


Event: TypeAlias = Said | Collected | Recalled | Written | Answered | Confirmed | Cancelled
