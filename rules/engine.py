"""The engine: a pure function of rules, facts and a time.

For each rule and each subject of its scope the condition is evaluated with its proof; what
holds becomes a finding with a grade; findings then explain each other, so that one root
cause stands above its symptoms. Nothing here reads a clock, a file or the order of its input.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from math import isfinite
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from knowledge.facts import vocabulary
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import AT_LEAST, Clock, Event, Observation, Origin, Scope, Status, Subject, Value, how_many
from knowledge.record import dataclass
from knowledge.text import excerpt
from rules.condition import EventLeaf, facts_of
from rules.disputes import worlds
from rules.evaluate import evaluate
from rules.factbase import FactBase
from rules.life import FAILED, Life, age, before, life_of, moment, past_tense, span, speaks
from rules.model import (
    FACT,
    IN_BRACKETS,
    SLACK,
    Bucket,
    Effect,
    Explains,
    Rule,
    Rules,
    RuleStatus,
    Severity,
    Usable,
    facts_named,
)
from rules.proof import Missing, Proof, Truth, conjunction, deciding, evidence, leaf_proofs
from rules.resolve import Advice, Case, advise, buckets
from rules.values import follow

_NAMED = 140  # characters of one value in a title
_QUOTED = 160  # of a message of a tool
_FIELD_NAME = lazy(r"\{([a-z_]+)\}")
_OWN_CLOCKS = (Clock.BOOT, Clock.MONOTONIC, Clock.TRACE)  # start with a machine


class Grade(StrEnum):
    """How sure a finding is."""

    CONFIRMED = "confirmed"
    PROBABLE = "probable"
    POSSIBLE = "possible"
    RULED_OUT = "ruled_out"


@dataclass(frozen=True, slots=True)
class Impact:
    """How much of the time a finding explains: what would be won at most if it were mended."""

    share: float  # 0..1
    seconds: float | None
    of: Text  # what the share is of
    hours: float | None = None  # GPU-hours that a day like this loses at most


class Role(StrEnum):
    """Whether another finding explains this one."""

    ROOT = "root"
    SYMPTOM = "symptom"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that holds for a subject."""

    id: str
    rule: Rule
    subject: Subject
    severity: Severity
    grade: Grade
    proof: Proof
    events: tuple[Observation, ...]
    because: tuple[Observation, ...]
    missing: tuple[Missing, ...]
    advice: Advice
    xid: int | None = None
    role: Role = Role.ROOT
    explains: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    may_explain: tuple[str, ...] = ()
    ended: bool = False  # what explains it takes all of it away (`effect: ends` in its file)
    figures: Mapping[str, float] = field(default_factory=dict)  # the facts of the rule's `leads` that are known
    behind: bool = False  # a finding that counts explains all of it: that one leads
    against: tuple[Observation, ...] = ()  # what other sources say that contradicts it
    impact: Impact | None = None
    ending: Text = NO_TEXT  # the rule's `names` with its facts filled in; empty when one of them is not known
    life: Life | None = None  # what ended it, or what it came back after
    age: Text = NO_TEXT  # how long ago it was when its log ended, where that is long

    @property
    def count(self) -> int:
        """How many events it stands on."""
        return how_many(self.events)

    @property
    def past(self) -> bool:
        """Whether something has cured it since: it is to be confirmed, and forbids nothing by itself."""
        return self.life is not None and not self.life.again

    @property
    def counts(self) -> bool:
        """Whether verdict and exit code stand on it: of warning or worse, at least probable, a symptom too.

        That a cause is known mends nothing, so more evidence never makes an answer milder; only what has ended with its
        cause (a preempted job's ranks that failed) is over.
        """
        # A grave event has happened: that what could confirm it says otherwise takes nothing back, unless that look is
        # the later one, and then it is past.
        happened = bool(self.events) and (self.past or self.severity.rank >= Severity.ERROR.rank)
        sure = self.grade in (Grade.CONFIRMED, Grade.PROBABLE) or (self.grade is Grade.POSSIBLE and happened)
        return sure and self.severity is not Severity.INFO and not self.ended

    @property
    def program(self) -> Program | None:
        """The one process that did it: where the action is the program's, and every event names the same one."""
        if self.advice.bucket not in _OF_PROGRAMS or not self.events:
            return None
        return program_of(self.events)

    @property
    def told(self) -> bool:
        """Whether it stands on nothing but what a person said."""
        origins = {o.origin for o in (*self.events, *self.because)}
        return Origin.TOLD in origins and origins <= {Origin.TOLD, Origin.DERIVED}

    @property
    def title(self) -> Text:
        """The rule's title with {code} and event fields filled in, what the rule `names`, and what became of it."""
        return self.titled(NO_TEXT)

    def titled(self, place: Text, program: Program | None = None) -> Text:
        """The title with `place`, which says of many like things which one it is, and the `program` that did it."""
        title, became = self._filled, self.life.words if self.life is not None else self.age
        if self.past:
            title = Text(past_tense(title.en), title.in_("zh"))
        if place:
            title = Text(
                _aside(title.en, f" ({place.en})", f": {place.en}"),
                _aside(title.in_("zh"), f"（{place.zh}）", f"：{place.zh}"),
            )
        if self.ending:
            title = Text(f"{title.en}: {self.ending.en}", f"{title.in_('zh')}：{self.ending.in_('zh')}")
        if self.against:
            title = Text(f"{title.en} (sources disagree)", f"{title.in_('zh')}（各来源说法不一）")
        if program is not None and f"pid {program.pid}" not in title.en and program.words.en not in title.en:
            title = Text(f"{title.en} in {program.words.en}", f"{title.in_('zh')}，程序为 {program.words.zh}")
        return Text(f"{title.en}{became.en}", f"{title.in_('zh')}{became.zh}") if became else title

    @property
    def _filled(self) -> Text:
        title = self.rule.title
        if "{" not in title.en and "{" not in title.zh:
            return title
        fields = _words(self)
        spec = vocabulary().get(self.events[0].fact) if self.events else None
        called = {
            name: spec.labels[word]
            for name, word in fields.items()
            if spec and isinstance(word, str) and word in spec.labels
        } | {name: _least(value) for name, value in fields.items() if fields.get(f"{name}_at_least")}
        rate, when = _rate(self), _when(self)
        en, zh = (_fill(title.in_(lang), {"rate": rate.in_(lang) if rate else "", "when": when,
                                          **fields, **{k: v.in_(lang) for k, v in called.items()}})
                  for lang in ("en", "zh"))  # fmt: skip
        return _spaced(Text(f"A{en[1:]}" if en.startswith("at least ") else en, zh))

    @property
    def times(self) -> tuple[int | None, int | None]:
        """First and last time of its events, of the clock that the first one carries."""
        timed = [o for o in self.events if o.at is not None]
        if not timed:
            return None, None
        same = [o.at for o in timed if o.clock is timed[0].clock and o.at is not None]
        return min(same), max(same)


class Program(NamedTuple):
    """A process as the lines of a log name it."""

    name: str  # may be empty
    pid: int | None  # None: several processes of one program

    @property
    def words(self) -> Text:
        """``python3 (pid 4242)``."""
        if self.pid is None:
            return Text(self.name)
        if not self.name:
            return Text(f"pid {self.pid}", f"进程 {self.pid}")
        return Text(f"{self.name} (pid {self.pid})", f"{self.name}（进程 {self.pid}）")


def program_of(events: Iterable[Observation]) -> Program | None:
    """The process that all `events` name, or the program of which all their processes are; None where they differ."""
    named = {(o.value.get("process"), o.value.get("pid")) for o in events if isinstance(o.value, Event)}
    pids = {pid for _, pid in named}
    names = sorted({name for name, _ in named if isinstance(name, str) and name and name[0] != "<"})
    if len(pids) == 1 and isinstance(pid := next(iter(pids)), int):
        return Program(names[0] if len(names) == 1 else "", pid)
    one = len(names) == 1 and all(name == names[0] for name, _ in named)
    return Program(names[0], None) if one else None


_OF_PROGRAMS = (Bucket.RESTART_APP, Bucket.FIX_CODE, Bucket.TUNE_JOB)


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule of which something is true, but too much is unknown to conclude."""

    rule: Rule
    subject: Subject
    proof: Proof
    because: tuple[Observation, ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that the rules say about the facts."""

    findings: tuple[Finding, ...]
    ruled_out: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    rules_tried: int = 0


# The plan of a turn asks again what its diagnosis asked: of each fact base the last evaluation, which its diagnosis holds anyway.
_EVALUATED: WeakKeyDictionary[FactBase, tuple[Iterable[Rule], Evaluation]] = WeakKeyDictionary()


def run(rules: Iterable[Rule], facts: FactBase) -> Evaluation:
    """Evaluate all rules that mention anything known.

    Where sources contradict each other, what holds if only one of them is right is found too, and no more than probable.
    """
    if isinstance(rules, Rules | tuple) and (known := _EVALUATED.get(facts)) is not None and known[0] is rules:
        return known[1]
    found, undecided, tried = _tried(rules, facts)
    live = {f.id: f for f in found if f.grade is not Grade.RULED_OUT}
    for world in worlds(facts):
        disputed, _, _ = _tried(rules, world)
        for f in disputed:
            if f.grade is not Grade.RULED_OUT:
                live.setdefault(f.id, _disputed(f, facts))
    ruled_out = tuple(f for f in found if f.grade is Grade.RULED_OUT and f.id not in live)
    findings = tuple(rank(_in_line(relate(list(live.values()), facts))))
    result = Evaluation(findings, ruled_out, tuple(undecided), tried)
    _EVALUATED[facts] = rules, result
    return result


def _tried(rules: Iterable[Rule], facts: FactBase) -> tuple[list[Finding], list[Undecided], int]:
    """What each rule finds of each subject, what it leaves undecided, and how many were asked."""
    found: list[Finding] = []
    undecided: list[Undecided] = []
    tried = 0
    for rule in sorted(_about(rules, facts.facts), key=lambda r: r.id):
        if rule.status is RuleStatus.RETIRED:
            continue
        for subject in facts.subjects(rule.scope):
            if not applies(rule, subject, facts):
                continue
            tried += 1
            proof = evaluate(rule.when, subject, facts)
            if proof.truth is Truth.TRUE:
                found.extend(_findings(rule, subject, proof, facts))
            elif proof.truth is Truth.UNKNOWN and _has_true_leaf(proof):
                e = evidence(proof)
                if not e.missing:  # nothing that could be read would decide it
                    continue
                undecided.append(Undecided(rule, subject, proof, e.observations, e.missing))
    return found, undecided, tried


def _disputed(f: Finding, facts: FactBase) -> Finding:
    """`f`, which holds if one of the sources is right: probable at most, with what the others say."""
    said = [(o, other) for o in f.because for other in facts.disputes.get((o.fact, o.subject), ())]
    grade = Grade.PROBABLE if f.grade is Grade.CONFIRMED else f.grade
    return replace(f, grade=grade, against=tuple(other for o, other in said if other.value != o.value))


_LATER = Text(
    "Restart the application once the GPU is well again: the other step for it comes first.",
    "待该 GPU 恢复后再重启应用程序：先执行针对它的另一步骤。",
)


def _in_line(findings: Sequence[Finding]) -> list[Finding]:
    """No GPU needs nothing beside something that keeps it from being used: the milder step follows the other one."""
    kept_from = [
        f.subject for f in findings if f.counts and f.advice.usable.stops and f.advice.bucket not in _OF_PROGRAMS
    ]
    ill = {g for s in kept_from if (g := s.up(Scope.GPU)) is not None}
    mild = buckets()[Bucket.RESTART_APP].text
    return [
        replace(f, advice=replace(f.advice, text=_LATER))
        if f.advice.text == mild and f.subject.up(Scope.GPU) in ill
        else f
        for f in findings
    ]


def _about(rules: Iterable[Rule], known: frozenset[str]) -> Iterable[Rule]:
    if isinstance(rules, Rules):
        return rules.about(known)
    return (r for r in rules if facts_of(r.when) & known)


def applies(rule: Rule, subject: Subject, facts: FactBase) -> bool:
    """False only when the subject is known to be of another kind: of another architecture, or made by another vendor."""
    for key, fact in (("arch", "gpu.architecture"), ("vendor", "gpu.vendor")):
        wanted = rule.applies.get(key)
        wanted = [wanted] if isinstance(wanted, str) else wanted
        if not wanted:
            continue
        seen = facts.read_up(fact, subject)[1]
        if (
            seen is not None
            and seen.status is Status.OK
            and str(seen.value).lower() not in [str(a).lower() for a in wanted]
        ):
            return False
    return True


def _has_true_leaf(proof: Proof) -> bool:
    return any(p.truth is Truth.TRUE and any(o.status is Status.OK for o in p.observations) for p in leaf_proofs(proof))


def _findings(rule: Rule, subject: Subject, proof: Proof, facts: FactBase) -> list[Finding]:
    confirms = [evaluate(c, subject, facts) for c in rule.confirms]
    excludes = [evaluate(c, subject, facts) for c in rule.excludes]
    grade = grade_of([c.truth for c in confirms], [e.truth for e in excludes])
    events = _own_events(proof, subject)
    seen = evidence(proof, *confirms, *(excludes if grade is Grade.RULED_OUT else []))
    gaps = evidence(*confirms, *excludes).missing
    groups = _split(rule, events)
    known = {name: _figure(name, subject, facts) for name in facts_named(rule.leads.en)}
    figures = {name: value for name, value in known.items() if value is not None}
    elsewhere = {id(o) for o in events} if len(groups) > 1 else set()  # events of the other findings
    shown, impact, ending = _shown(rule, subject, facts), impact_of(rule, subject, facts), _ending(rule, subject, facts)
    out = []
    for key, group in groups:
        own = {id(o) for o in group}
        others = [o for o in seen.observations if id(o) in own or id(o) not in elsewhere]
        others += [o for o in shown if id(o) not in {id(x) for x in others}]
        case = Case(rule, subject, group, facts)
        advice = advise(case)
        severity = severity_of(rule, group, advice)
        doubts = _doubts(confirms) if grade is Grade.POSSIBLE else []
        held = grade is not Grade.RULED_OUT
        life = life_of(case, advice.bucket, _states(proof, confirms, advice), doubts) if held else None
        if life is not None:
            severity, advice = life.severity(severity), life.advice(advice, case)
        long_ago = age(group, facts) if held and severity is not Severity.INFO else NO_TEXT
        if long_ago and life is None and advice.bucket in _OF_PROGRAMS and advice.usable is Usable.YES:
            severity = Severity.INFO  # of a program that was at fault a day ago and more nothing is left to do here
        name = f"{rule.id}:{key}" if key else rule.id
        out.append(
            Finding(
                f"{name}@{_place(subject)}",
                rule,
                subject,
                severity,
                grade,
                proof,
                tuple(group),
                tuple(others),
                gaps,
                advice,
                _xid(rule, group, key),
                impact=impact,
                ending=ending or _often(proof, group),
                figures=figures,
                life=life,
                age=long_ago,
            )
        )
    return out


def _doubts(confirms: Iterable[Proof]) -> list[Observation]:
    """What was looked at to confirm a finding, and does not."""
    return [o for c in confirms for p in leaf_proofs(c) if p.truth is Truth.FALSE for o in p.observations]


def _states(proof: Proof, confirms: Sequence[Proof], advice: Advice) -> list[Observation]:
    """What speaks for a finding beside the events that it is about: states, and whatever confirms it."""
    true = [p for p in deciding(proof) if not isinstance(p.leaf, EventLeaf)]
    for confirm in confirms:
        if confirm.truth is Truth.TRUE:
            true += [p for p in deciding(confirm) if not (isinstance(p.leaf, EventLeaf) and p.leaf.negated)]
    seen = [o for p in true if p.truth is Truth.TRUE for o in p.observations]
    return [o for o in (*seen, *advice.because) if speaks(o)]


def _ending(rule: Rule, subject: Subject, facts: FactBase) -> Text:
    """What the rule `names`, for titles; programs chose the words in it, so they are cut to a length that can be read."""
    known: dict[str, Text] = {}
    for name in facts_named(rule.names.en):
        o = facts.read_up(name, subject)[1]
        if o is not None and o.status is Status.OK and (word := excerpt(_plain(o.value), _NAMED)):
            least = o.detail.startswith(AT_LEAST)
            known[name] = _least(word) if least else facts.vocabulary[name].labels.get(word, Text(word))
    return _spaced(filled_in(rule.names, known))


def _least(number: object) -> Text:
    return Text(f"at least {number}", f"至少 {number}")


def _spaced(said: Text) -> Text:
    """`said` without the blank that stood ahead of a bare number."""
    return Text(said.en, said.zh.replace(" 至少", "至少"))


_PART = lazy(r"\[([^\[\]]*)\]")


def filled_in(template: Text, known: Mapping[str, Text]) -> Text:
    """`names` or `leads` with its facts. Of a part in brackets that form stands of which all facts are known (``[{a} of {b}|{a}]``),
    or none; where one outside of brackets is not known, nothing is said."""

    def known_part(part: re.Match[str]) -> str:
        return next((form for form in part[1].split("|") if known.keys() >= set(facts_named(form))), "")

    def said(lang: str) -> str:
        parts = _PART.sub(known_part, template.in_(lang))
        whole = known.keys() >= set(facts_named(parts))
        return FACT.sub(lambda m: known[m[1]].in_(lang), parts) if whole else ""

    return Text(said("en"), said("zh"))


def lead(findings: Sequence[Finding]) -> Text:
    """The figures ahead of the title of one rule's findings, of several their ranges: ``busy 99 %, working 6 to 9 %``."""
    return ranges(findings[0].rule.leads, [f.figures for f in findings])


def ranges(template: Text, each: Sequence[Mapping[str, float]]) -> Text:
    """`template` with the figures of several things, each as one number or from the least to the most."""
    known: dict[str, Text] = {}
    for name in each[0]:
        if all(name in figures for figures in each):
            ends = sorted(figures[name] for figures in each)
            least, most = _plain(ends[0]), _plain(ends[-1])
            known[name] = Text(least) if least == most else Text(f"{least} to {most}", f"{least} 至 {most}")
    return filled_in(template, known)


def _often(proof: Proof, events: Sequence[Observation]) -> Text:
    """How often in what time, for titles of what is a finding because it comes back."""
    counted = any(isinstance(p.leaf, EventLeaf) and p.leaf.at_least > 1 and p.leaf.gap for p in deciding(proof))
    times = [o.at for o in events if o.at is not None]
    if not counted or len(times) < 2 or len({o.clock for o in events}) > 1:
        return NO_TEXT
    long = span(max(times) - min(times))
    return Text(f"{len(times)} times in {long.en}", f"{long.zh}内 {len(times)} 次")


def _plain(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return "" if value is None else str(value)


def _shown(rule: Rule, subject: Subject, facts: FactBase) -> list[Observation]:
    """What is known of the facts that the rule shows beside its proof."""
    named = (n for n in facts_named(rule.names.en) if n not in rule.shows)
    wanted = dict.fromkeys((*named, *rule.shows, *facts_named(rule.leads.en)))
    found = (facts.read_up(name, subject)[1] for name in wanted)
    return [o for o in found if o is not None and o.status is Status.OK]


def impact_of(rule: Rule, subject: Subject, facts: FactBase) -> Impact | None:
    """How much time a finding of `rule` about `subject` explains; None when the rule or the facts do not tell."""
    spec = rule.impact
    if spec is None or (share := _figure(spec.share, subject, facts)) is None:
        return None
    whole = _figure(spec.window, subject, facts) if spec.window else None
    share = min(1.0, max(0.0, share / 100))  # facts give shares in percent
    hours = _figure(spec.hours, subject, facts) if spec.hours else None
    return Impact(share, share * whole if whole is not None else None, spec.of, hours)


def _figure(fact: str, subject: Subject, facts: FactBase) -> float | None:
    o = facts.read_up(fact, subject)[1]
    known = o is not None and o.status is Status.OK and isinstance(o.value, int | float) and isfinite(o.value)
    return float(o.value) if known and o is not None and isinstance(o.value, int | float) else None


def _place(subject: Subject) -> str:
    """A subject's part of a finding's id: unique, because parts carry what they are part of."""
    if subject.scope is Scope.NODE:
        return subject.id or "node"
    above = subject.parent
    if above is not None and above.scope is not Scope.NODE:
        return f"{_place(above)}/{subject.scope}{subject.id}"
    return f"{subject.host}/{subject.id}" if subject.host else subject.id


def grade_of(confirms: Sequence[Truth], excludes: Sequence[Truth]) -> Grade:
    """DESIGN section 4: grades, not certainty arithmetic."""
    if Truth.TRUE in excludes:
        return Grade.RULED_OUT
    if not confirms or Truth.TRUE in confirms:
        return Grade.CONFIRMED
    return Grade.PROBABLE if all(c is Truth.UNKNOWN for c in confirms) else Grade.POSSIBLE


def _own_events(proof: Proof, subject: Subject) -> list[Observation]:
    """Events that the deciding, plain event leaves of a proof stand on, those of the subject itself if any."""
    seen: dict[int, Observation] = {}
    for p in deciding(proof):
        if p.truth is Truth.TRUE and isinstance(p.leaf, EventLeaf) and not p.leaf.negated:
            for o in p.observations:
                if isinstance(o.value, Event):
                    seen.setdefault(id(o), o)
    events = sorted(
        seen.values(), key=lambda o: (o.clock, o.at if o.at is not None else -1, o.source.call, o.source.line or 0)
    )
    own = [o for o in events if subject in o.subject.ancestors()]
    return own or events


def _split(rule: Rule, events: list[Observation]) -> list[tuple[str, list[Observation]]]:
    if not rule.split_by:
        return [("", events)]
    groups: dict[str, list[Observation]] = {}
    for o in events:
        assert isinstance(o.value, Event)
        groups.setdefault(str(o.value.get(rule.split_by)), []).append(o)
    return sorted(groups.items())


def severity_of(rule: Rule, events: Sequence[Observation], advice: Advice) -> Severity:
    """The rule's, or the worst that its events carry; what keeps a thing from being used is no mere information, and
    what takes half of its speed is an error."""
    severity = rule.severity
    if rule.severity_from:
        words = [o.value.get(rule.severity_from) for o in events if isinstance(o.value, Event)]
        known = [Severity(w) for w in words if isinstance(w, str) and w in list(Severity)]
        severity = max(known, key=lambda s: s.rank, default=severity)
    hinders = advice.usable.rank >= Usable.IMPAIRED.rank
    if hinders and rule.action.impairs:
        return max(severity, Severity.ERROR, key=lambda s: s.rank)
    return Severity.WARNING if hinders and severity is Severity.INFO else severity


def _xid(rule: Rule, events: Sequence[Observation], key: str) -> int | None:
    if rule.xid is not None:
        return rule.xid
    if rule.split_by == "code" and key.isdigit() and events and events[0].fact in ("xid", "xid_implied"):
        return int(key)
    return None


def _words(finding: Finding) -> dict[str, object]:
    for o in finding.events:
        if isinstance(o.value, Event):
            return {**o.value.fields, "code": o.value.code}
    return {}


def _rate(finding: Finding) -> Text:
    """How many events in how much time, ``14 in 6 min``; nothing of a single one."""
    count, (first, last) = finding.count, finding.times
    if count < 2:
        return NO_TEXT
    if len(finding.events) == 1:
        return Text(f"{count:,} in one record", f"一条记录 {count:,} 次")
    if first is None or last is None or any(o.at is None for o in finding.events):
        return Text(f"{count:,} in all", f"共 {count:,} 次")
    took = span(max(last - first, 10**9))
    return Text(f"{count:,} in {took.en}", f"{took.zh}内 {count:,} 次")


def _when(finding: Finding) -> str:
    """The date of the latest event to the minute, as its log tells it; empty without one."""
    dated = [o for o in finding.events if o.at is not None]
    return moment(max(dated, key=lambda o: o.at or 0)).removesuffix(" UTC") if dated else ""


def _fill(template: str, fields: dict[str, object]) -> str:
    """The fields of an event put in; brackets around one that it does not tell are left out."""
    for group in IN_BRACKETS.findall(template):
        if not all(fields.get(name) for name in _FIELD_NAME.findall(group)):
            template = template.replace(group, "")
    for name, value in fields.items():
        told = excerpt(value, _QUOTED) if isinstance(value, str) else str(value if value is not None else "-")
        template = template.replace("{" + name + "}", told)
    return template


def _aside(title: str, bracketed: str, bare: str) -> str:
    """`title` with an aside; behind one that ends with brackets it needs none of its own."""
    return f"{title}{bare if title[-1:] in ')）' else bracketed}"


# --- causes -------------------------------------------------------------------------------


def relate(findings: Sequence[Finding], facts: FactBase) -> list[Finding]:
    """Causes and effects. An effect all of whose events a cause covers becomes a symptom."""
    edges: dict[str, set[str]] = {f.id: set() for f in findings}  # cause -> effects
    causes: dict[str, set[str]] = {f.id: set() for f in findings}  # effect -> causes
    maybe: dict[str, set[str]] = {f.id: set() for f in findings}
    covered: dict[str, set[int]] = {f.id: set() for f in findings}
    ended: dict[str, set[int] | None] = {f.id: None for f in findings}
    ordered = sorted(findings, key=_causal_order)
    reachable = _Reachable(ordered)
    for cause in ordered:
        if cause.grade is Grade.POSSIBLE and not cause.past:
            continue
        times, behind = moments(cause), _leading_to(cause.id, causes)  # no edge from the cause adds to what leads to it
        for effect in reachable.by(cause):
            link = _link(cause, effect, facts) if effect.id not in behind else None
            if link is None:
                continue
            hit = _lasting(cause, effect, covers(times, effect, link.within, link.late))
            if hit is None:
                continue
            if not link.sure or not accounts_for(cause, effect):
                maybe[cause.id].add(effect.id)
                continue
            edges[cause.id].add(effect.id)
            causes[effect.id].add(cause.id)
            covered[effect.id] |= hit
            if link.becomes is Effect.ENDS:
                ended[effect.id] = (ended[effect.id] or set()) | hit
    out = []
    for f in findings:
        every, over = set(range(len(f.events))), ended[f.id]
        explained = bool(causes[f.id]) and covered[f.id] >= every
        out.append(
            replace(
                f,
                role=Role.SYMPTOM if explained else Role.ROOT,
                explains=tuple(sorted(edges[f.id])),
                explained_by=tuple(sorted(causes[f.id])),
                may_explain=tuple(sorted(maybe[f.id])),
                ended=over is not None and over >= every,
            )
        )
    counting = {f.id for f in out if f.counts}
    return [
        replace(f, behind=True) if f.role is Role.SYMPTOM and not counting.isdisjoint(f.explained_by) else f
        for f in out
    ]


def _lasting(cause: Finding, effect: Finding, hit: set[int] | None) -> set[int] | None:
    """Of the effect's events that the cause can have led to those that are not later than what ended the cause.

    What holds now has no cause that is over.
    """
    if cause.life is None or cause.life.again or hit is None:
        return hit
    cure = cause.life.cure
    return {i for i in hit if not before(cure, effect.events[i])} or None


def accounts_for(cause: Finding, effect: Finding) -> bool:
    """False when the cause explains so much less time than its effect that most of the effect would stay without it."""
    if cause.impact is None or effect.impact is None:
        return True
    return 2 * cause.impact.share >= effect.impact.share


class _Reachable:
    """Findings by rule and place, so that a cause is held against those it can reach and not against all.

    Of a hundred GPUs with seventeen codes each there are millions of pairs on one node.
    """

    def __init__(self, ordered: Sequence[Finding]) -> None:
        self._place = {f.id: i for i, f in enumerate(ordered)}
        # Of a rule, or of all with an XID: those of a subject, and those of what is part of it as well
        self._at: dict[tuple[str, Subject], list[Finding]] = defaultdict(list)
        self._within: dict[tuple[str, Subject], list[Finding]] = defaultdict(list)
        self._every: dict[str, list[Finding]] = defaultdict(list)
        self._failed: dict[int, list[Finding]] = defaultdict(list)
        for f in ordered:
            for sort in (f.rule.id, _WITH_XID) if f.xid is not None else (f.rule.id,):
                self._every[sort].append(f)
                self._at[sort, f.subject].append(f)
                for above in f.subject.ancestors():
                    self._within[sort, above].append(f)
            for o in f.events:
                if o.fact == FAILED:
                    self._failed[id(o)].append(f)

    def by(self, cause: Finding) -> list[Finding]:
        """Every finding that an entry of the cause's `explains` may mean, in causal order."""
        found: dict[str, Finding] = {}
        if cause.life is not None and cause.life.failed:
            found.update({f.id: f for f in self._failed[id(cause.life.cure)]})
        if cause.xid is not None:  # it may be graver than what led to it
            found.update({f.id: f for f in self._at.get((_WITH_XID, cause.subject), ())})
        for e in cause.rule.explains:
            found.update({f.id: f for f in self._meant(e, cause.subject)})
        return sorted(found.values(), key=lambda f: self._place[f.id])

    def _meant(self, e: Explains, subject: Subject) -> Iterator[Finding]:
        """Those that lie where the entry reaches: along relations, on the same node, or above and below."""
        sort = _WITH_XID if e.by else e.rule
        if e.via:
            yield from self._every.get(sort, ())
        elif e.on == "node":
            here = subject.up(Scope.NODE)
            yield from self._within.get((sort, here), ()) if here is not None else ()
        else:
            yield from self._within.get((sort, subject), ())
            for above in subject.ancestors():
                yield from self._at.get((sort, above), ())


_WITH_XID = ""  # in place of the id of a rule


def _causal_order(f: Finding) -> tuple[int, int, float, bool, bool, int, bool, str]:
    """Severity, then the strength of the action; among equals what carries an XID names the device itself, and what tells how much is
    lost now stands before what tells that something is near a limit.

    Findings that tell how much time they explain count as tuning, whatever is to be changed; those that explain more
    stand before those that explain less. Of two without a time, what may take the node down stands before what slows it.
    """
    first = f.times[0]
    strength = buckets()[f.advice.bucket if f.impact is None else Bucket.TUNE_JOB].strength
    share = f.impact.share if f.impact is not None else 0.0
    at, slows = first if first is not None else 0, "crash" not in f.rule.symptoms
    return (-f.severity.rank, -strength, -share, f.xid is None, not f.figures, at, slows, f.id)


def _leading_to(effect: str, causes: Mapping[str, set[str]]) -> set[str]:
    """The finding itself, its causes, and what caused those."""
    stack, seen = [effect], set[str]()
    while stack:
        here = stack.pop()
        if here not in seen:
            seen.add(here)
            stack.extend(causes[here])
    return seen


class _Link(NamedTuple):
    """How a cause may explain an effect."""

    sure: bool
    within: int  # ns, from the cause to its effect
    late: int  # ns that the cause may be told after its effect
    becomes: Effect | None = None  # of the effect


def _link(cause: Finding, effect: Finding, facts: FactBase) -> _Link | None:
    """How `cause` may explain `effect`, or None. Any entry that is sure counts."""
    perhaps: _Link | None = None
    if _outweighs(effect, cause):
        return None
    if _outweighs(cause, effect):  # what is told first because it is graver may be later, by as much
        within = max(e.within for e in effect.rule.explains if _names(e, effect, cause))
        return _Link(True, within, within)
    if cause.life is not None and cause.life.failed and any(o is cause.life.cure for o in effect.events):
        return _Link(True, cause.life.cure.at or 0, SLACK)  # the cause says itself that the reset failed
    rule = effect.rule.id
    for e in cause.rule.explains:
        # Of a hundred GPUs there are ten thousand pairs, each with thirty entries: most name another rule.
        if not (e.rule == rule or e.by) or not _names(e, cause, effect):
            continue
        tied = conjunction([_agrees(e, cause, effect), _tied(e, cause, effect, facts)])
        if tied is Truth.TRUE:
            return _Link(True, e.within, e.late, e.effect)
        if tied is Truth.UNKNOWN and perhaps is None:
            perhaps = _Link(False, e.within, e.late, e.effect)
    return perhaps


def _tied(e: Explains, cause: Finding, effect: Finding, facts: FactBase) -> Truth:
    """Whether the effect lies where the entry reaches: along relations, on the same node, or above and below."""
    a, b = cause.subject, effect.subject
    if e.via:
        ends, broken = follow(a, e.via, facts)
        if b in ends:
            return Truth.TRUE
        return Truth.UNKNOWN if broken and b.scope is e.via[-1] else Truth.FALSE
    if e.on == "node":
        here = a.up(Scope.NODE)
        return Truth.TRUE if here is not None and here == b.up(Scope.NODE) else Truth.FALSE
    return Truth.TRUE if a in b.ancestors() or b in a.ancestors() else Truth.FALSE


def _agrees(e: Explains, cause: Finding, effect: Finding) -> Truth:
    """Whether each event of the effect has, in the fields `same`, what some event of the cause has.

    Two lines that both lack a field do not agree in it: nobody knows.
    """

    def keys(f: Finding) -> set[tuple[object, ...]]:
        return {tuple(o.value.get(name) for name in e.same) for o in f.events if isinstance(o.value, Event)}

    if not e.same:
        return Truth.TRUE
    ours, theirs = keys(cause), keys(effect)
    told = {key for key in theirs if None not in key}
    if told <= ours:
        return Truth.TRUE if told == theirs else Truth.UNKNOWN
    return Truth.UNKNOWN if any(None in key for key in ours) else Truth.FALSE


def _names(e: Explains, cause: Finding, effect: Finding) -> bool:
    if e.rule:
        return e.rule == effect.rule.id and not _hides(cause, effect)
    if e.by == "xid_catalogue" and cause.xid is not None and effect.xid is not None:
        from knowledge.catalog.xid import xid

        entry = xid(cause.xid)
        return entry is not None and effect.xid in entry.explains and not _hides(cause, effect)
    return False


def _outweighs(grave: Finding, mild: Finding) -> bool:
    """Whether of one fault of a GPU the consequence is the graver line: then it leads, and its action is the answer.

    A double-bit error (XID 48) waits for running work; that it was not contained (95) is more specific and does not wait. The
    driver's own order (154) and the removal of a channel (43, 45) are no faults of their own; of a repair that failed (64)
    beside XID 48 NVIDIA's workflow says to drain and reset.
    """
    if grave.subject != mild.subject or grave.xid is None or mild.xid is None or grave.rule.id in _FOLLOWS:
        return False
    strengths = buckets()[grave.advice.bucket].strength, buckets()[mild.advice.bucket].strength
    if grave.severity.rank < mild.severity.rank or strengths[0] <= strengths[1]:
        return False
    return any(_names(e, mild, grave) for e in mild.rule.explains)


_FOLLOWS = frozenset(
    {"recovery-action-changed", "channel-preemptive-removal", "channel-reset-by-software", "row-remap-write-failed"}
)


def _hides(cause: Finding, effect: Finding) -> bool:
    """True when a code that asks for nothing would stand above one that asks for something.

    Of XID 144 with XID 48, NVIDIA's table ignores the former because the latter carries the action.
    """
    both = cause.xid is not None and effect.xid is not None
    return both and cause.advice.bucket is Bucket.IGNORE and buckets()[effect.advice.bucket].strength > 0


Timeline: TypeAlias = tuple[Clock, str]
_SPREAD = 1000  # of a folded burst: so many moments at most


def moments(cause: Finding) -> Mapping[Timeline, Sequence[int]]:
    """When the cause's events happened, in order, by what makes times comparable; empty when nobody knows.

    Those that one event stands for are taken to lie evenly in its window.
    """
    times: dict[Timeline, list[int]] = {}
    for c in cause.events:
        if c.at is None:
            return {}
        begin = c.window[0] if c.times > 1 and c.window is not None else c.at
        step = max(1, (c.at - begin) // min(c.times, _SPREAD))
        times.setdefault(_timeline(c), []).extend((c.at, *range(c.at - step, begin, -step)))
    for known in times.values():
        known.sort()
    return times


def covers(causes: Mapping[Timeline, Sequence[int]], effect: Finding, within: int, late: int) -> set[int] | None:
    """Indices of the effect's events that a cause with these `moments` can have led to; None when none can.

    A cause is told at most `late` after its effect. Where clocks cannot be compared nothing speaks against it. Findings
    without events hold the whole time.
    """
    if not effect.events:
        return set()
    if len(causes) != 1:
        return set(range(len(effect.events)))
    ((timeline, known),) = causes.items()
    hit = set()
    for i, e in enumerate(effect.events):
        if e.at is not None and _timeline(e) == timeline:
            first = bisect_left(known, e.at - within)
            if first == len(known) or known[first] > e.at + late:
                continue
        hit.add(i)
    return hit or None


def _timeline(o: Observation) -> Timeline:
    """What makes times comparable: the clock, and for those that start with a machine the machine."""
    return o.clock, o.subject.host if o.clock in _OWN_CLOCKS else ""


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Roots first, then by severity, by the strength of the action, by the time explained, by time, by name."""
    return sorted(findings, key=lambda f: (f.role is Role.SYMPTOM, *_causal_order(f)))


def what_if(rules: Sequence[Rule], facts: FactBase, overlay: Iterable[Observation]) -> Evaluation:
    """The evaluation with hypothetical observations laid over the facts; `facts` is not touched.

    What was derived is derived again, from the facts as they would be.
    """
    from knowledge.derive import derive

    base = [k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED]
    extra = [replace(o, origin=Origin.HYPOTHETICAL) for o in overlay]
    return run(rules, FactBase(derive([*base, *extra]), facts.vocabulary, facts.as_of, ages=facts.ages))
