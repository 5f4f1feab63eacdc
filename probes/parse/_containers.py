"""How a container ended, as its runtime tells it: what `docker inspect` and `docker ps` have in common."""

from __future__ import annotations

from knowledge.observation import Event, Observation, Scalar, Scope, Source, Status, Subject, node
from knowledge.text import excerpt
from probes.base import Context
from probes.parse import _app_exit

ENDED = "job_terminated"


def ended(name: str, code: int, shown: str, context: Context, source: Source, reason: str = "") -> Observation:
    """The end of a container with an exit code, which from 128 on is a signal, as of a shell; `reason` where it is known otherwise."""
    signal = code - 128 if code > 128 else 0
    fields: dict[str, Scalar] = {
        "reason": reason or _app_exit.REASONS.get(signal, "exit_code"),
        "exitcode": code,
        "job": name,
        "message": excerpt(shown, 300),
    }
    if signal:
        fields["signal"] = signal
    subject = Subject(Scope.JOB, name, _document(context))
    return Observation(ENDED, subject, Event(None, fields), Status.OK, source, excerpt=excerpt(shown, 300))


def none_ended(context: Context, source: Source) -> Observation:
    """None of the containers that are shown ended with an error."""
    return Observation(ENDED, _document(context), None, Status.NONE_SEEN, source)


def _document(context: Context) -> Subject:
    return Subject(Scope.DOCUMENT, context.source, node(context.host))
