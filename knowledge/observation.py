"""Observations: what was seen, where, when, by what, or why it could not be seen.

Everything that the rules conclude rests on these values. An observation is never a bare
number: it carries its subject, its status, its time with the clock it was read from, and
the raw text that a person can check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from knowledge.record import dataclass


class Scope(StrEnum):
    """What kind of thing a subject is."""

    CLUSTER = "cluster"
    RACK = "rack"
    SWITCH = "switch"
    NODE = "node"
    GPU = "gpu"
    MIG = "mig"
    NVSWITCH = "nvswitch"
    NIC = "nic"
    PORT = "port"
    LINK = "link"
    PCI = "pci"
    PROCESS = "process"
    CONTAINER = "container"
    POD = "pod"
    JOB = "job"
    RANK = "rank"
    COLLECTIVE = "collective"
    OPERATOR = "operator"
    KERNEL = "kernel"
    ITERATION = "iteration"
    DOCUMENT = "document"
    OBJECT = "object"
    TEAM = "team"


class Status(StrEnum):
    """Whether a value was obtained, and if not, why."""

    OK = "ok"
    NONE_SEEN = "none_seen"  # looked at the whole window, found nothing: an answer
    NOT_APPLICABLE = "not_applicable"  # the subject cannot have this property: an answer
    UNSUPPORTED = "unsupported"  # this driver or device does not report it
    DENIED = "denied"  # privilege is missing
    TIMEOUT = "timeout"  # the source did not answer in time
    FAILED = "failed"  # the source answered with an error or with text that is not understood
    STALE = "stale"  # the value is older than the fact allows
    NOT_ASKED = "not_asked"  # nobody looked

    answered: bool  # True when a rule may draw a conclusion from the observation

    def __init__(self, word: str) -> None:
        self.answered = word in ("ok", "none_seen", "not_applicable")


class Origin(StrEnum):
    """Who says so."""

    MEASURED = "measured"
    TOLD = "told"
    DERIVED = "derived"
    HYPOTHETICAL = "hypothetical"


class Clock(StrEnum):
    """Which clock a time was read from. Times of different clocks are never ordered."""

    REALTIME = "realtime"  # UTC
    LOCAL = "local"  # wall clock of a zone that the source does not name
    YEARLESS = "yearless"  # syslog: month and day without a year (stored in the year 2000)
    DAY = "day"  # wall clock of a day that the source does not name: ns since its midnight
    BOOT = "boot"  # seconds since a boot
    MONOTONIC = "monotonic"
    TRACE = "trace"
    NONE = "none"


class Subject(NamedTuple):
    """The thing that an observation is about. A tuple, because the indexes of a diagnosis hash and compare it
    a hundred thousand times.

    `id` is canonical within its parent: a GPU in a slot is its PCI address
    ``dddd:bb:dd.f``, a node its host name (empty when the source does not tell),
    a link its number, a process its pid. `parent` is what it is part of.
    """

    scope: Scope
    id: str
    parent: Subject | None = None

    def ancestors(self) -> Iterator[Subject]:
        """The subject itself, then what it is part of, up to the outermost."""
        here: Subject | None = self
        while here is not None:
            yield here
            here = here.parent

    def up(self, scope: Scope) -> Subject | None:
        """The nearest enclosing subject of `scope` (itself included)."""
        here: Subject | None = self
        while here is not None and here.scope is not scope:
            here = here.parent
        return here

    @property
    def host(self) -> str:
        """Name of the node this is part of; empty when unknown."""
        node = self.up(Scope.NODE)
        return node.id if node else ""

    def __str__(self) -> str:
        if self.scope is Scope.NODE:
            return f"node {self.id}" if self.id else "this node"
        if self.scope is Scope.LINK and self.parent is not None:
            return f"{self.parent} link {self.id}"
        return f"{self.scope} {self.id}"


def node(host: str = "") -> Subject:
    """The node called `host`; an empty name is the node whose name the source does not tell."""
    return Subject(Scope.NODE, host)


def gpu(identifier: str, host: str = "") -> Subject:
    """A GPU by canonical PCI address (see `knowledge.identity`), else UUID, else ``index:N``."""
    return Subject(Scope.GPU, identifier, node(host))


@dataclass(frozen=True, slots=True)
class Source:
    """Where an observation comes from, exactly enough to look again."""

    probe: str  # "kernel-log", "nvidia-smi-q", ...
    call: str = ""  # the file, command, query or NVML call
    line: int | None = None  # 1-based, in `call` when it is a file
    revision: int = 1  # of the parser; a bundle is parsed again when it differs
    order: int = 0  # of several files that tell no time which one it was, in the order in which they were given

    def __str__(self) -> str:
        return f"{self.call}:{self.line}" if self.call and self.line else self.call or self.probe


Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once: the decoded fields of one log line.

    `code` is the number the source prints (XID, SXID, NCCL result); `fields` holds what
    else the line says, under the names that the vocabulary declares for this fact.
    """

    code: int | None = None
    fields: Mapping[str, Scalar] = field(default_factory=dict)

    def get(self, name: str) -> Scalar:
        """The field called `name`; None when the line does not say."""
        return self.code if name == "code" else self.fields.get(name)


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of a gauge or a counter, oldest first. `times` are ns of the observation's clock."""

    times: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values):
            raise ValueError(f"{len(self.times)} times for {len(self.values)} values")
        if any(b < a for a, b in zip(self.times, self.times[1:], strict=False)):
            raise ValueError("times must not decrease")


ANY_TIME = (0, 2**63 - 1)  # the window of an event of which a log that keeps entries for years tells no date

Value: TypeAlias = Scalar | tuple[str, ...] | Event | Series

AT_LEAST = "at least"  # how the detail of a number begins that may be more


@dataclass(frozen=True, slots=True)
class Observation:
    """One fact about one subject, as one source saw it."""

    fact: str
    subject: Subject
    value: Value = None
    status: Status = Status.OK
    source: Source = Source("")
    at: int | None = None  # ns of `clock`
    clock: Clock = Clock.NONE
    # ns of `clock`: for NONE_SEEN what was looked at; for an event without `at`, or one that stands for several, the time in
    # which it happened
    window: tuple[int, int] | None = None
    excerpt: str = ""  # the raw line or field, cleaned of control characters
    detail: str = ""  # why there is no value, when there is none; begins with AT_LEAST where it may be more, and why
    origin: Origin = Origin.MEASURED
    times: int = (
        1  # of an event: how many equal ones, one right behind the other, it stands for; it is the last of them
    )

    def about(self, subject: Subject) -> Observation:
        """The same observation, about another name of the same thing."""
        if subject == self.subject:
            return self
        return Observation(  # three times as fast as `replace`, and every observation of a check is renamed
            self.fact, subject, self.value, self.status, self.source, self.at, self.clock, self.window, self.excerpt,
            self.detail, self.origin, self.times,
        )  # fmt: skip


def how_many(events: Iterable[Observation]) -> int:
    """How many events these stand for."""
    return sum(o.times for o in events)


def latest(samples: Sequence[Observation]) -> Observation:
    """The newest of several observations of one source.

    By time when all carry one clock, else by their place in the file: a capture that holds a
    report with a time stamp and a table without one was written from top to bottom.
    """
    timed = len({o.clock for o in samples}) == 1 and all(o.at is not None for o in samples)
    if timed:
        return max(samples, key=lambda o: (o.at or 0, o.source.line or 0, repr(o.value)))
    return max(samples, key=lambda o: (o.source.line or 0, o.at or 0, repr(o.value)))
