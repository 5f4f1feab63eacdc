"""What is to be run: a step's command with its values, where, and what it may cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum

from knowledge.errors import UsageError
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.runbook import Risk, Runbook, Step, fill, placeholders

TIMEOUT = 120 * 10**9  # ns that a command has, where its step says nothing
# Programs that reach a machine by its name: where they are run says nothing about where they act.
_ANYWHERE = frozenset({"scontrol", "sinfo", "squeue", "sacct", "kubectl", "ipmitool"})
_NAMING = frozenset({"node", "bmc", "pod", "job"})


class Manner(StrEnum):
    """How a command comes to be run."""

    YES = "yes"
    """After one yes."""
    TYPED = "typed"
    """After the node's name was typed."""
    SHOWN = "shown"
    """By a person: it is shown, and never run here."""


@dataclass(frozen=True, slots=True)
class Order:
    """One command that is to be run."""

    runbook: str
    step: str
    argv: tuple[str, ...]
    node: str
    risk: Risk
    consent: str
    timeout: int = TIMEOUT  # ns
    incident: int = 0
    rounds: int = 1
    verifies: bool = False  # it is the command that shows whether the step worked
    before: Text = NO_TEXT  # that it may have run already, and nobody knows how that ended

    @property
    def what(self) -> str:
        """Its name in policies and in the journal."""
        return f"step:{self.runbook}/{self.step}"


def manner(risk: Risk) -> Manner:
    """What a command of this risk asks for."""
    return {Risk.SAFE: Manner.YES, Risk.DISRUPTIVE: Manner.TYPED}.get(risk, Manner.SHOWN)


def missing(command: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Placeholders for which there is no usable value."""
    return placeholders(fill(command, values))


def by_name(command: str) -> bool:
    """Whether the command names the machine or the work that it acts on, so that it may be run from anywhere."""
    words = command.split()
    return bool(words) and words[0] in _ANYWHERE and not _NAMING.isdisjoint(placeholders(command))


def order(book: Runbook, step: Step, values: Mapping[str, str], node: str, incident: int = 0, rounds: int = 1) -> Order:
    """The order for a step's command. UsageError while a placeholder has no value, and for a step without a command."""
    if not step.command:
        raise UsageError(f"step {book.id}/{step.id} has no command: it is done by hand")
    if lacking := missing(step.command, values):
        raise UsageError(f"step {book.id}/{step.id} lacks {', '.join(lacking)}")
    argv = tuple(shlex.split(fill(step.command, values)))
    return Order(
        book.id, step.id, argv, node, step.risk, str(step.consent), step.timeout or TIMEOUT, incident, rounds
    )  # fmt: skip


def checking(book: Runbook, step: Step, values: Mapping[str, str], node: str, incident: int = 0) -> Order:
    """The order for the command that shows whether a step worked: it only reads. UsageError while a placeholder has no value."""
    if lacking := missing(step.verify_command, values):
        raise UsageError(f"the check of step {book.id}/{step.id} lacks {', '.join(lacking)}")
    argv = tuple(shlex.split(fill(step.verify_command, values)))
    return Order(book.id, step.id, argv, node, Risk.SAFE, "none", incident=incident, verifies=True)
