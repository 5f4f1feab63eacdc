"""What a walk is made of: where it says and asks things, how it is made, where it stands, and what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from knowledge.record import dataclass
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.actions.order import Order
    from assistant.incidents.fold import Incident
    from assistant.render.sheet import Part
    from assistant.runbooks.engine import Stand
    from assistant.runbooks.judging import Judged
    from knowledge.language import Text
    from knowledge.observation import Subject
    from knowledge.runbook import Runbook


class LeftError(Exception):
    """The person leaves the walk, or there is nobody to ask."""


class Talk(Protocol):
    """Where the walk says and asks things."""

    def say(self, text: Text) -> None:
        """A line."""

    def show(self, title: str, parts: list[Part]) -> None:
        """A step."""

    def ask(self, question: Text) -> str:
        """An answer in lower case, without blanks around it. LeftError when there is nobody to ask."""


class Permit:
    """Who else has a word about a command, beside the person who walks; this one lets everything pass. See `assistant.slack.walks`."""

    def ask(self, order: Order) -> Text | None:
        """Asked before the person is asked: why it is only shown; None: it may be run. It may wait for somebody."""
        del order
        return None

    def claim(self, order: Order) -> Text | None:
        """Asked right before it is run, once for each run: why it is not run after all; None: it is run now."""
        del order
        return None

    def output(self, text: str) -> str:
        """What of a command's output may be shown and kept."""
        return text


@dataclass(frozen=True, slots=True)
class Way:
    """How a walk is made."""

    node: str = ""  # the machine that it is about; empty: not known
    here: bool = False  # whether that is this machine
    yes_safe: bool = False  # safe commands run without a question
    show_only: bool = False  # nothing runs
    only: str = ""  # runbook/step: this step alone
    begin: str = ""  # runbook/step: from this step on
    take_over: bool = False  # a step that somebody else has in hand


class At(NamedTuple):
    """Where the walk stands."""

    book: Runbook
    stand: Stand
    number: int


def subjects(incident: Incident, book: Runbook) -> tuple[Subject, ...]:
    """What the findings are about to which this runbook is the answer; of the roots, where none names it."""
    from assistant.store.codec import subject_of

    own = [f for f in incident.findings if f.runbook == book.id] or [f for f in incident.findings if f.role == "root"]
    out = []
    for linked in own:
        try:
            out.append(subject_of(linked.subject))
        except ValueError:
            continue
    return tuple(dict.fromkeys(out))


def number_of(book: Runbook, step: str) -> int:
    """The place of a step on the page, from 1 on."""
    return next((n for n, s in enumerate(book.steps, 1) if s.id == step), 0)


def truth_of(judged: Judged | None) -> Truth:
    """What a condition came to; unknown where there is none."""
    return judged.truth if judged is not None else Truth.UNKNOWN
