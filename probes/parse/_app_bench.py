"""What the parsers of benchmark outputs share: the facts that every run has."""

from __future__ import annotations

from knowledge.observation import Scope, Subject
from probes.base import Line
from probes.parse import _active_facts
from probes.parse._app_emit import Emitter

COMMON = _active_facts.COMMON


def named(emit: Emitter, name: str, line: Line | None) -> None:
    """Which benchmark the text is the output of."""
    emit.fact("benchmark.name", emit.document, name, line.number if line else None, line.text if line else "")


def completed(emit: Emitter, done: bool, line: Line | None) -> None:
    """Whether the run came to its end, by what its last lines say."""
    emit.fact("benchmark.completed", emit.document, done, line.number if line else None, line.text if line else "")


def failed(emit: Emitter, line: Line) -> None:
    """What the benchmark says went wrong, in its own words."""
    emit.fact("benchmark.error", emit.document, line.text.strip()[:300], line.number, line.text)


def part(emit: Emitter, name: str, parent: Subject | None = None) -> Subject:
    """One row or test of a run."""
    return Subject(Scope.OBJECT, name, parent or emit.document)


def decimal(text: str) -> float | None:
    """`text` as a number; None for ``N/A`` and everything else that is not one."""
    if len(text) > 40:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value - value == 0 else None  # neither infinite nor NaN
