"""From observations to a diagnosis: verdict, ranked findings, what is ruled out, what is missing.

The diagnosis holds data only, in no particular channel's shape; `assistant.render` turns it
into text, Markdown, HTML or the JSON of schema ``gpudiag/diagnosis/1``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Literal

from assistant import looks, traced, undated, vendors
from assistant.exits import Exit
from assistant.intent.query import PASTED
from assistant.render import runs
from assistant.render.labels import at_least, headline, known_as, titled
from assistant.render.meanings import called
from assistant.render.words import our_words
from assistant.render.working import at_work, briefly, changed
from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.identity import UNKNOWN_PCI
from knowledge.language import NO_TEXT, Text
from knowledge.observation import AT_LEAST, Clock, Event, Observation, Origin, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.whole import END_KNOWN, LAYOUT_KNOWN, OF_INPUTS, XID_BESIDE
from rules.engine import Evaluation, Finding, Grade, Role, Undecided, run
from rules.factbase import FactBase
from rules.loader import RuleSet
from rules.model import FACT, RESTARTS, Bucket, Severity, Usable
from rules.resolve import buckets


class State(StrEnum):
    """The health of what was asked about."""

    OK = "ok"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first line of every answer."""

    state: State
    usable: Usable
    until: Text  # when `usable` is not_yet: the condition
    text: Text


@dataclass(frozen=True, slots=True)
class Gap:
    """A fact that a source was asked for and did not give."""

    fact: str
    subject: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what the given sources can tell was really told."""

    asked: int
    answered: int
    denied: tuple[Gap, ...]
    failed: tuple[Gap, ...]


Seen = Literal["live", "recorded", ""]


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked of the observations, where it is no machine's health: what has to be known to say that all is well."""

    facts: tuple[str, ...]  # one of them answers it
    quiet: Text  # what is said when nothing is wrong; facts in braces are filled in
    open: Text  # and when nothing answers: "Who waits for whom is not known"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything there is to say about a set of observations."""

    as_of: int | None  # ns UTC
    ruleset: str
    verdict: Verdict
    events: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    ruled_out: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    coverage: Coverage
    facts: FactBase
    notes: tuple[str, ...] = ()  # what happened to the inputs: truncated, unknown, unreadable
    sources: tuple[str, ...] = ()
    settled: bool = True  # whether the asked question has an answer
    cut: tuple[str, ...] = ()  # inputs that were read only in part, or not at all
    query: Mapping[str, object] | None = field(default=None)
    seen: Seen = ""
    question: Question | None = None

    @property
    def roots(self) -> tuple[Finding, ...]:
        """Findings that nothing found explains, worst first."""
        return tuple(f for f in self.findings if f.role is Role.ROOT)

    @property
    def leads(self) -> tuple[Finding, ...]:
        """What is told and done first: symptoms that forbid more than their causes, then what nothing bad explains, then what
        the driver orders for GPUs that the causes are not about, then the rest of the roots."""
        order = (*forbidding(self.findings), *bad_roots(self.findings), *ordered(self.findings))
        return tuple({f.id: f for f in (*order, *self.roots)}.values())

    @property
    def exit(self) -> Exit:
        """DESIGN section 3."""
        if bad(self.findings):
            return Exit.FINDING
        return Exit.OK if self.settled else Exit.UNDECIDED


def diagnose(
    observations: Iterable[Observation],
    ruleset: RuleSet,
    *,
    notes: Sequence[str] = (),
    sources: Sequence[str] = (),
    cut: Sequence[str] = (),
    as_of: int | None = None,
    whole: bool = False,
    seen: Seen = "",
    question: Question | None = None,
    earlier: Sequence[Observation] = (),
) -> Diagnosis:
    """The diagnosis of `observations`. Pure: the same observations in any order give the same result.

    `as_of` (ns UTC) is the time to judge by; without it the newest UTC time among the
    observations counts, and none when there is no such time. `whole` says that a machine was asked,
    not some outputs of it: then its GPU inventory and its kernel log, if it was asked for them, settle its health.
    `seen`: "live" for a machine that was just looked at, "recorded" for what one told earlier, empty for files.
    `question`: what was asked, where it is not what is wrong with whatever was given.
    `earlier`: what a capture told that a later one replaces (`assistant.sources.Reading.earlier`).
    """
    observations = list(observations)
    batch = derive(observations)
    if as_of is None:
        as_of = max((o.at for o in batch if o.at is not None and o.clock is Clock.REALTIME), default=None)
    facts = FactBase(batch, vocabulary(), as_of, ages=bool(seen))
    result = looks.with_past(run(ruleset.rules, facts), observations, earlier, ruleset, facts)
    result = _without_suppressed(result, ruleset)
    unseen = _unseen(facts) if whole else ()
    # what was cut off may hold anything
    settled = _settled(facts) and not cut and not unseen and not gaps(result.findings)
    settled = settled and (
        _unjudged(facts, seen) is None if question is None else _answered(question, facts) is not None
    )
    return Diagnosis(
        as_of=as_of,
        ruleset=ruleset.fingerprint,
        verdict=verdict_of(result.findings, settled, facts, cut, unseen, question=question, seen=seen),
        events=_events(facts),
        findings=result.findings,
        ruled_out=result.ruled_out,
        undecided=result.undecided,
        coverage=_coverage(facts),
        facts=facts,
        notes=(*notes, *ruleset.notes),
        sources=tuple(sources),
        settled=settled,
        cut=tuple(cut),
        seen=seen,
        question=question,
    )


def about(d: Diagnosis, findings: Sequence[Finding]) -> Diagnosis:
    """The same, with the verdict that follows from those `findings` that are about what was asked; the others stay known to it."""
    judged_ = verdict_of(findings, d.settled, d.facts, d.cut, whole=d.findings, question=d.question, seen=d.seen)
    return replace(d, findings=tuple(findings), ruled_out=(), undecided=(), verdict=judged_)


def _without_suppressed(result: Evaluation, ruleset: RuleSet) -> Evaluation:
    hidden = ruleset.suppressed or {}
    if not hidden:
        return result
    kept = tuple(f for f in result.findings if f.subject.host not in hidden.get(f.rule.id, ()))
    return Evaluation(kept, result.ruled_out, result.undecided, result.rules_tried)


def _settled(facts: FactBase) -> bool:
    """Whether anything was looked at at all: at least one answered observation that was neither told nor remembered."""
    return any(
        k.inner.status.answered
        and k.inner.origin is not Origin.TOLD
        and not k.fact.startswith("log.")
        and k.fact not in OF_INPUTS
        and not k.inner.source.call.startswith("history:")
        for k in facts.observations
    )


UNREACHED = "connection"  # the source of every fact of a machine that could not be reached


# What the health of a machine rests on, with the facts of which one answers it.
_INVENTORY, _KERNEL_LOG = Text("the GPU inventory", "GPU 清单"), Text("the kernel log", "内核日志")
# A table or a scrape that has a reading of each GPU lists them, whether or not it says how many there are.
_LISTED = ("gpu.temperature.core", "gpu.utilization.core", "gpu.memory.used", "gpu.power.draw")
BASE: tuple[tuple[Text, tuple[str, ...]], ...] = (
    (_INVENTORY, ("node.driver.state", "node.gpu.count", "node.pci.gpu_count")),
    (_KERNEL_LOG, ("log.kernel.readable",)),
)
TOLD_BY = {
    _INVENTORY: "nvidia-smi -q",
    _KERNEL_LOG: "dmesg -T",
}  # the command whose output tells a part of the base set


def _unseen(facts: FactBase) -> tuple[Text, ...]:
    """The parts of the base set that were asked for and that nothing told."""
    return tuple(name for name, any_of in BASE if not facts.facts.isdisjoint(any_of) and not _told(name, any_of, facts))


def unread(facts: FactBase) -> tuple[Text, ...]:
    """The parts of the base set that nothing told, whether or not they were asked for: without them nobody says yes."""
    return tuple(name for name, any_of in BASE if not _told(name, any_of, facts))


def _told(name: Text, any_of: Collection[str], facts: FactBase) -> bool:
    return not facts.valued.isdisjoint(any_of) or (name is _INVENTORY and not facts.valued.isdisjoint(_LISTED))


def _undated(facts: FactBase) -> Text | None:
    """Faults of unknown date, where the event log is all that tells of the node's health."""
    return undated.faults(facts) if len(unread(facts)) == len(BASE) else None


def bad(findings: Iterable[Finding]) -> list[Finding]:
    """Those on which verdict and exit code stand."""
    return [f for f in findings if f.counts]


def bad_roots(findings: Iterable[Finding]) -> list[Finding]:
    """Of the bad findings those behind which nothing bad stands: what an answer names first."""
    return [f for f in findings if f.counts and not f.behind]


def gaps(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that say that what was seen is not the whole, worst first, each once."""
    return [f for f in findings if f.rule.leaves_open and f.grade in (Grade.CONFIRMED, Grade.PROBABLE)]


def noticed(findings: Sequence[Finding]) -> list[Finding]:
    """What somebody notices first of what the first bad root has led to: its cause is told behind it.

    Of a chain of such the one that is nearest to the cause: it names the culprit.
    """
    first = bad_roots(findings)[:1]
    by_id, found, todo = {f.id: f for f in findings}, list[Finding](), [*first]
    reached = {f.id for f in first}
    while todo:
        for i in todo.pop(0).explains:
            if i not in reached and i in by_id:
                reached.add(i)
                todo.append(by_id[i])
                found += [by_id[i]] if by_id[i].counts and by_id[i].rule.consequence else []
    worst = max((f.severity.rank for f in found), default=0)
    grave = {f.id: f for f in found if f.severity.rank == worst}
    return [f for f in grave.values() if grave.keys().isdisjoint(f.explained_by)]


def _effect(findings: Sequence[Finding]) -> list[Finding]:
    """What is told ahead of its cause: what forbids more than that, else what is noticed of it."""
    graver, seen = forbidding(findings), noticed(findings)
    return graver if graver and (not seen or _gravity(graver[0]) > _gravity(seen[0])) else seen


def _strength(f: Finding) -> int:
    return buckets()[f.advice.bucket].strength


def _gravity(f: Finding) -> tuple[int, int]:
    return f.advice.usable.rank, f.severity.rank


def forbidding(findings: Sequence[Finding]) -> list[Finding]:
    """Bad findings that forbid more than all the bad roots do, worst first: their action comes before that of the cause.

    A GPU that a power fault has thrown off the bus needs the reboot, and then the power supply. What the driver orders for
    one GPU stands, whatever on another one has led to it.
    """
    roots = bad_roots(findings)
    limit = max((f.advice.usable.rank for f in roots), default=0)
    strongest = max((_strength(f) for f in roots), default=0)
    there = {f.id for f in roots}
    graver = [
        f
        for f in bad(findings)
        if f.id not in there
        and (
            f.advice.usable.rank > limit
            or (f.advice.usable.rank == limit and f.advice.resolver == "recovery154" and _strength(f) > strongest)
        )
    ]
    return sorted((f for f in graver if not any(_covers(g, f) for g in graver)), key=_gravity, reverse=True)


def _covers(cause: Finding, effect: Finding) -> bool:
    """Whether what a finding says and asks for is in what its cause says and asks for."""
    milder = _gravity(effect) <= _gravity(cause) and _strength(effect) <= _strength(cause)
    return cause.id in effect.explained_by and milder


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Symptoms that carry the driver's own order for a GPU for which no bad root asks for as much.

    One link event may explain what another GPU reports; that the other GPU has to be reset stays.
    """
    roots = bad_roots(findings)
    there = {f.id for f in roots}
    strongest: dict[object, int] = {}  # of a subject; of a node, of what it has to be started again for
    for r in roots:
        for key in (r.subject, r.subject.host if r.advice.bucket is Bucket.RESTART_BM else r.subject):
            strongest[key] = max(strongest.get(key, -1), _strength(r))
    out: dict[object, Finding] = {}
    for f in bad(findings):
        if f.id in there or f.advice.resolver != "recovery154":
            continue
        if max(strongest.get(f.subject, -1), strongest.get(f.subject.host, -1)) < _strength(f):
            out.setdefault(f.subject, f)
    return list(out.values())


def verdict_of(
    findings: Sequence[Finding], settled: bool, facts: FactBase, cut: Sequence[str] = (), unseen: Sequence[Text] = (),
    whole: Sequence[Finding] = (), question: Question | None = None, seen: Seen = "",
) -> Verdict:  # fmt: skip
    """State and usability from all bad findings, the words from those that lead.

    `whole`: all that was found, where `findings` are the part that was asked about. Whether a node can be used follows from
    all that is wrong with it, whatever the question was.
    """
    first = bad_roots(findings)
    if not first:
        if cut:
            return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, _beside(facts) or _not_whole(cut, facts))
        if unseen:
            lost_en, lost_zh = " and ".join(t.en for t in unseen), "、".join(t.zh for t in unseen)
            return Verdict(
                State.UNKNOWN,
                Usable.UNKNOWN,
                NO_TEXT,
                Text(
                    f"Cannot say: nothing wrong was seen, but {lost_en} could not be read.",
                    f"无法判断：未发现问题，但无法读取{' ' if lost_zh[:1].isascii() else ''}{lost_zh}。",
                ),
            )
        if open_ := gaps(findings):
            return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, sentence_of(open_, facts))
        if question is not None and _answered(question, facts) is None:
            return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, _why_open(question, facts))
        if question is None and (unjudged := _unjudged(facts, seen)):
            return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, _joined([unjudged, at_work(facts)]))
        if not settled:
            nothing = _one_reason(facts) or Text(
                "Cannot say: nothing usable was read.", "无法判断：没有读到可用的信息。"
            )
            return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, nothing)
        less = _less_than_yes(facts, seen)
        usable = Usable.UNKNOWN if less else Usable.YES
        said = [_filled(question.quiet, facts)] if question is not None else []
        said += [of_trace] if (of_trace := traced.quiet(findings)) else []
        fine = [
            ended(findings, facts),
            _nothing_wrong(facts),
            _over(findings, facts),
            undated.past(facts),
            at_work(facts),
            changed(facts),
            runs.at_work(facts),
            less,
        ]
        return Verdict(State.OK, usable, NO_TEXT, _joined(said or fine))
    found = bad(findings)
    hosts = {f.subject.host for f in found}
    worst = max([*found, *(f for f in bad(whole) if f.subject.host in hosts)], key=_gravity)
    usable = worst.advice.usable
    until = (
        _last_step(worst, (*first, *forbidding(found), *ordered(found))).advice.until
        if usable.rank >= Usable.IMPAIRED.rank
        else NO_TEXT
    )
    less = _less_than_yes(facts, seen) if usable is Usable.YES else None
    if less:  # that a finding leaves the node usable says nothing of what was not read
        usable, less = Usable.UNKNOWN, _not_known(facts, seen)
    absent = no_gpu(facts) and not traced.only(first)
    if absent and usable in (Usable.YES, Usable.UNKNOWN):
        usable, less = Usable.UNKNOWN, Text("Nothing can be said of GPUs here.", "对 GPU 无从判断。")
    words = _headline(first, _effect(findings), usable, until, facts, less)
    if open_ := [f for f in gaps(findings) if f not in found]:
        rest = sentence_of(open_, facts)
        words = Text(f"{words.en} Not the whole: {rest.en}", f"{words.zh}并非全部：{rest.zh}")
    if absent:
        words = Text(f"No GPU is on the bus. {words.en}", f"总线上没有 GPU。{words.zh}")
    return Verdict(judged(found, usable), usable, until, words)


def _not_whole(cut: Sequence[str], facts: FactBase) -> Text:
    """What of the inputs was not read: of one in no known layout nothing was, and that nothing is wrong in it nobody can say."""
    known = {k.inner.source.call: k.fact != LAYOUT_KNOWN for k in facts.observations}
    strange = [name for name in cut if not known.get(name, True)]
    partly = [name for name in cut if name not in strange]
    en, zh = [], []
    if partly:
        en.append(f"{', '.join(partly)} could not be read in full")
        zh.append(f"{', '.join(partly)} 未能完整读取")
    if strange:
        en.append(f"{', '.join(strange)} {'were' if len(strange) > 1 else 'was'} not read: no known layout")
        zh.append(f"{', '.join(strange)} 未被读取：不是已知格式")
    found = ("nothing wrong was found in what could be read, but ", "已读部分未发现问题，但 ")
    before = found if _settled(facts) else ("", "")
    said = Text(f"Cannot say: {before[0]}{', and '.join(en)}.", f"无法判断：{before[1]}{'，且 '.join(zh)}。")
    worlds = [k.inner.detail for k in facts.observations if k.fact == LAYOUT_KNOWN]
    return said if partly else _joined([said, vendors.give_next(worlds)])


def sentence_of(findings: Sequence[Finding], facts: FactBase) -> Text:
    """The first of some findings in a sentence, with how many more there are."""
    same = _alike(findings)
    about, others = [f.subject for f in same], len({f.rule.id for f in findings}) - 1
    said = [
        headline(titled(same), about, lang, named=len(_hosts(facts)) > 1, called=known_as(facts), least=at_least(same))
        for lang in ("en", "zh")
    ]
    more = (f" (+{others} more)", f"（另有 {others} 项）") if others else ("", "")
    return Text(f"{said[0]}{more[0]}.", f"{said[1]}{more[1]}。")


def ended(findings: Sequence[Finding], facts: FactBase) -> Text | None:
    """Why a job ended although nothing is wrong: its time was over, somebody cancelled it."""
    ends = [f for f in findings if f.severity is Severity.INFO and any(o.fact == "job_terminated" for o in f.events)]
    first = [f for f in ends if not f.explained_by] or ends
    return sentence_of(first, facts) if first else None


def _answered(question: Question, facts: FactBase) -> Observation | None:
    """What answers the question; None where nothing does."""
    told = (k.inner for k in facts.observations if k.fact in question.facts and k.inner.status.answered)
    return next((o for o in told if o.status is Status.OK), None)


def _why_open(question: Question, facts: FactBase) -> Text:
    """That the question stays open, with the reason that a source gave."""
    said = (k.inner.detail for k in facts.observations if k.fact in question.facts and k.inner.detail)
    why = excerpt(next(said, ""), 300).rstrip(".")
    en, zh = (our_words(why, lang) for lang in ("en", "zh"))
    return Text(f"{question.open.en}{f': {en}' if why else ''}.", f"{question.open.zh}{f'：{zh}' if why else ''}。")


def _filled(text: Text, facts: FactBase) -> Text:
    """A text with the values of the facts that stand in it in braces; of several subjects from the least to the greatest."""
    known: dict[str, set[float]] = {}
    for k in facts.observations:
        if isinstance(k.inner.value, int | float) and not isinstance(k.inner.value, bool):
            known.setdefault(k.fact, set()).add(float(k.inner.value))

    def value(found: re.Match[str], between: str) -> str:
        here = known.get(found[1], set())
        return between.join(f"{n:g}" for n in sorted({min(here), max(here)})) if here else "?"

    return Text(FACT.sub(lambda m: value(m, " to "), text.en), FACT.sub(lambda m: value(m, " 至 "), text.zh))


def _last_step(worst: Finding, led: Sequence[Finding]) -> Finding:
    """What has to be waited for: where one GPU needs a reset and another one the reboot, the reboot."""
    alike = [f for f in led if f.advice.usable is worst.advice.usable and f.advice.bucket in RESTARTS]
    return max([worst, *alike], key=_strength) if worst.advice.bucket in RESTARTS else worst


def _unjudged(facts: FactBase, seen: Seen) -> Text | None:
    """Why nobody can say that all is well, although nothing wrong was found."""
    if no_gpu(facts):
        return Text("No GPU is on the bus of this node, and nothing else wrong was found.",
                    "该节点总线上没有 GPU，也未发现其他问题。")  # fmt: skip
    # A table that somebody pasted tells what it tells, as NVIDIA's do; who looks at a machine asks for its health.
    blind = None if not seen and vendors.read_by_tool(facts) else vendors.not_judged(facts)
    return _unread_errors(facts) or _beside(facts) or (None if seen else _misread(facts)) or blind or _undated(facts)


def no_gpu(facts: FactBase) -> bool:
    """Whether a machine was asked for its GPUs and has none: what is not there is not healthy."""
    counts = [
        k.inner.value
        for k in facts.observations
        if k.fact == "node.pci.gpu_count" and k.inner.status is Status.OK and not spoken(k.inner)
    ]
    return bool(counts) and not any(counts) and not _seen_gpus(facts)


def _seen_gpus(facts: FactBase) -> int:
    """How many GPUs were seen: one that somebody speaks of may be anywhere, and a piece that names none may be of one of the named."""
    every = [k.inner for k in facts.observations]
    found: set[Subject | None] = set(facts.subjects(Scope.GPU))
    if any(map(spoken, every)):
        found = {o.subject.up(Scope.GPU) for o in every if o.origin is not Origin.DERIVED and not spoken(o)}
    gpus = [s for s in found if s is not None]
    return sum(not s.id.startswith(UNKNOWN_PCI) for s in gpus) or len(gpus)


def spoken(o: Observation) -> bool:
    """Whether somebody said it, or pasted the line into what was said."""
    return o.origin is Origin.TOLD or o.source.call == PASTED


def only_said(facts: FactBase) -> bool:
    """Whether everything that is known was said by a person, or computed from that: no machine was looked at."""
    return all(k.inner.origin is Origin.DERIVED or spoken(k.inner) for k in facts.observations)


def _unread_errors(facts: FactBase) -> Text | None:
    """Drivers that speak of failures in words that no parser knows: nobody may call that fine."""
    lines = [
        k.inner for k in facts.observations if k.fact == "log.driver.errors_not_read" and isinstance(k.inner.value, int)
    ]
    if not lines:
        return None
    n, first = sum(o.value for o in lines if isinstance(o.value, int)), excerpt(lines[0].excerpt, 160)
    least, least_zh = ("at least ", "至少") if any(o.detail.startswith(AT_LEAST) for o in lines) else ("", "")
    return Text(
        f"Cannot say: nothing known is wrong, but {least}{n} error line{'s' if n != 1 else ''} of drivers {'were' if n != 1 else 'was'} not understood, "
        f"first: {first}",
        f"无法判断：未发现已知问题，但有{least_zh} {n} 行驱动错误未被理解，首行：{first}",
    )


def _beside(facts: FactBase) -> Text | None:
    """What a person wrote beside an output tells of an XID: the output alone says nothing of it."""
    said = [k.inner for k in facts.observations if k.fact == XID_BESIDE and k.inner.status is Status.OK]
    if not said:
        return None
    codes = ", ".join(sorted({str(o.value) for o in said}, key=int))
    first = min(said, key=lambda o: (o.source.call, o.source.line or 0))
    return Text(
        f"Cannot say: words that were given tell of XID {codes}, and the kernel log of that time is not here ({excerpt(first.excerpt, 100)}).",
        f"无法判断：所给文字提到 XID {codes}，而当时的内核日志不在其中（{excerpt(first.excerpt, 60)}）。",
    )


def _misread(facts: FactBase) -> Text | None:
    """Values that were printed and not understood: a table whose columns stand elsewhere may hold anything."""
    odd = [
        k.inner
        for k in facts.observations
        if k.inner.status is Status.FAILED and k.inner.detail.startswith("not understood")
    ]
    if not odd:
        return None
    first = min(odd, key=lambda o: (o.source.call, o.source.line or 0, str(o.subject), o.fact))
    n, why = len(odd), excerpt(first.detail, 120)
    en, zh = (f"{called(first.fact, vocabulary(), lang)} {our_words(why, lang)}" for lang in ("en", "zh"))
    return Text(
        f"Cannot say: nothing known is wrong, but {n} printed value{'s were' if n != 1 else ' was'} not understood, first: {en}.",
        f"无法判断：未发现已知问题，但有 {n} 个打印出的值未被理解，首个：{zh}。",
    )


def judged(findings: Sequence[Finding], usable: Usable) -> State:
    """The state that some bad findings mean, of which the worst says `usable`: the two never contradict each other."""
    limits = {Usable.YES: Severity.CRITICAL.rank + 1, Usable.IMPAIRED: Severity.CRITICAL.rank}
    serious = any(f.severity.rank >= limits.get(f.advice.usable, Severity.ERROR.rank) for f in findings)
    return State.UNHEALTHY if serious or usable.stops else State.DEGRADED


def _one_reason(facts: FactBase) -> Text | None:
    """Why nothing was read, when a machine could not be reached: the first line alone may be all that is seen of the answer."""
    lost = (k.inner for k in facts.observations if k.inner.source.probe == UNREACHED)
    failed = {(o.subject.id, o.detail) for o in lost}
    if len(failed) != 1:
        return None
    name, detail = failed.pop()
    why = excerpt(detail, 300).removeprefix(f"{name}: ").removeprefix(f"{name}：").rstrip(".")
    return Text(f"{name} was not looked at: {why}.", f"未能查看 {name}：{why}。")


def _less_than_yes(facts: FactBase, seen: Seen) -> Text | None:
    """What keeps "nothing wrong was found" from being a yes: a part of the base set was not read, or a text may go on."""
    said = []
    if why := _why_not_yes(facts, seen):
        said.append(Text(f"Not enough to call it usable: {why.en}.", f"尚不足以断定可用：{why.zh}。"))
    if any(k.fact == END_KNOWN and k.inner.value is False for k in facts.observations):
        said += [] if said else [_GAP]
        said.append(Text("Complete as far as its format shows.", "就其格式所示，内容是完整的。"))
    return _joined(said) if said else None


_GAP = Text(
    "Not enough to call it usable: the text may have a gap (`nvidia-smi -q -x` shows its own end).",
    "尚不足以断定可用：文本可能有缺失（`nvidia-smi -q -x` 的输出能证明自身完整）。",
)


def _not_known(facts: FactBase, seen: Seen) -> Text:
    """What to say of the node where a finding leaves it usable and not enough of it was read."""
    why = _why_not_yes(facts, seen) or Text("the text may go on", "文本可能不完整")
    return Text(f"Whether the node can be used is not known: {why.en}.", f"节点是否可用尚不清楚：{why.zh}。")


def _why_not_yes(facts: FactBase, seen: Seen) -> Text | None:
    """Which parts of the base set are missing, or that a log that was given does not go back to the boot."""
    if whose := vendors.whose(facts):
        return Text(f"the error counters of {whose.en} were not read", f"未读取 {whose.zh}的错误计数")
    if names := unread(facts):
        en, zh = " and ".join(n.en for n in names), "和".join(n.zh for n in names)
        blank = " " if zh[:1].isascii() else ""
        return Text(f"{en} {'was' if len(names) == 1 else 'were'} not read", f"未读取{blank}{zh}")
    if seen or any(k.fact == "boot" and k.inner.status is Status.OK for k in facts.observations):
        return None
    if any(k.fact == "log.kernel.truncated_head" and k.inner.value is False for k in facts.observations):
        return None
    return Text(
        "the kernel log does not go back to the boot (`journalctl -k -b` does)",
        "内核日志没有追溯到启动时（`journalctl -k -b` 可以）",
    )


def _joined(said: Sequence[Text | None]) -> Text:
    return Text(" ".join(t.en for t in said if t), "".join(t.zh for t in said if t))


def _nothing_wrong(facts: FactBase) -> Text:
    gpus = _seen_gpus(facts)
    if gpus:
        return Text(
            f"Nothing wrong was found in what was given ({gpus} GPU{'s' if gpus != 1 else ''} seen).",
            f"在所给信息中未发现问题（看到 {gpus} 个 GPU）。",
        )
    return Text("Nothing wrong was found in what was given.", "在所给信息中未发现问题。")


def _over(findings: Sequence[Finding], facts: FactBase) -> Text | None:
    """What was wrong until something cured it, longer ago than anybody has to confirm."""
    over = [f for f in findings if f.life is not None and f.life.over and f.rule.severity is not Severity.INFO]
    if not over:
        return None
    said = sentence_of(over, facts)
    return Text(f"Past: {said.en}", f"已过去：{said.zh}")


def _hosts(facts: FactBase) -> set[str]:
    """Names of the nodes that anything is known of."""
    return {s.id for s in facts.subjects(Scope.NODE) if s.id}


def _headline(
    bad: Sequence[Finding],
    graver: Sequence[Finding],
    usable: Usable,
    until: Text,
    facts: FactBase,
    less: Text | None = None,
) -> Text:
    """The first of what leads, and the worst of what it has done where that forbids more; `less`: what keeps it from a yes."""
    same = _alike(bad)
    where = [f.subject for f in same]
    tail_en = {
        Usable.YES: "The node can go on being used.",
        Usable.IMPAIRED: f"Impaired: give it no new work{f' until {until.en}' if until else ''}.",
        Usable.NOT_YET: f"Not usable {f'until {until.en}' if until else 'yet'}.",
        Usable.NO: f"Do not use {'it' if len(set(where)) == 1 else 'them'}{f' until {until.en}' if until else ''}.",
        Usable.UNKNOWN: less.en if less else "Whether it can be used is not known.",
    }[usable]
    tail_zh = {
        Usable.YES: "节点可以继续使用。",
        Usable.IMPAIRED: f"性能或冗余受损：不要派新任务{_until(until)}。",
        Usable.NOT_YET: f"暂不可用{_until(until)}。",
        Usable.NO: f"请勿使用{_until(until)}。",
        Usable.UNKNOWN: less.zh if less else "是否可用尚不清楚。",
    }[usable]
    if usable is Usable.UNKNOWN and all(f.past for f in (*bad, *graver)):
        tail_en, tail_zh = "Confirm that it is over before more work goes there.", "派发新任务前请先确认故障已消除。"
    if traced.only(bad):
        tail_en, tail_zh = traced.tail(same).en, traced.tail(same).zh
    more = _more(bad, same, facts)
    several, called, least = len(_hosts(facts)) > 1, known_as(facts), at_least(same)
    title = titled(same, program=True)
    said_en, said_zh = (
        headline(title, where, lang, named=several, called=called, least=least) for lang in ("en", "zh")
    )
    if graver:
        worst = _alike(graver)
        about = [f.subject for f in worst]
        least = at_least(worst)
        effect = [
            headline(titled(worst), about, lang, named=several, called=called, least=least) for lang in ("en", "zh")
        ]
        if set(about) == set(where):  # whose cause it is goes without saying
            here, there = same[0].ending, worst[0].ending
            said_en, said_zh = title.en, title.in_("zh")
            if here == there:
                said_en, said_zh = said_en.removesuffix(f": {here.en}"), said_zh.removesuffix(f"：{here.in_('zh')}")
        said_en, said_zh = f"{effect[0]}. Cause: {said_en}", f"{effect[1]}。原因：{said_zh}"
    first = changed(facts, where) if _of_work(same) else None
    since = Text(f" {first.en}", first.in_("zh")) if first else NO_TEXT
    return Text(f"{said_en}{more.en}.{since.en} {tail_en}".rstrip(), f"{said_zh}{more.zh}。{since.in_('zh')}{tail_zh}")


def _of_work(same: Sequence[Finding]) -> bool:
    """Whether all findings are about what GPUs do."""
    return all(any(o.fact.startswith("gpu.work.") for o in f.because) for f in same)


_ROOM = 110  # characters for what else is wrong: the head stays two lines of a terminal


def _more(bad: Sequence[Finding], same: Sequence[Finding], facts: FactBase) -> Text:
    """What else is wrong beside the first thing: named where there is room, counted where there is not."""
    left = [f for f in bad if all(f is not s for s in same)]
    if not left:
        return NO_TEXT
    if traced.only(bad):  # the same on each rank of a trace is one thing, and what follows is about the first
        return _counted(len({f.rule.id for f in left}))
    said = [_also(second := _alike(left), same, facts)]
    shown = [*second] if said[0] else []
    if due := _due([f for f in left if all(f is not x for x in shown)], [*same, *shown]):
        said.append(_also(due, same, facts))
        shown += due if said[-1] else []
    named = [text for text in said if text]
    if not named:
        kinds = briefly(facts, [f.subject for f in left]) if _of_work(left) else None
        return Text(f". Also: {kinds.en}", f"。此外：{kinds.in_('zh')}") if kinds else _counted(len(left))
    rest = _counted(len(left) - len(shown))
    en, zh = "; ".join(t.en for t in named), "；".join(t.in_("zh") for t in named)
    return Text(f". Also: {en}{rest.en}", f"。此外：{zh}{rest.zh}")


def _also(second: Sequence[Finding], same: Sequence[Finding], facts: FactBase) -> Text:
    """Findings that stand behind the first ones of a head, in one clause; empty where there is no room."""
    where, title = [f.subject for f in second], titled(second)
    several, names, least = len(_hosts(facts)) > 1, known_as(facts), at_least(second)

    def say(title: Text) -> Text:
        if {f.subject for f in second} == {f.subject for f in same}:
            return title
        return Text(*(headline(title, where, lang, named=several, called=names, least=least) for lang in ("en", "zh")))

    said = say(title)
    if len(said.en) > _ROOM:  # without its figures
        figures = second[0].ending
        said = say(
            Text(title.en.removesuffix(f": {figures.en}"), title.in_("zh").removesuffix(f"：{figures.in_('zh')}"))
        )
    if len(said.en) > _ROOM and "{" not in second[0].rule.title.en:  # in the words of the rule alone
        said = say(second[0].rule.title)
    return said if len(said.en) <= _ROOM else NO_TEXT


def _due(left: Sequence[Finding], shown: Sequence[Finding]) -> list[Finding]:
    """What asks for a reset or a reboot that nothing in `shown` asks for: it is due whatever else is wrong, and never merely counted."""
    done = {f.subject for f in shown if f.advice.bucket in RESTARTS}
    if any(f.advice.bucket is Bucket.RESTART_BM for f in shown):
        return []
    due = [f for f in left if f.advice.bucket in RESTARTS and f.subject not in done and not f.past]
    return _alike(due) if due else []


def _counted(n: int) -> Text:
    return Text(f" (+{n} more)", f"（另有 {n} 项）") if n else NO_TEXT


def _alike(findings: Sequence[Finding]) -> list[Finding]:
    """The first, and those that say the same of other subjects."""
    first = findings[0]
    return [f for f in findings if f.rule.id == first.rule.id and f.title == first.title]


def _until(until: Text | None) -> str:
    """The Chinese clause that says until when; words in Latin letters stand apart."""
    return f"，直到{' ' if until.zh[:1].isascii() else ''}{until.zh}" if until else ""


_SKIPPED = {"xid_implied"}  # not a line of its own: it points to the line that names it


def _events(facts: FactBase) -> tuple[Observation, ...]:
    found = [k.inner for k in facts.observations if isinstance(k.inner.value, Event) and k.fact not in _SKIPPED]
    return tuple(
        sorted(
            found,
            key=lambda o: (
                o.source.call,
                o.source.line or 0,
                o.clock,
                o.at if o.at is not None else -1,
                o.fact,
                str(o.subject),
            ),
        )
    )


def _coverage(facts: FactBase) -> Coverage:
    asked, answered = 0, 0
    denied, failed = [], []
    # Nobody asked for it, or it sums up what was asked for and is counted there.
    sums = ("gpu.work.", "mig.work.", "gpu.power.design")
    changes = ("_counter_growth", "_state_change")
    others = {fact for fact in facts.facts if fact in OF_INPUTS or fact.startswith(sums) or fact.endswith(changes)}
    for k in facts.observations:
        o = k.inner
        if k.fact in others or o.source.call.startswith("history:"):
            continue
        asked += 1
        answered += o.status.answered
        if o.status is Status.DENIED:
            denied.append(_gap(o))
        elif o.status in (Status.FAILED, Status.TIMEOUT):
            failed.append(_gap(o))
    return Coverage(asked, answered, tuple(denied), tuple(failed))


def _gap(o: Observation) -> Gap:
    return Gap(o.fact, str(o.subject), o.status, o.detail)
