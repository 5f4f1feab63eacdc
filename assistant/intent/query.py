"""What a sentence was understood to ask.

A `Query` is data: who answers it looks at its intent, its slots and its topics, never at the words again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple

from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation
from knowledge.record import dataclass

PASTED = "the message"  # the source of what was read from lines within a sentence


class Intent(StrEnum):
    """What somebody wants. The names are those of DESIGN section 3."""

    EXPLAIN = "explain"  # what a code, a word, a number means: answered from knowledge alone
    DIAGNOSE = "diagnose"  # what is wrong, or why is it so
    VERDICT = "verdict"  # can it be used: yes, no, or not yet
    FIX = "fix"  # what to do about a named problem, or how to set something
    PROBE = "probe"  # show a value, look at something
    HISTORY = "history"  # what happened before
    RUNBOOK = "runbook"  # the steps
    COST = "cost"  # money
    HELP = "help"  # what can be asked
    UNKNOWN = "unknown"  # not understood, or not our business

    # Follow-ups: about the last answer.
    WHY = "why"  # the chain of rules that led to it
    EVIDENCE = "evidence"  # the observations that it rests on
    CONFIDENCE = "confidence"  # how sure it is, and what would make it surer
    WHATIF = "whatif"  # the same with other facts or thresholds
    WHYNOT = "whynot"  # why something else was not concluded
    RERUN = "rerun"  # look again, and show what changed
    RETARGET = "retarget"  # the same question about something else
    ALTERNATIVES = "alternatives"  # what else it could be
    NEXT = "next"  # what to do, or to look at, now
    CONFIRM = "confirm"
    DENY = "deny"
    CANCEL = "cancel"
    UNDO = "undo"  # back to before the last turn
    EXPORT = "export"  # write the answer to a file
    WHICH = "which"  # which GPU, process, rank, node is to blame, or may be used
    EVENTS = "events"  # what was logged, in the order of time, in what was given
    SUMMARY = "summary"  # the whole in a few rows, for a ticket or somebody else
    CAUSE = "cause"  # whether it is hardware or software


# Wishes that whole phrases alone decide: nothing is learned about them from examples.
BY_PHRASE = frozenset({Intent.WHICH, Intent.EVENTS, Intent.SUMMARY, Intent.CAUSE})

FOLLOW_UPS = frozenset(Intent) - {
    Intent.EXPLAIN, Intent.DIAGNOSE, Intent.VERDICT, Intent.FIX, Intent.PROBE, Intent.HISTORY, Intent.RUNBOOK,
    Intent.COST, Intent.HELP, Intent.UNKNOWN,
}  # fmt: skip


class Slots(NamedTuple):
    """What a sentence names. Numbers are numbers where the thing has one."""

    xid: tuple[int, ...] = ()
    sxid: tuple[int, ...] = ()
    pid: tuple[int, ...] = ()
    process: tuple[str, ...] = ()  # "train.py", "vllm"
    gpu: tuple[int | str, ...] = ()  # index, PCI address (canonical) or UUID
    node: tuple[str, ...] = ()  # a name, or a node set as written: "gpu[001-064]"
    rank: tuple[int, ...] = ()
    job: tuple[str, ...] = ()
    since: tuple[str, ...] = ()  # "2h", "7d", "yesterday", "14:00", "2026-11-20"
    file: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()  # of a trace, by its name or the beginning of it
    operator: tuple[str, ...] = ()  # "aten::mm"

    def named(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The slots that are filled."""
        return ((name, value) for name, value in zip(self._fields, self, strict=True) if value)


class Topic(NamedTuple):
    """Something that knowledge has a page about. `id` is what stands behind ``gpudiag explain``: ``xid 79``."""

    id: str
    score: float  # comparable within one query only
    title: Text = NO_TEXT

    @property
    def kind(self) -> str:
        """``xid`` of ``xid 79``."""
        return self.id.partition(" ")[0]

    @property
    def name(self) -> str:
        """``79`` of ``xid 79``."""
        return self.id.partition(" ")[2]


class Assumed(NamedTuple):
    """One "what if": a fact, or a rule's parameter (``rule-id.param``), with the value as it was said."""

    name: str
    value: str
    op: str = "is"  # is, above, below, none (nothing of the kind had been seen)
    of: str = ""  # whose, where no slot has a name for such a thing: ``port mlx5_0/1``


class Compared(NamedTuple):
    """Two values that a sentence holds against each other, in the unit that people say of the quantity."""

    quantity: str  # the id of a `knowledge.compared.Quantity`
    value: float
    other: float
    kind: str  # what the other is: a `knowledge.compared.Against`
    of: tuple[str, str] = (
        "",
        "",
    )  # the thing in question, its kind and its name: ("gpu", "6"); nothing where nobody named it
    others: tuple[str, ...] = ()  # of peers one name each, "" where nobody named it
    written: tuple[float, ...] = ()  # both as they were written


@dataclass(frozen=True, slots=True)
class Query:
    """One sentence, understood."""

    text: str  # as it was said, cleaned of what cannot be seen
    lang: str  # the language to answer in: en or zh
    intent: Intent
    slots: Slots = field(default_factory=Slots)
    topics: tuple[Topic, ...] = ()  # best first
    symptoms: tuple[str, ...] = ()  # ids of `knowledge.symptoms`, best first
    facts: tuple[str, ...] = ()  # names of facts that are asked about
    assumed: tuple[Assumed, ...] = ()  # of a what-if
    observations: tuple[Observation, ...] = ()  # of log lines and codes within the sentence, origin told
    asks: str = ""  # the part of it that asks, where the rest states something
    unread: tuple[str, ...] = ()  # what it states as so and that is no fact here: word for word
    compared: tuple[Compared, ...] = ()  # values that it holds against those of peers, what they should be or were
    fine: tuple[str, ...] = ()  # what it says to be in order without a value: "no XIDs", "the driver is fine"
    pasted: bool = False  # whether lines of a log stood in it
    fixed: tuple[tuple[str, str], ...] = ()  # typos: as written, as read
    echo: Text = NO_TEXT  # "diagnose slow training, pid 4242"
    unsure: bool = False  # several topics are as likely: show them, ask one question
    general: bool = False  # whether it is asked in general, of no machine, and no page answers it
    page: str = ""  # the page that its wording asks for without a name: "term busy-and-working"
    also: tuple[Query, ...] = ()  # what else the message asks, each by itself: "... and do I need an RMA?"

    @property
    def follows_up(self) -> bool:
        """Whether it is about the last answer."""
        return self.intent in FOLLOW_UPS

    def plain(self) -> Mapping[str, Any]:
        """The key `query` of the JSON of a diagnosis."""
        return {
            "text": self.text,
            "lang": self.lang,
            "intent": str(self.intent),
            "slots": {name: list(value) for name, value in self.slots.named()},
            "topics": [t.id for t in self.topics],
            "symptoms": list(self.symptoms),
            "facts": list(self.facts),
            "assumed": [a._asdict() for a in self.assumed],
            "compared": [
                {**c._asdict(), "of": list(c.of), "others": len(c.others), "written": list(c.written)}
                for c in self.compared
            ],
            "not_taken_as_fact": list(self.unread),
            "said_to_be_fine": list(self.fine),
            "fixed": [list(pair) for pair in self.fixed],
            "unsure": self.unsure,
            "also": [q.text for q in self.also],
            "echo": self.echo.in_(self.lang),
        }


def of_process(query: Query) -> bool:
    """Whether it is asked what certain processes do, which no reading of a whole machine tells. What a line that somebody
    pasted names ran wherever that line was written."""
    asked = query.intent in (Intent.DIAGNOSE, Intent.PROBE) and bool(query.slots.pid or query.slots.process)
    return asked and not any(o.source.call == PASTED for o in query.observations)
