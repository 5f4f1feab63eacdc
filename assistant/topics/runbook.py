"""Runbooks, as a kind of thing to explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.render.sheet import Sheet
from knowledge.errors import UsageError

KIND = "runbook"
HELP = "a runbook: what to do, step by step"


def names() -> Iterable[str]:
    """Ids of all runbooks."""
    from knowledge.runbook import all_runbooks

    return (b.id for b in all_runbooks())


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one runbook."""
    from assistant.commands.runbook import page

    if len(words) != 1:
        raise UsageError("runbook takes one id", hint="gpudiag runbook list shows them")
    return page(words[0], lang)
