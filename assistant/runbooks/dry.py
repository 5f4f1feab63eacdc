"""A walk on paper: which steps would be taken by what is known now, which left out and why, and where it would wait.

Each step is taken to work, for nobody knows yet; where it would go on otherwise is said. Nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents.events import StepState
from assistant.runbooks.engine import Taken, walk
from knowledge.runbook import ready
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.runbooks.engine import Stand
    from assistant.runbooks.judging import Judge, Judged
    from knowledge.observation import Subject
    from knowledge.runbook import Runbook, Step


class Planned(NamedTuple):
    """One step of the plan."""

    number: int
    taken: Taken
    command: str  # filled in; what is not known stands in capitals
    gate: Judged | None
    verified: Judged | None  # how its verification stands before it
    until: Judged | None


class Plan(NamedTuple):
    """A whole walk on paper."""

    book: Runbook
    steps: tuple[Planned, ...]
    passed: tuple[str, ...]  # ids that a branch jumps over
    end: Stand
    subjects: tuple[Subject, ...]
    values: Mapping[str, str]


class _OnPaper:
    """All goes well, and a person says yes."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.gates: dict[str, Judged] = {}

    def gate(self, step: Step) -> Truth:
        assert step.only_if is not None  # the engine asks only then
        self.gates[step.id] = self._judge.gate(step.only_if)
        return self.gates[step.id].truth

    def enters(self, step: Step) -> bool:  # noqa: ARG002 - the engine's question
        return True

    def does(self, step: Step, rounds: int) -> tuple[Truth, Truth]:  # noqa: ARG002 - the engine's question
        return Truth.TRUE, Truth.TRUE

    def judges(self, step: Step) -> StepState:  # noqa: ARG002 - the engine's question
        return StepState.DONE


def plan(book: Runbook, judge: Judge, values: Mapping[str, str]) -> Plan:
    """The walk through `book` by what is known."""
    world = _OnPaper(judge)
    taken, end = walk(book, world)
    numbers = {s.id: n for n, s in enumerate(book.steps, 1)}
    steps = tuple(
        Planned(
            numbers[t.step.id],
            t,
            ready(t.step.command, values) if t.step.command else "",
            world.gates.get(t.step.id),
            judge.worked(t.step.verify_if) if t.step.verify_if is not None else None,
            judge.worked(t.step.repeat.until) if t.step.repeat is not None else None,
        )
        for t in taken
    )
    met = {t.step.id for t in taken}
    return Plan(book, steps, tuple(s.id for s in book.steps if s.id not in met), end, judge.subjects, values)


def of_diagnosis(book: Runbook, diagnosis: Diagnosis, host: str = "") -> tuple[tuple[Subject, ...], dict[str, str]]:
    """What a walk is about, and the values of its commands: of the findings that this runbook is the answer to."""
    from assistant.incidents.events import Event
    from assistant.incidents.fold import fold
    from assistant.incidents.opening import from_diagnosis
    from assistant.incidents.progress import values_of

    found = [f for f in diagnosis.roots if f.advice.runbook == book.id]
    found = found or [f for f in diagnosis.findings if f.advice.runbook == book.id]
    if not found:
        return (), {"node": host} if host else {}
    entries = from_diagnosis(diagnosis, host, [f.id for f in found])
    # What only explains itself by another finding has a subject all the same: this runbook is the answer to it.
    told = [{**e.data, "role": "root"} for e in entries]
    incident = fold(Event(n, 0, e.kind, "", "", data) for n, (e, data) in enumerate(zip(entries, told, strict=True), 1))
    return tuple(dict.fromkeys(f.subject for f in found)), values_of(incident)
