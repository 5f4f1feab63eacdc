"""A rule as the engine sees it: one file, checked and with its conditions built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, overload

from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Scope
from knowledge.record import dataclass
from knowledge.units import parse_duration
from rules.condition import Condition

FACT = lazy(r"\{([a-z0-9_.]{1,100})\}")  # a fact whose value stands there


class Severity(StrEnum):
    """How bad it is, from least to worst."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info up to 3 for critical."""
        return list(Severity).index(self)


class RuleStatus(StrEnum):
    """Where a rule stands in its life."""

    DRAFT = "draft"
    STABLE = "stable"
    RETIRED = "retired"


class Bucket(StrEnum):
    """What to do, in NVIDIA's words where they exist (Xid catalogue, Resolution Buckets), ours otherwise."""

    IGNORE = "IGNORE"
    RESTART_APP = "RESTART_APP"
    RESTART_VM = "RESTART_VM"
    RESTART_FM = "RESTART_FM"
    RESET_GPU = "RESET_GPU"
    DRAIN_AND_RESET = "DRAIN_AND_RESET"
    RESTART_BM = "RESTART_BM"
    CHECK_MECHANICALS = "CHECK_MECHANICALS"
    CHECK_UVM = "CHECK_UVM"
    WORKFLOW_NVLINK_ERR = "WORKFLOW_NVLINK_ERR"
    WORKFLOW_NVLINK5_ERR = "WORKFLOW_NVLINK5_ERR"
    XID_154_EVAL = "XID_154_EVAL"
    UPDATE_SWFW = "UPDATE_SWFW"
    CONTACT_SUPPORT = "CONTACT_SUPPORT"
    CHANGE_SETTING = "CHANGE_SETTING"
    FIX_CODE = "FIX_CODE"
    TUNE_JOB = "TUNE_JOB"
    INSPECT_NETWORK = "INSPECT_NETWORK"
    ASK_PLATFORM = "ASK_PLATFORM"
    MONITOR = "MONITOR"


class Risk(StrEnum):
    """What an action does to running work."""

    SAFE = "safe"
    DISRUPTIVE = "disruptive"
    DESTRUCTIVE = "destructive"


RESTARTS = (
    Bucket.DRAIN_AND_RESET,
    Bucket.RESET_GPU,
    Bucket.RESTART_VM,
    Bucket.RESTART_BM,
)  # each does what those before it do


class Usable(StrEnum):
    """Whether the thing can go on being used. Impaired: it runs, slowly or without what it would fall back on; give it nothing new."""

    YES = "yes"
    IMPAIRED = "impaired"
    NOT_YET = "not_yet"
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """0 for yes up to 4 for no: the worst of several is what an answer says."""
        return ("yes", "unknown", "impaired", "not_yet", "no").index(self.value)

    @property
    def stops(self) -> bool:
        """Whether it is not to be used now."""
        return self in (Usable.NOT_YET, Usable.NO)


@dataclass(frozen=True, slots=True)
class Param:
    """A threshold that a site may set, within bounds. The predicate itself never changes."""

    name: str
    type: str  # duration, int, float
    default: Any
    min: Any = None
    max: Any = None
    unit: str = ""

    def problem(self, value: Any) -> str:
        """Why `value` cannot be used; empty when it can."""
        try:
            number = self.number(value)
            low = self.number(self.min) if self.min is not None else number
            high = self.number(self.max) if self.max is not None else number
        except (TypeError, ValueError):
            return f"{value!r} is not a {self.type}"
        if not low <= number <= high:
            return f"{value} is outside {self.min} .. {self.max}"
        return ""

    def number(self, value: Any) -> float:
        """`value` as a number: ns for durations."""
        if self.type == "duration":
            return parse_duration(str(value))
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or (self.type == "int" and not isinstance(value, int))
        ):
            raise TypeError(self.type)
        return value


class Effect(StrEnum):
    """What becomes of a finding that another one explains."""

    STAYS = "stays"  # it counts as if it stood alone: a cause mends nothing by being known
    ENDS = "ends"  # there is nothing left of it to care about


class Cure(StrEnum):
    """What ends a fault."""

    RESET = "reset"  # of the GPU
    RELOAD = "reload"  # of the driver
    REBOOT = "reboot"  # of the node
    REPLACE = "replace"  # of the part; no log tells of it


SLACK = 2 * 10**9  # ns that a cause may be printed after its effect: log lines of one burst race


@dataclass(frozen=True, slots=True)
class Explains:
    """This rule's finding can be the cause of another's."""

    rule: str = ""  # id of the effect; empty with `by`
    by: str = ""  # a named relation of a catalogue: "xid_catalogue"
    on: str = "self"  # self: the same subject, its parts or what it is part of; node: anything on the node
    via: tuple[Scope, ...] = ()
    same: tuple[str, ...] = ()  # fields in which an event of the effect must agree with one of the cause
    within: int = 180 * 10**9  # ns; a burst in NVIDIA's Fleet Intelligence ends after 3 minutes of silence
    effect: Effect | None = None  # None: it stays, and nobody had to say so: the effect is no graver than the cause
    because: Text = NO_TEXT  # why it ends
    late: int = (
        SLACK  # ns that the cause may be printed after its effect: who waits may be told before what he waits for
    )


@dataclass(frozen=True, slots=True)
class ImpactSpec:
    """Which facts of the finding's subject tell how much time it explains."""

    share: str  # a number in percent
    window: str = ""  # the s that it is a share of; empty: the rule tells no seconds
    of: Text = NO_TEXT  # what the share is of: "the traced window"
    hours: str = ""  # the GPU-hours that a day like this loses; empty: the rule tells none


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """What the rule advises: a static bucket, or resolvers that are asked in order."""

    bucket: Bucket | None = None
    resolve: tuple[str, ...] = ()
    text: Text = NO_TEXT
    command: str = ""
    risk: Risk | None = None
    runbook: str = ""
    then: tuple[Text, ...] = ()
    again: Text = NO_TEXT  # what to do when it is seen again after what should have cured it; else what the bucket says
    confirm: Text = NO_TEXT  # what shows that it is over, once something has cured it
    again_bucket: Bucket | None = None  # the word for that, whatever it came back after
    usable: Usable | None = None
    until: Text = NO_TEXT  # when `usable` is not_yet: reads after "Not usable until"
    impairs: str = ""  # the speed that is lost, in percent: from half of it on the finding is an error that impairs


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One case of the rule's own tests."""

    name: str
    given: Mapping[str, Any]
    expect: str  # matched, not_matched, unknown
    grade: str = ""
    bucket: str = ""
    count: int | None = None


NOTHING_KNOWN = "None known."  # of a rule's false positives


IN_BRACKETS = lazy(r"\s*[(（][^()（）]*\{[^()（）]*[)）]")
_AT_THE_END = lazy(r"\s*[:：][^:：]*\{[^:：]*$")  # ": {reason}"


def bare_title(title: Text, rule_id: str) -> Text:
    """A rule's title while nothing fills it in: without brackets and an end that hold a field, else the id in words."""
    bare = Text(*(_AT_THE_END.sub("", IN_BRACKETS.sub("", title.in_(lang))) for lang in ("en", "zh")))
    return bare if "{" not in bare.en + bare.zh else Text(rule_id.replace("-", " "), rule_id)


@dataclass(frozen=True, slots=True)
class Rule:
    """A problem, how it is recognised, what it explains and what to do about it."""

    id: str
    revision: int
    title: Text
    status: RuleStatus
    severity: Severity
    scope: Scope
    when: Condition
    why: Text
    file: str = ""
    area: str = ""
    symptoms: tuple[str, ...] = ()
    applies: Mapping[str, Any] = field(default_factory=dict)
    params: tuple[Param, ...] = ()
    confirms: tuple[Condition, ...] = ()
    excludes: tuple[Condition, ...] = ()
    explains: tuple[Explains, ...] = ()
    impact: ImpactSpec | None = None
    names: Text = (
        NO_TEXT  # what the finding's title ends with once the facts in it are known: "in {stack.hot.function}"
    )
    leads: Text = NO_TEXT  # figures ahead of the title: "busy {gpu.work.busy} %[, working {gpu.work.share} %]"
    shows: tuple[str, ...] = ()  # facts that decide nothing and stand under the finding when they are known
    split_by: str = ""  # event field: one finding for each of its values
    severity_from: str = ""  # event field that holds the severity
    leaves_open: bool = (
        False  # what was seen is not the whole: while it holds, that nothing wrong was found is no answer
    )
    consequence: bool = (
        False  # what somebody notices: where its cause is known too, it is told first and the cause behind it
    )
    xid: int | None = None  # the XID this rule is about; split_by: code fills it in otherwise
    cured_by: tuple[Cure, ...] | None = None  # what ends it; None: what its action says (`cured_by` of the bucket)
    uncured: Text = NO_TEXT  # why nothing that a log tells ends it
    action: ActionSpec = field(default_factory=ActionSpec)
    false_positives: Text = NO_TEXT
    references: tuple[str, ...] = ()
    tests: tuple[RuleTest, ...] = ()

    @property
    def name(self) -> Text:
        """See `bare_title`."""
        return bare_title(self.title, self.id)

    @property
    def mistaken(self) -> Text:
        """What the finding is mistaken for; empty where nobody knows of anything."""
        return NO_TEXT if self.false_positives.en == NOTHING_KNOWN else self.false_positives


def facts_named(text: str) -> tuple[str, ...]:
    """The facts whose values a text fills in: ``in {stack.hot.function}``."""
    return tuple(dict.fromkeys(FACT.findall(text)))


class Rules(Sequence[Rule]):
    """The shipped rules in order of their ids, each built when somebody looks at it.

    A rule of which no fact is known can never hold, and most answers know the facts of few. `asks` names the facts
    that a rule's `when` mentions, `back` the rules that look back in time.
    """

    def __init__(
        self, ids: Iterable[str], build: Callable[[str], Rule], asks: Mapping[str, Iterable[str]], back: Iterable[str],
        cards: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        self._ids, self._build = sorted(ids), build
        self._back = sorted(back)
        self.cards: Mapping[str, Mapping[str, Any]] = cards or {}  # see rules.index
        self._built: dict[str, Rule] = {}
        self._asking: dict[str, list[str]] = {}  # ids by fact
        for name in self._ids:
            for fact in asks[name]:
                self._asking.setdefault(fact, []).append(name)

    def _one(self, rule_id: str) -> Rule:
        if rule_id not in self._built:
            self._built[rule_id] = self._build(rule_id)
        return self._built[rule_id]

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Rule, ...]: ...
    def __getitem__(self, index: int | slice) -> Rule | tuple[Rule, ...]:
        if isinstance(index, slice):
            return tuple(self._one(name) for name in self._ids[index])
        return self._one(self._ids[index])

    def __len__(self) -> int:
        return len(self._ids)

    def named(self, rule_id: str) -> Rule:
        """The rule with this id. KeyError without one."""
        return self._one(rule_id)

    def about(self, facts: frozenset[str]) -> list[Rule]:
        """Those whose `when` mentions one of `facts`."""
        return [self._one(name) for name in sorted({name for fact in facts for name in self._asking.get(fact, ())})]

    def looking_back(self) -> list[Rule]:
        """Those with a condition on a fact over time."""
        return [self._one(name) for name in self._back]


def looking_back(rules: Iterable[Rule]) -> Iterable[Rule]:
    """Of `rules` at least those that look back in time."""
    return rules.looking_back() if isinstance(rules, Rules) else rules
