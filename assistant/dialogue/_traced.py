"""What an answer is given from: traces or a capture of a job, or a machine. Cheap to ask; what answers about traces is imported when one was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant import traced

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.reply import Reply


def has_traces(d: Diagnosis) -> bool:
    """Whether a trace or a capture of a job was read."""
    return any(name.startswith(("trace.", "capture.")) for name in d.facts.facts)


def only_traces(d: Diagnosis) -> bool:
    """Whether all that was found is about how a job spends its time."""
    return traced.only(d.roots)


def bottleneck(turn: Turn) -> Reply | None:
    """The answer to a question that names a bottleneck or a remedy, from what was recorded of the job; None for any other."""
    if turn.diagnosis is None or not has_traces(turn.diagnosis):
        return None
    if turn.query.slots.kernel or turn.query.slots.operator:
        from assistant.dialogue._kernel import answer as about

        if (named := about(turn)) is not None:
            return named
    from assistant.dialogue._bottleneck import answer

    return answer(turn)
