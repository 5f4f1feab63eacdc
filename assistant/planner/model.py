"""What a plan is made of. Plain data: the session keeps it, the dialogue shows it."""

from __future__ import annotations

from enum import Enum

from knowledge.language import Text
from knowledge.observation import Scalar, Subject
from knowledge.record import dataclass


class Answer(Enum):
    """What a person can say to a question besides a value."""

    DONT_KNOW = "dont_know"


DONT_KNOW = Answer.DONT_KNOW


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be found out."""

    rules: frozenset[str] | None = None  # ids; None: all
    subjects: frozenset[Subject] = frozenset()  # what it is about; empty: everything
    verdict: bool = False  # only whether it can be used matters
    symptoms: tuple[str, ...] = ()  # ids of knowledge.symptoms
    core: frozenset[str] = frozenset()  # of `rules` those that were asked about, without their causes and effects
    facts: frozenset[str] = frozenset()  # that are to be shown, whatever follows from them
    probes: frozenset[str] = frozenset()  # that were named

    @property
    def everything(self) -> bool:
        """Whether the health of all of it is asked about."""
        return self.rules is None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A probe that can still change the outcome."""

    probe: str
    value: float  # comparable within one plan
    cost: float  # 1: a command that ends within a second
    settles: tuple[tuple[str, str], ...]  # (fact, id of the rule that waits for it)
    consent: bool  # not without asking: it takes its time, or a running job would feel it
    reason: Text
    hinted: bool = False  # something of a rule that waits for it is true already


@dataclass(frozen=True, slots=True)
class Question:
    """What only a person can tell."""

    fact: str
    subject: Subject
    text: Text
    kind: str  # bool, int, float, enum, str
    values: tuple[str, ...]  # of an enum: the words that can be said
    reason: Text  # why it is asked
    rules: tuple[str, ...]  # ids of those that wait for it, the weightiest first
    labels: tuple[tuple[str, Text], ...] = ()  # how a word of `values` is called
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to look at next, and whether to go on at all."""

    probes: tuple[Candidate, ...] = ()  # best first
    batch: tuple[str, ...] = ()  # of them those worth running now, side by side; none needs consent
    questions: tuple[Question, ...] = ()  # best first
    open: tuple[str, ...] = ()  # ids of rules whose outcome can still change
    decided: bool = True  # nothing that can be had unasked would change the answer

    def candidate(self, probe: str) -> Candidate | None:
        """The candidate called `probe`."""
        return next((c for c in self.probes if c.probe == probe), None)


Value = Scalar | tuple[str, ...]
