"""How far an incident is on its runbooks: the steps that they have now, with what was said about each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents.events import StepState

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident, Mark
    from knowledge.runbook import Runbook, Step


class StepView(NamedTuple):
    """One step. `step` is None when the runbook has none of that name any more; `number` then is 0."""

    runbook: str
    name: str
    number: int
    step: Step | None
    mark: Mark | None

    @property
    def state(self) -> StepState:
        """What was said last; todo when nothing was."""
        return self.mark.state if self.mark is not None else StepState.TODO


class BookView(NamedTuple):
    """One runbook. `runbook` is None when there is none of that name any more."""

    name: str
    runbook: Runbook | None
    steps: tuple[StepView, ...]

    @property
    def ended(self) -> int:
        """Steps that need nothing more."""
        return sum(s.state.ended for s in self.steps)

    @property
    def next(self) -> StepView | None:
        """The step that is under way, or failed, else the first that nothing was said about."""
        for states in ((StepState.DOING, StepState.FAILED), (StepState.TODO,)):
            for s in self.steps:
                if s.state in states:
                    return s
        return None


def books_of(names: Sequence[str]) -> dict[str, Runbook | None]:
    """The runbooks of these names; None for one that is not there (any more)."""
    from knowledge.errors import UnknownNameError
    from knowledge.runbook import runbook

    out: dict[str, Runbook | None] = {}
    for name in names:
        try:
            out[name] = runbook(name)
        except UnknownNameError:
            out[name] = None
    return out


def progress(incident: Incident, books: Mapping[str, Runbook | None] | None = None) -> tuple[BookView, ...]:
    """Each runbook of the incident, with its steps in order; below them marks of steps that it does not have."""
    books = books_of(incident.runbooks) if books is None else books
    return tuple(_view(incident, name, books.get(name)) for name in incident.runbooks)


def of_runbook(book: Runbook) -> BookView:
    """A runbook that nobody follows yet."""
    return BookView(book.id, book, tuple(StepView(book.id, s.id, n, s, None) for n, s in enumerate(book.steps, 1)))


def _view(incident: Incident, name: str, book: Runbook | None) -> BookView:
    steps = book.steps if book is not None else ()
    known = {s.id for s in steps}
    own = [StepView(name, s.id, n, s, incident.steps.get((name, s.id))) for n, s in enumerate(steps, 1)]
    gone = [StepView(name, s, 0, None, mark) for (b, s), mark in incident.steps.items() if b == name and s not in known]
    return BookView(name, book, (*own, *gone))


def values_of(incident: Incident) -> dict[str, str]:
    """What the findings tell of the placeholders of commands; what is not one thing only stays open.

    A command must never hit the wrong one of two GPUs or nodes.
    """
    found: dict[str, set[str]] = {}
    for linked in incident.findings:
        if linked.role == "root":
            for name, value in _named(linked.subject):
                found.setdefault(name, set()).add(value)
    if incident.hosts:
        found["node"] = set(incident.hosts)
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


_PLACES = {"gpu": "gpu_pci", "process": "pid", "job": "job", "node": "node"}
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def _named(subject: str) -> list[tuple[str, str]]:
    from assistant.store.codec import subject_of

    try:
        ancestors = list(subject_of(subject).ancestors()) if subject else []
    except ValueError:
        return []
    out = [(_PLACES[str(s.scope)], s.id) for s in ancestors if str(s.scope) in _PLACES and s.id]
    return [(name, value) for name, value in out if name != "gpu_pci" or _PCI.fullmatch(value)]
