"""Where a walk through a runbook stands, and what happens there: pure, and never longer than the page.

Where it stands follows from the marks of the steps alone, so that anybody can go on from anywhere. A branch leads
down the page and a loop is bounded, so a walk of any marks and any facts ends after `bound` rounds at most.
What is not known is never taken for true, and never leaves a step out: it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from assistant.incidents.events import StepState
from knowledge.runbook import END, Runbook, Step
from rules.proof import Truth


class Stand(NamedTuple):
    """Where a walk stands. No `step`: it is over, or goes on in the runbook `leads`."""

    step: Step | None
    leads: str = ""
    stuck: bool = False  # the step failed and nothing says where to go
    path: tuple[str, ...] = ()  # the steps that were passed, in order


class Outcome(StrEnum):
    """What comes of one round of a step."""

    DONE = "done"
    FAILED = "failed"
    AGAIN = "again"
    ASK = "ask"
    """Facts do not tell: a person does."""


def position(book: Runbook, states: Mapping[str, StepState], begin: str = "") -> Stand:
    """The step that has its turn, by what was said of the steps so far. `begin`: a step to start from, else the first."""
    place = {s.id: n for n, s in enumerate(book.steps)}
    at = place.get(begin, 0)
    path: list[str] = []
    while at < len(book.steps):
        step = book.steps[at]
        state = states.get(step.id, StepState.TODO)
        if not state.ended and state is not StepState.FAILED:
            return Stand(step, path=tuple(path))
        if state is StepState.FAILED and step.on_failure not in place:
            stuck = step if not step.on_failure else None
            return Stand(stuck, step.on_failure, stuck is not None, tuple(path))
        path.append(step.id)
        at = _following(at, step, state, place)
    return Stand(None, path=tuple(path))


def _following(at: int, step: Step, state: StepState, place: Mapping[str, int]) -> int:
    """Where it goes on: always further down, whatever a file says that was not checked."""
    target = step.on_failure if state is StepState.FAILED else step.next if state is StepState.DONE else ""
    if target == END:
        return len(place)
    return max(at + 1, place.get(target, at + 1))


def outcome(step: Step, rounds: int, until: Truth = Truth.UNKNOWN, verified: Truth = Truth.UNKNOWN) -> Outcome:
    """What comes of a step after `rounds` rounds: by its loop's condition, then by its verification.

    A step that says in words alone how to see that it worked is judged by a person.
    """
    if step.repeat is not None and until is not Truth.TRUE:
        if rounds < step.repeat.at_most:
            return Outcome.AGAIN
        return Outcome.FAILED if until is Truth.FALSE else Outcome.ASK
    if step.verify_if is not None:
        return {Truth.TRUE: Outcome.DONE, Truth.FALSE: Outcome.FAILED}.get(verified, Outcome.ASK)
    return Outcome.ASK if step.verify or step.verify_command else Outcome.DONE


def bound(book: Runbook) -> int:
    """How many rounds of steps a walk has at most."""
    return sum(s.bound for s in book.steps)


def longest(book: Runbook) -> int:
    """ns that a walk waits at most between rounds."""
    return sum((s.repeat.at_most - 1) * s.repeat.every for s in book.steps if s.repeat is not None)


# --- a whole walk -------------------------------------------------------------------------


class World(Protocol):
    """What a walk meets."""

    def gate(self, step: Step) -> Truth:
        """Whether the step applies."""

    def enters(self, step: Step) -> bool:
        """Whether a person says that it applies, where facts do not."""

    def does(self, step: Step, rounds: int) -> tuple[Truth, Truth]:
        """One more round of it: whether its loop is over, and whether it worked."""

    def judges(self, step: Step) -> StepState:
        """What a person says of it, where facts do not."""


class Taken(NamedTuple):
    """A step that a walk came to."""

    step: Step
    gate: Truth | None  # None: it applies without a condition
    rounds: int  # 0: left out
    state: StepState
    asked: bool = False  # a person was asked whether it applies


def walk(book: Runbook, world: World) -> tuple[tuple[Taken, ...], Stand]:
    """The steps that are come to, in order, and where it ends."""
    states: dict[str, StepState] = {}
    out: list[Taken] = []
    while True:
        stand = position(book, states)
        if stand.step is None or stand.stuck:
            return tuple(out), stand
        taken = _one(stand.step, world)
        states[stand.step.id] = taken.state
        out.append(taken)


def _one(step: Step, world: World) -> Taken:
    gate = world.gate(step) if step.only_if is not None else None
    asked = gate is Truth.UNKNOWN
    if gate is Truth.FALSE or (asked and not world.enters(step)):
        return Taken(step, gate, 0, StepState.SKIPPED, asked)
    for rounds in range(1, step.bound + 1):
        came = outcome(step, rounds, *world.does(step, rounds))
        if came is not Outcome.AGAIN:
            break
    if came is Outcome.ASK:
        said = world.judges(step)
        return Taken(step, gate, rounds, said if said.ended else StepState.FAILED, asked)
    return Taken(step, gate, rounds, StepState.DONE if came is Outcome.DONE else StepState.FAILED, asked)
