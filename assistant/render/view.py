"""A diagnosis arranged for reading: what stands where, what is folded, in one language.

Text, Markdown and HTML print the same `View`; nothing here knows a terminal or a page.
Symptoms stand under their root; the same finding on several GPUs is one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import only_said
from assistant.known import known
from assistant.render import lines
from assistant.render.cells import cut
from assistant.render.gaps import Gaps
from assistant.render.header import header
from assistant.render.labels import (
    aside,
    at_least,
    colon,
    grade_word,
    impact_words,
    known_as,
    label,
    listed,
    localised,
    many,
    reason_name,
    scope_name,
    sentence,
    subject_name,
    titled,
)
from assistant.render.words import our_words
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from rules.engine import Grade, Role
from rules.model import RESTARTS, Bucket, Severity, Usable
from rules.resolve import buckets

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from rules.engine import Finding, Impact

Tells = Callable[[str], str]
EVIDENCE, UNDECIDED, NAMES, STEPS = 3, 4, 4, 3  # of each, at most, without --verbose: one screen at 3 a.m.
PROCESSES = 3  # of those that a cause explains so many are named, not counted
_FRAME = lazy(r"(?:\[<\w{1,20}>\] )?(\w{1,80})\+0x")  # [<0>] os_acquire_rwlock_write+0x33/0x50 [nvidia]
# Commands that change nothing, whatever else their step asks for.
_READS = lazy(
    r"(?:timeout \d+ )?(?:nvidia-smi(?: -i \S+)?(?: (?:nvlink -[a-z]+|-q|-L|topo|--query)\b.*)?$|systemctl status |ipmitool (?:sdr|sel|sensor|fru) |"
    r"scontrol show |sinfo|kubectl (?:get|describe|logs) |dcgmi (?:health|discovery|nvlink) |(?:cat|journalctl|dmesg|lspci|ibstat|fuser -v) ?)"
)
_QUIET = (Bucket.IGNORE, Bucket.MONITOR)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line that a person can check."""

    place: str  # kern.log:12
    text: str  # the sentence, or empty when the raw line says it best
    raw: str  # the raw line or field; of an event its time and message
    note: str = ""  # how often, when the same was seen several times
    exact: str = ""  # the raw line, where `raw` is not


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next."""

    bucket: str
    text: str
    commands: tuple[str, ...]
    risk: str
    risk_label: str
    then: tuple[str, ...]
    runbooks: tuple[str, ...]
    where: str
    reasons: tuple[str, ...]  # titles of the findings that ask for it
    findings: tuple[str, ...] = ()  # their ids


@dataclass(frozen=True, slots=True)
class Block:
    """One finding, or the same one on several subjects."""

    severity: str
    severity_label: str
    grade: str
    title: str
    where: str
    bucket: str
    action: str
    said_by: str
    evidence: tuple[Evidence, ...]
    more: int
    explains: tuple[str, ...]
    may_explain: tuple[str, ...]
    missing: tuple[str, ...]
    rule: str
    findings: tuple[str, ...]  # their ids
    why: str
    false_positives: str
    references: tuple[str, ...]
    impact: str = ""  # how much time it explains
    known: tuple[str, ...] = ()  # issues of the versions here that it may be


@dataclass(frozen=True, slots=True)
class View:
    """The whole answer."""

    lang: str
    state: str
    state_label: str
    headline: str
    steps: tuple[Step, ...]
    blocks: tuple[Block, ...]
    ruled_out: tuple[str, ...]
    undecided: tuple[str, ...]
    undecided_more: int
    unseen: tuple[str, ...]
    notes: tuple[str, ...]
    footer: tuple[str, ...]
    about: tuple[str, ...] = ()  # node, GPUs, driver, source: see `assistant.render.header`
    more_steps: tuple[str, ...] = ()  # action words that are not shown
    unseen_more: int = 0

    @property
    def more(self) -> str:
        """The line that names the actions that are not shown; empty when all are."""
        if not self.more_steps:
            return ""
        return label("more_steps", self.lang).format(n=len(self.more_steps), names=", ".join(self.more_steps))

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """The lists below the findings that are not empty: label, items, and the line that counts what is left out."""
        every = (("ruled_out_title", self.ruled_out, 0), ("undecided", self.undecided, self.undecided_more),
                 ("could_not_see", self.unseen, self.unseen_more), ("notes", self.notes, 0))  # fmt: skip
        more = label("more_undecided", self.lang)
        return tuple((key, items, more.format(n=rest) if rest else "") for key, items, rest in every if items)


def view(
    diagnosis: Diagnosis, lang: str, tells: Tells = lambda _: "", verbose: bool = False, now: int = 0
) -> View:  # fmt: skip
    """`diagnosis` arranged for reading in `lang`; `now` (ns UTC) tells the age of what was recorded."""
    return Builder(diagnosis, lang, tells, verbose, now).build()


class Builder:
    """Arranges one diagnosis; the conversation uses its wording too, so that both say the same of the same."""

    def __init__(self, diagnosis: Diagnosis, lang: str, tells: Tells, verbose: bool, now: int = 0) -> None:
        self.d, self.lang, self.tells, self.verbose, self.now = diagnosis, lang, tells, verbose, now
        self.by_id = {f.id: f for f in diagnosis.findings}
        hosts = {s.host for s in diagnosis.facts.subjects(Scope.NODE)}
        self.one_host = len(hosts) <= 1
        self.called = known_as(diagnosis.facts)
        self.gaps = Gaps(diagnosis, lang, tells, self.where, verbose)

    def build(self) -> View:
        """The whole answer."""
        d, lang = self.d, self.lang
        groups = self._groups(d.leads)
        steps = self._steps(groups)
        steps_shown = len(steps) if self.verbose else STEPS
        undecided, unseen = self.gaps.undecided(), self.gaps.unseen()
        shown = len(undecided) + len(unseen) if self.verbose else UNDECIDED
        return View(
            lang=lang,
            state=str(d.verdict.state),
            state_label=label(str(d.verdict.state), lang),
            headline=self._words(d.verdict.text.in_(lang)),
            steps=steps[:steps_shown],
            blocks=tuple(self._block(g) for g in groups),
            ruled_out=tuple(self.ruled_out(g) for g in self._groups(d.ruled_out)),
            undecided=tuple(undecided[:shown]),
            undecided_more=max(0, len(undecided) - shown),
            unseen=tuple(unseen[:shown]),
            unseen_more=max(0, len(unseen) - shown),
            notes=tuple(clean(n) for n in d.notes),
            footer=self._footer(),
            about=header(d, lang, self.now),
            more_steps=tuple(dict.fromkeys(s.bucket for s in steps[steps_shown:])),
        )

    def _words(self, text: str) -> str:
        for f in (*self.d.findings, *self.d.ruled_out):
            text = localised(text, f.subject, self.lang, self.called)
        return clean(text)

    # --- findings -------------------------------------------------------------------------

    def _groups(self, findings: Iterable[Finding]) -> list[list[Finding]]:
        """The same problem with the same action, whatever the subject; the order stays."""
        groups: dict[object, list[Finding]] = {}
        for f in findings:
            key = (f.rule.id, f.title.en, f.severity, f.grade, f.told, f.advice.bucket, f.subject.scope)
            groups.setdefault(key, []).append(f)
        return list(groups.values())

    def place(self, group: Sequence[Finding]) -> str:
        """Where the findings of a group are; of a log that is about more things than are told apart, at least there."""
        subjects = [f.subject for f in group]
        where = self.where(subjects)
        return label("at_least", self.lang) + where if at_least(group) and len(set(subjects)) > 1 else where

    def where(self, subjects: Sequence[Subject]) -> str:
        """One subject by name; several by their number and some names."""
        names = [self.name(s) for s in dict.fromkeys(subjects)]
        if len(names) == 1:
            return names[0]
        gpus = all(s.scope is Scope.GPU for s in subjects)
        about = list(dict.fromkeys(subjects))
        count = many(about, self.lang)
        bare = gpus or all(s.scope is Scope.PROCESS for s in about)
        short = [(self._short(s) if bare and self.one_host else n) for s, n in zip(about, names, strict=True)]
        shown = short if self.verbose or len(short) <= 8 else [*short[:NAMES], "..."]
        return f"{count}{colon(self.lang)}{listed(shown, self.lang)}"

    def _short(self, subject: Subject) -> str:
        known = self.called.get(subject)
        if known is None:
            return subject.id.removeprefix("index:")
        if subject.scope is Scope.PROCESS:
            return subject_name(subject, self.lang, self.called).removeprefix(
                f"{scope_name(Scope.PROCESS, self.lang)} "
            )
        return f"{known}{aside(subject.id, self.lang)}"

    def name(self, subject: Subject) -> str:
        """A subject, with its node where there are several."""
        name = clean(subject_name(subject, self.lang, self.called))
        if self.one_host or subject.scope is Scope.NODE or not subject.host:
            return name
        return f"{clean(subject.host)} {name}"

    def _block(self, group: Sequence[Finding]) -> Block:
        f, lang = group[0], self.lang
        evidence, more = self._evidence(group)
        evidence += (*self._heard(group), *self._against(group))
        spoke = "rule_speaks" if f.advice.resolver == "rule" else f.advice.resolver
        unsure = f.grade in (Grade.PROBABLE, Grade.POSSIBLE)
        return Block(
            severity=str(f.severity),
            severity_label=label(str(f.severity), lang),
            grade=grade_word(f, lang),
            title=clean(titled(group).in_(lang)),
            where=self.place(group) + self._program(group, ", "),
            bucket=str(f.advice.bucket),
            action=f.advice.text.in_(lang),
            said_by=label(spoke, lang),
            evidence=evidence,
            more=more,
            explains=self.effects([e for g in group for e in g.explains]),
            may_explain=self.effects([e for g in group for e in g.may_explain]),
            missing=self.gaps.needs(m for g in group for m in g.missing) if unsure else (),
            rule=f.rule.id,
            findings=tuple(g.id for g in group),
            why=f.rule.why.in_(lang) if self.verbose else "",
            false_positives=f.rule.mistaken.in_(lang) if self.verbose else "",
            references=f.rule.references if self.verbose else (),
            impact=self._impact([g.impact for g in group if g.impact is not None]),
            known=tuple(dict.fromkeys(k.words(lang) for g in group for k in known(g, self.d.facts))),
        )

    def _program(self, group: Sequence[Finding], lead: str, end: str = "") -> str:
        """The one process behind all of a group, between `lead` and `end`."""
        programs = {f.program for f in group}
        if len(programs) != 1 or (program := programs.pop()) is None:
            return ""
        return clean(f"{lead}{program.words.in_(self.lang)}{({'.': '。'}.get(end, end)) if self.lang == 'zh' else end}")

    def _impact(self, impacts: Sequence[Impact]) -> str:
        """What one finding explains; of several on different subjects the greatest, and that it is that."""
        greatest = max(impacts, key=lambda i: i.share, default=None)
        if greatest is not None and greatest.hours is not None:
            greatest = replace(greatest, hours=sum(i.hours or 0.0 for i in impacts))
        return impact_words(greatest, self.lang, most=len(impacts) > 1)

    def _evidence(self, group: Sequence[Finding]) -> tuple[tuple[Evidence, ...], int]:
        seen: dict[tuple[str, ...], list[Observation]] = {}
        queues = [[*f.events, *f.because, *f.advice.because] for f in group]
        longest = max((len(q) for q in queues), default=0)
        for i in range(longest):  # a line of each subject first, then second lines
            for q in queues:
                if i < len(q):
                    seen.setdefault(self._alike(q[i]), []).append(q[i])
        limit = len(seen) if self.verbose else max(EVIDENCE, min(len(group), 2 * EVIDENCE))
        if len(seen) == limit + 1:
            limit += 1  # "1 more" takes as much room as the line itself
        chosen = list(seen.values())[:limit]
        return tuple(self._folded(alike) for alike in chosen), len(seen) - len(chosen)

    def _heard(self, group: Sequence[Finding]) -> tuple[Evidence, ...]:
        """Of a cause that no log line tells: a line of what it explains, which says when and to whom."""
        if any(f.events for f in group):
            return ()
        for i in dict.fromkeys(i for f in group for i in f.explains):
            effect = self.by_id.get(i)
            if effect is not None and effect.events:
                alike = [o for o in effect.events if self._alike(o) == self._alike(effect.events[0])]
                return (self._folded(alike),)
        return ()

    def _against(self, group: Sequence[Finding]) -> tuple[Evidence, ...]:
        """What other sources say that contradicts a finding, once each."""
        said = dict.fromkeys(self.evidence(o) for f in group for o in f.against)
        return tuple(replace(e, text=label("against", self.lang).format(text=e.text)) for e in said)

    def _alike(self, o: Observation) -> tuple[str, ...]:
        """What makes two pieces of evidence one: of log lines the message, of all else every word."""
        e = self.evidence(o)
        if not self.verbose and lines.is_timed(o):
            return clean(o.source.call), lines.message(o)
        return e.place, e.text, e.raw

    def _folded(self, alike: Sequence[Observation]) -> Evidence:
        """The first line, with the number of those that say the same and the time of the last one."""
        e = self.evidence(alike[0])
        times = {id(o): o for o in alike}
        if len(times) == 1 or not lines.is_timed(alike[0]):
            return e
        last = max(times.values(), key=lambda o: o.at or 0)
        return replace(e, note=label("times", self.lang).format(n=len(times), last=lines.moment(last)))

    def evidence(self, o: Observation) -> Evidence:
        """The raw line of an event; the sentence of a value, with the raw field when it says more."""
        raw = clean(o.excerpt)
        if o.origin is Origin.TOLD or o.source.probe == "told":
            place = label("told", self.lang)
        elif o.origin is Origin.DERIVED and not o.source.call:
            place = label("derived", self.lang)
        else:
            place = clean(str(o.source))
        if not o.status.answered or o.value is None:
            reason = reason_name(str(o.status), self.lang)
            return Evidence(place, f"{o.fact}: {reason}", raw)
        if isinstance(o.value, Event) and raw:  # no sentence is made of it: there may be thousands
            line = lines.shown(o)
            return Evidence(place, "", line, exact=raw if line != raw else "")
        spec = self.d.facts.vocabulary.get(o.fact)
        text = clean(sentence(spec, o, self.lang, self.called)) if spec else o.fact
        field = raw.removeprefix(f"{place}: ")  # the call stands there already
        return Evidence(place, text, our_words(field, self.lang), exact=raw if field != raw else "")

    def effects(self, ids: Sequence[str]) -> tuple[str, ...]:
        """``XID 45 x2``, ``A process hangs (process 4203 in os_acquire_rwlock)``: findings by title, their events counted."""
        counts: Counter[str] = Counter()
        found: dict[str, list[Finding]] = {}
        for i in dict.fromkeys(ids):
            f = self.by_id.get(i)
            if f is not None:
                name = f"XID {f.xid}" if f.xid is not None else clean(f.title.in_(self.lang))
                counts[name] += max(1, f.count)
                found.setdefault(name, []).append(f)
        return tuple(self._effect(name, n, found[name]) for name, n in counts.items())

    def _effect(self, name: str, n: int, group: Sequence[Finding]) -> str:
        about = list(dict.fromkeys(f.subject for f in group))
        if len(about) <= PROCESSES and all(s.scope is Scope.PROCESS for s in about):
            if len(about) == 1:
                return name + aside(self._process(about[0]), self.lang)
            return name + aside(
                f"{many(about, self.lang)}{colon(self.lang)}{', '.join(s.id for s in about)}", self.lang
            )
        copies = label("copies", self.lang).format(n=n)
        return name if n == 1 else f"{name}{'' if name.endswith('）') else ' '}{copies}"

    def _process(self, subject: Subject) -> str:
        """A process, and the kernel function in which it sleeps, when that is known."""
        o = self.d.facts.current("process.wait_channel", subject)
        stack = self.d.facts.current("process.blocked_in", subject)
        top = _FRAME.match(stack.excerpt) if stack is not None and stack.status is Status.OK else None
        told = o.value if o is not None and o.status is Status.OK and isinstance(o.value, str) else ""
        where = top[1] if top else told
        return (
            label("process_in", self.lang).format(process=self.name(subject), where=clean(where))
            if where
            else self.name(subject)
        )

    # --- actions --------------------------------------------------------------------------

    def _steps(self, groups: Sequence[Sequence[Finding]]) -> tuple[Step, ...]:
        """Actions of the roots that are sure enough, once each: the verdict's first, then by strength.

        The quiet ones only when there is nothing else, or when the verdict's is one. What leaves the answer open tells how to
        close it.
        """
        sure = [
            g
            for g in groups
            if g[0].counts
            or (
                g[0].grade is not Grade.POSSIBLE
                and (g[0].severity is not Severity.INFO or g[0].advice.then or g[0].rule.leaves_open)
            )
        ]
        loud = [g for g in sure if g[0].advice.bucket not in _QUIET]
        merged: dict[object, list[Finding]] = {}
        for g in loud if loud and loud[0] is sure[0] else [*sure[:1], *(loud or sure[1:])]:
            a = g[0].advice
            merged.setdefault((a.bucket, a.text.en), []).extend(g)

        def strength(group: Sequence[Finding]) -> int:
            return max(buckets()[f.advice.bucket].strength for f in group)

        first, *others = list(merged.values()) or [[]]
        restarts = sorted((g for g in merged.values() if g[0].advice.bucket in RESTARTS), key=strength)
        covered: list[list[Finding]] = []
        if restarts:
            last = restarts.pop()
            covered = [g for g in restarts if _covers(last, g)]
            if first in covered or strength(first) < strength(last):
                others = [first, *(g for g in others if g is not last)]
                first = last
            others = [g for g in others if g not in covered]
        others.sort(
            key=lambda g: (g[0].advice.bucket not in RESTARTS, -strength(g))
        )  # what changes the state goes ahead of repairs
        steps = [self._step(g) for g in (first, *others) if g and not _against(first, g)]
        if covered:
            more = [self._step(g) for g in covered]
            place = next(i for i, step in enumerate(steps) if step.bucket == str(last[0].advice.bucket))
            steps[place] = replace(
                steps[place],
                reasons=tuple(dict.fromkeys(r for s in (steps[place], *more) for r in s.reasons)),
                findings=tuple(i for s in (steps[place], *more) for i in s.findings),
                then=tuple(dict.fromkeys(t for s in (steps[place], *more) for t in s.then)),
                runbooks=tuple(dict.fromkeys(r for s in (steps[place], *more) for r in s.runbooks)),
            )
        return tuple(steps)

    def _step(self, group: Sequence[Finding]) -> Step:
        a = group[0].advice
        commands = tuple(dict.fromkeys(clean(f.advice.command) for f in group if f.advice.pasteable))
        then = dict.fromkeys(t.in_(self.lang) for f in group for t in f.advice.then)
        return Step(
            bucket=str(a.bucket),
            text=a.text.in_(self.lang)
            + self._program(group, {"zh": "涉及的程序："}.get(self.lang, " The program: "), "."),
            commands=commands,
            risk=str(a.risk),
            risk_label=self._risk(str(a.risk), commands),
            then=tuple(then),
            runbooks=tuple(dict.fromkeys(f.advice.runbook for f in group if f.advice.runbook)),
            where=self.place(group),
            reasons=tuple(dict.fromkeys(clean(f.title.in_(self.lang)) for f in group)),
            findings=tuple(f.id for f in group),
        )

    def _risk(self, risk: str, commands: Sequence[str]) -> str:
        """What a step risks; where its commands only read, that they do."""
        said = label(risk, self.lang)
        if risk == "safe" or not commands or not all(map(_READS.match, commands)):
            return said
        return label("command_reads", self.lang).format(risk=said)

    # --- what is not known ----------------------------------------------------------------

    def ruled_out(self, group: Sequence[Finding]) -> str:
        """The problem, where, and the one fact that speaks against it; a log line by its code alone."""
        f = group[0]
        said = f"{clean(f.title.in_(self.lang))}{colon(self.lang)}{self.place(group)}"
        if not f.because:
            return said
        o = f.because[-1]
        e = self.evidence(o)
        if isinstance(o.value, Event):
            code = f"{o.fact.upper()} {o.value.code}" if o.fact in ("xid", "sxid") and o.value.code is not None else ""
            what = code or cut(lines.message(o), 60)
        else:
            what = cut(e.text or e.raw, 100)
        return said + aside(listed((what, e.place), self.lang, ";"), self.lang)

    def _footer(self) -> tuple[str, ...]:
        """How much was read, and by which rules; of what is only said there is nothing to count."""
        d, lang = self.d, self.lang
        if only_said(d.facts):
            return ()
        read = label("read", lang).format(answered=d.coverage.answered, asked=d.coverage.asked)
        return read, label("ruleset", lang).format(hash=d.ruleset)


def _against(first: Sequence[Finding], g: Sequence[Finding]) -> bool:
    """Whether a step would restart a GPU that is not to be used until the vendor's support has answered."""
    a = first[0].advice
    waits = a.bucket is Bucket.CONTACT_SUPPORT and a.usable is Usable.NO and g[0].advice.bucket in RESTARTS
    held = {f.subject.up(Scope.GPU) for f in first} - {None}
    return waits and all(f.subject.up(Scope.GPU) in held for f in g)


def _covers(last: Sequence[Finding], group: Sequence[Finding]) -> bool:
    """Whether a restart does what a lesser one would: a reboot all of its node, a reset the GPU itself."""
    if last[0].advice.bucket in (Bucket.RESTART_VM, Bucket.RESTART_BM):
        return {f.subject.host for f in group} <= {f.subject.host for f in last}
    return {f.subject for f in group} <= {f.subject for f in last}


def symptoms(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Findings that another one explains."""
    return tuple(f for f in diagnosis.findings if f.role is Role.SYMPTOM)
