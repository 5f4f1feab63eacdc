"""Who does a step: decided within the incident, so that two people who walk it never both run it.

A walk begins a step by writing that it does, and only if nothing was written of the step since it looked. It leaves the
step (Ctrl-C, quit) by writing that, too: then anybody may go on with it, from any surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from assistant.incidents.deeds import deeds
from assistant.incidents.events import Entry, Event, Kind, StepState, words_of
from assistant.incidents.fold import Incident
from knowledge.errors import GpudiagError


class MovedError(GpudiagError):
    """Somebody else wrote of the step meanwhile."""


class Holder(StrEnum):
    """Who has a step in hand."""

    NOBODY = "nobody"
    LEFT = "left"
    """It was begun, and left in the middle."""
    SAME = "same"
    """The same person, elsewhere or in a walk that was ended without a word."""
    OTHER = "other"


def last(incident: Incident, runbook: str, step: str) -> Event | None:
    """The last word about a step."""
    for event in reversed(incident.events):
        if event.kind == Kind.STEP and (event.text("runbook"), event.text("step")) == (runbook, step):
            return event
    return None


def holder(event: Event | None, who: str) -> Holder:
    """Who has the step in hand, by the last word about it."""
    if event is None or event.text("state") != StepState.DOING:
        return Holder.NOBODY
    if event.data.get("left"):
        return Holder.LEFT
    return Holder.SAME if event.who == who else Holder.OTHER


def step_entry(runbook: str, step: str, state: StepState, text: str = "", **more: Any) -> Entry:
    """How far a step is."""
    said = {"text": words_of(text)} if words_of(text) else {}
    return Entry(Kind.STEP, {"runbook": runbook, "step": step, "state": str(state), **said, **more})


def if_unmoved(incident: Incident, runbook: str, step: str, seen: int, entries: Sequence[Entry]) -> Sequence[Entry]:
    """`entries`, when the last word about the step is still that of number `seen` (0: none). MovedError otherwise."""
    now = last(incident, runbook, step)
    if (now.seq if now is not None else 0) != seen:
        who = now.who if now is not None else ""
        raise MovedError(
            f"{who} went on with step {runbook}/{step} meanwhile", hint="gpudiag incident show NUMBER",
            zh=f"{who} 在此期间已接手步骤 {runbook}/{step}",
        )  # fmt: skip
    return entries


def runs(incident: Incident, runbook: str, step: str) -> tuple[Event, ...]:
    """What was run of a step since it was last begun anew: rounds of its loop count over a pause."""
    out: list[Event] = []
    for event in incident.events:
        if (event.text("runbook"), event.text("step")) != (runbook, step):
            continue
        if event.kind == Kind.ACTION and not event.data.get("verifies"):
            out = [*deeds([*out, event])]
        elif event.kind == Kind.STEP and event.text("state") != StepState.DOING:
            out.clear()
    return tuple(out)
