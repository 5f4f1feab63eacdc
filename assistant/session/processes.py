"""Which processes are known: whether a pid that somebody said is one, what each is called, and which others may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from knowledge.observation import Scope, Status, Subject
from knowledge.text import excerpt

if TYPE_CHECKING:
    from rules.factbase import FactBase


class Process(NamedTuple):
    """A process that something is known of."""

    pid: int
    name: str = ""  # cleaned, short


def pid_known(facts: FactBase, pid: int) -> bool:
    """Whether anything is known about process `pid`."""
    return any(s.id == str(pid) for s in facts.subjects(Scope.PROCESS))


def on_gpus(facts: FactBase, limit: int = 8) -> tuple[Process, ...]:
    """Processes that use a GPU, those that hold the most of its memory first: who asks mostly means one of them."""
    out = []
    for subject in facts.subjects(Scope.PROCESS):
        if not subject.id.isdigit() or not any(
            facts.of(name, subject) for name in ("process.uses_gpu", "process.uses_mig")
        ):
            continue
        held = facts.current("process.gpu_memory", subject)
        size = held.value if held is not None and held.status is Status.OK and isinstance(held.value, int) else 0
        out.append((-size, int(subject.id), _called(facts, subject)))
    return tuple(Process(pid, name) for _, pid, name in sorted(out)[:limit])


def pid_suggestions(facts: FactBase, limit: int = 8) -> tuple[str, ...]:
    """Processes that may be meant, for people: ``4242 (python)``."""
    return tuple(f"{pid} ({name})" if name else str(pid) for pid, name in on_gpus(facts, limit))


def command_of(facts: FactBase, subject: Subject) -> str:
    """The command line of a process as far as it is told; empty when it is not."""
    found = facts.current("process.command", subject)
    return found.value if found is not None and found.status is Status.OK and isinstance(found.value, str) else ""


def script_of(facts: FactBase, subject: Subject) -> str:
    """The script or module that a Python process runs, without its folder: ``train.py``; empty for what is no Python."""
    interpreter, *words = command_of(facts, subject).split() or [""]
    if not interpreter.rpartition("/")[2].startswith("python"):
        return ""
    if "-m" in words[:-1]:
        return excerpt(words[words.index("-m") + 1], 40)
    script = next((w for w in words if not w.startswith("-")), "")
    return excerpt(script.rpartition("/")[2], 40) if script.endswith(".py") else ""


def title_of(facts: FactBase, subject: Subject) -> str:
    """``4242 (train.py)``: the pid, and what people call the process."""
    name = script_of(facts, subject) or _called(facts, subject)
    return f"{subject.id} ({name})" if name else subject.id


def _called(facts: FactBase, subject: Subject) -> str:
    for fact in ("process.comm", "process.name", "process.command"):
        found = facts.current(fact, subject)
        if found is not None and found.status is Status.OK and isinstance(found.value, str):
            return excerpt(found.value.rsplit("/", 1)[-1] if fact == "process.name" else found.value, 40)
    return ""
