"""Answers to understood sentences: one module an intent, found by folder scan.

A module is called as its intent (``why.py``; a trailing underscore where Python needs one) and has
``answer(turn) -> Reply``, a pure function. What needs probes, files or the history is fetched by the session
before: a module never does I/O beyond reading what is shipped.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.intent.query import Intent, Query
    from assistant.planner import Plan
    from assistant.reply import Reply
    from assistant.session.state import Pending
    from rules.engine import Finding
    from rules.loader import RuleSet


@dataclass(frozen=True, slots=True)
class Turn:
    """What an answer is given from."""

    query: Query
    lang: str
    ruleset: RuleSet
    diagnosis: Diagnosis | None = None  # what is known, once something was looked at or told
    base: Query | None = None  # the question that the talk is about, for follow-ups
    focus: str = ""  # id of the finding that the talk is about
    plan: Plan | None = None  # what could still change the outcome, of `base`
    host: str = ""  # the node that can be looked at from here
    recalled: Sequence[Any] = ()  # of the history, for questions about it
    before: Diagnosis | None = None  # what the look before said (after "again"), or the earlier of two captures
    pending: Pending | None = None  # what the person is being asked
    far: str = ""  # the other machine that is looked at from here

    @property
    def check(self) -> str:
        """The command that looks at the whole machine."""
        return f"gpudiag check --host {self.far}" if self.far else "gpudiag check"

    @property
    def finding(self) -> Finding | None:
        """The finding that the talk is about: the one in focus, else the worst about what was asked about.

        None when there is none, and when the question was about a symptom for which nothing found is to blame.
        """
        d, base = self.diagnosis, self.base
        if d is None:
            return None
        found = {f.id: f for f in (*d.findings, *d.ruled_out)}
        if self.focus in found:
            return found[self.focus]
        if base is not None and base.symptoms:
            return None
        pool = (*d.roots, *d.findings)
        if base is not None:
            from assistant.dialogue._scope import scoped

            about = scoped(d, base.slots)
            pool = about.about if about.narrow else pool
        return pool[0] if pool else None


class Answerer(Protocol):
    """A module of this folder."""

    def answer(self, turn: Turn) -> Reply:
        """The answer to the turn's query."""


def answerer(intent: Intent) -> Answerer:
    """The module that answers `intent`."""
    import keyword

    name = f"{intent}_" if keyword.iskeyword(intent) else str(intent)
    module: Answerer = importlib.import_module(f"{__name__}.{name}")  # a module is the protocol
    return module
