"""The proof of a finding as a tree to walk through: clauses with what was seen against what was asked, and what stands under each.

Below it what to do, what the finding explains, and what the rule says of itself. Each node knows what copies of it, what
explains it, where it leads, and which value of it can be supposed to be another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from assistant.dialogue import _clauses
from assistant.dialogue._words import Words, causes_of, fact_of, words_of
from assistant.proofs import questions
from assistant.proofs.outline import Kind as Entries
from assistant.proofs.supposing import Target, of_leaf, of_params
from assistant.proofs.values import seen_value
from assistant.render import lines
from assistant.render.gaps import remedy
from assistant.render.labels import aside, colon, impact_words, label, listed, reason_name
from assistant.render.meanings import meaning
from assistant.render.times import readable
from knowledge.observation import Event, Observation, Origin
from knowledge.record import dataclass
from knowledge.text import clean, opened
from rules.condition import EventLeaf, FactLeaf, On, Reference
from rules.engine import Finding, Grade, Role
from rules.evaluate import evaluate
from rules.proof import GroupProof, LeafProof, Missing, Proof, Truth

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.proofs.outline import Entry
    from knowledge.observation import Subject
    from rules.engine import Undecided
    from rules.model import Rule

FEW = 6  # observations that stand open under a clause
LINES = 12  # observations under one clause; how many more there are is said

_FACT = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\b")
_NAMES = re.compile(r" ?\[[^\]]*\]$")  # names of facts behind what tells them


class Kind(StrEnum):
    """What a node of the tree is."""

    TITLE = "title"
    FIELDS = "fields"  # one line of facts about the whole
    HEADING = "heading"
    GROUP = "group"  # all of, any of
    CLAUSE = "clause"
    SEEN = "seen"  # an observation
    MISSING = "missing"
    TEXT = "text"
    COMMAND = "command"
    LINK = "link"
    THRESHOLD = "threshold"


@dataclass(frozen=True, slots=True)
class Node:
    """One node, with those below it."""

    key: str
    kind: Kind
    text: str
    truth: Truth | None = None
    value: str = ""  # what was compared
    against: str = ""  # with what
    place: str = ""  # source, and when
    raw: str = ""  # the line or field as it was read, where `text` is not that
    children: tuple[Node, ...] = ()
    folded: bool = False  # at first
    copy: str = ""  # what is copied, where it is not the text
    question: str = ""  # "explain this"
    leads_to: tuple[str, str] | None = None  # screen and target
    severity: str = ""
    targets: tuple[Target, ...] = ()  # the values that can be supposed to be others


def tree(entry: Entry, d: Diagnosis, lang: str, entries: Sequence[Entry] = ()) -> tuple[Node, ...]:
    """The nodes of an entry of the outline, from top to bottom. `entries`: the others, for what a section holds."""
    made = _Tree(words_of(d, lang))
    if entry.findings:
        return tuple(made.of_finding(entry, entry.findings))
    if entry.undecided:
        return tuple(made.of_undecided(entry, entry.undecided))
    return tuple(made.of_text(entry, [e for e in entries if e.under == entry.key]))


def walk(nodes: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    """Every node with its depth, top to bottom."""
    for n in nodes:
        yield 0, n
        yield from ((depth + 1, child) for depth, child in walk(n.children))


class _Tree:
    def __init__(self, w: Words) -> None:
        self.w, self.d, self.lang = w, w.d, w.lang

    # --- whole entries --------------------------------------------------------------------

    def of_finding(self, entry: Entry, group: Sequence[Finding]) -> Iterator[Node]:
        """Head, proof, what agrees and disagrees, what to do, what it explains, what the rule says."""
        f, w = group[0], self.w
        several = len(group) > 1
        title = w.rule_title(f.title, [g.subject for g in group]) if several else w.title(f)
        yield Node("title", Kind.TITLE, title, severity=str(f.severity), question=entry.question)
        said, moment = self._state(f)
        yield Node("state", Kind.FIELDS, said, place=moment, question=entry.question)
        if several:
            yield self._same([g.subject for g in group], entry)
        yield self._heading("because", w.t("Because", "依据"), self._proof(f.proof, f.rule, f.subject, "when"))
        confirms = [evaluate(c, f.subject, self.d.facts) for c in f.rule.confirms]
        excludes = [evaluate(c, f.subject, self.d.facts) for c in f.rule.excludes]
        if confirms:
            yield self._heading(
                "confirms",
                w.t("Confirmed by", "由此确认")
                if any(c.truth is Truth.TRUE for c in confirms)
                else w.t("What would confirm it", "可据此确认"),
                *self._proofs(confirms, f.rule, f.subject, "confirms"),
            )
        if excludes:
            against = f.grade is Grade.RULED_OUT
            yield self._heading(
                "excludes", w.t("What speaks against it", "反对的证据") if against else w.t("What would rule it out", "可据此排除"),
                *self._proofs(excludes, f.rule, f.subject, "excludes"), folded=not against,
            )  # fmt: skip
        if entry.kind is not Entries.RULED_OUT:
            yield self._heading("do", w.t("Do next", "下一步"), *self._action(f))
        yield from self._ties(f)
        yield from self._page(f.rule, f)

    def of_undecided(self, entry: Entry, group: Sequence[Undecided]) -> Iterator[Node]:
        """Head, what is missing and what would tell it, the proof as far as it goes, what the rule says."""
        u, w = group[0], self.w
        said = w.rule_title(u.rule.name, [u.subject])
        yield Node("title", Kind.TITLE, said, severity=str(u.rule.severity), question=entry.question)
        words = (label(str(u.rule.severity), self.lang), w.t("undecided", "尚未确定"), u.rule.id)
        yield Node("state", Kind.FIELDS, " · ".join(words), question=entry.question)
        if len(group) > 1:
            yield self._same([g.subject for g in group], entry)
        needs = w.view.gaps.needs(m for x in group for m in x.missing)
        if needs:
            yield self._heading("needs", w.t("What would tell", "怎样得知"), *(
                Node(f"need {n}", Kind.TEXT, _NAMES.sub("", said), place=", ".join(_NAMES.findall(said)).strip(" []"), question=entry.question)
                for n, said in enumerate(needs)
            ))  # fmt: skip
        yield self._heading(
            "because", w.t("As far as it is known", "目前所知"), self._proof(u.proof, u.rule, u.subject, "when")
        )
        yield from self._page(u.rule, None)

    def of_text(self, entry: Entry, within: Sequence[Entry]) -> Iterator[Node]:
        """What has no proof: a sentence; what stands in a section; what was looked at where nothing was found."""
        w = self.w
        title = opened(entry.text or entry.title)
        yield Node("title", Kind.TITLE, title, severity=entry.severity, question=entry.question)
        if entry.kind is Entries.UNSEEN:
            yield from self._unseen(entry)
        for e in within:
            yield Node(f"within {e.key}", Kind.LINK, e.title, leads_to=("findings", e.key), question=e.question)
        if entry.kind is Entries.VERDICT:
            from assistant.dialogue._looked import looked_at

            yield self._heading("looked", w.t("Looked at", "查看了"), *(
                Node(f"looked {n}", Kind.TEXT, said, question=entry.question) for n, said in enumerate(looked_at(w))
            ))  # fmt: skip

    def _unseen(self, entry: Entry) -> Iterator[Node]:
        """The command that would show it, and what each fact is that could not be read."""
        if command := remedy(entry.text):
            yield Node("remedy", Kind.COMMAND, clean(command), copy=clean(command), question=entry.question)
        known = self.d.facts.vocabulary
        for name in dict.fromkeys(n for n in _FACT.findall(entry.text) if n in known):
            said = meaning(name, known, self.lang)
            yield Node(
                f"fact {name}", Kind.TEXT, said, place=name, question=questions.of_topic(f"fact {name}", self.lang)
            )

    def _same(self, subjects: Sequence[Subject], entry: Entry) -> Node:
        """Of several things: which they are, and whose proof stands below."""
        first, every = self.w.view.name(subjects[0]), self.w.view.where(subjects)
        said = self.w.t(f"{every}; below, {first}", f"{every}；以下为 {first}")
        return Node("same", Kind.TEXT, said, question=entry.question)

    def _heading(self, key: str, text: str, *children: Node, folded: bool = False, count: int = 0) -> Node:
        return Node(key, Kind.HEADING, f"{text}  {count}" if count > 1 else text, children=children, folded=folded)

    def _state(self, f: Finding) -> tuple[str, str]:
        """Severity, grade, role and share; and when."""
        w = self.w
        first, last = (lines.moment(o) if o else "" for o in _ends(f))
        role = w.t("consequence", "后果") if f.role is Role.SYMPTOM else w.t("cause", "原因")
        said = (
            label(str(f.severity), self.lang), w.grade(f), role if f.grade is not Grade.RULED_OUT else "",
            impact_words(f.impact, self.lang), f.rule.id,
        )  # fmt: skip
        return " · ".join(filter(None, said)), first if first == last or not last else f"{first} … {last}"

    # --- proofs ---------------------------------------------------------------------------

    def _proofs(self, proofs: Sequence[Proof], rule: Rule, subject: Subject, key: str) -> Iterator[Node]:
        return (self._proof(p, rule, subject, f"{key}.{n}") for n, p in enumerate(proofs))

    def _proof(self, p: Proof, rule: Rule, subject: Subject, key: str) -> Node:
        if isinstance(p, GroupProof):
            said = self.w.t("all of:", "全部满足：") if p.op == "all" else self.w.t("any of:", "任一满足：")
            children = tuple(self._proof(c, rule, subject, f"{key}.{n}") for n, c in enumerate(p.children))
            return Node(
                key,
                Kind.GROUP,
                said,
                p.truth,
                children=children,
                question=questions.of_topic(f"rule {rule.id}", self.lang),
            )
        return self._clause(p, rule, subject, key)

    def _clause(self, p: LeafProof, rule: Rule, subject: Subject, key: str) -> Node:
        known, leaf = self.d.facts.vocabulary, p.leaf
        fact = fact_of(leaf)
        targets = tuple(of_leaf(p, subject, rule, self.d))
        seen = [self._seen(o, f"{key}/{n}", targets) for n, o in enumerate(p.observations[:LINES])]
        more = len(p.observations) - LINES
        if more > 0:
            seen.append(
                Node(f"{key}/more", Kind.TEXT, label("more_lines", self.lang).format(n=more), question=self._about(p))
            )
        seen += [self._missing(m, f"{key}/missing {n}", targets, fact) for n, m in enumerate(p.missing[:LINES])]
        value, (against, formula) = seen_value(p, known, self.lang), self._against(p)
        return Node(
            key, Kind.CLAUSE, self._asks(p) + self._where(p), p.truth, value, against, children=tuple(seen),
            folded=p.truth is Truth.FALSE or len(seen) > FEW, question=self._about(p), targets=targets,
            raw=formula, copy=f"{fact} {value} {against}".strip(),
        )  # fmt: skip

    def _asks(self, p: LeafProof) -> str:
        """What a clause is about: an event, else the fact by what it means."""
        known = self.d.facts.vocabulary
        if isinstance(p.leaf, EventLeaf):
            return opened(_clauses.asked(p.leaf, known, self.lang))
        said = meaning(p.leaf.fact, known, self.lang).removeprefix("Whether ")
        return opened(said)

    def _against(self, p: LeafProof) -> tuple[str, str]:
        """What a value is compared with, and where that number comes from when it is another fact's."""
        known = self.d.facts.vocabulary
        if not isinstance(p.leaf, FactLeaf):
            return "", ""
        said = _clauses.wanted(p.leaf, known, self.lang)
        ref = p.leaf.value
        if isinstance(ref, Reference):
            of = next((o.value for o in p.observations if o.fact == ref.fact), None)
            if isinstance(of, int | float) and not isinstance(of, bool):
                return _clauses.wanted(replace(p.leaf, value=of * ref.times + ref.plus), known, self.lang), said
        if not said or _clauses.ordered(p.leaf) or p.leaf.negated:
            return said, ""
        return self.w.t("asked: ", "要求：") + said, ""

    def _where(self, p: LeafProof) -> str:
        """On how many of what, where that is not the subject itself."""
        leaf, t = p.leaf, self.w.t
        if isinstance(leaf, EventLeaf):
            said = {
                On.NODE: t("anywhere on the node", "本节点任意处"),
                On.OTHERS: t("on others of the node", "本节点其他对象"),
            }
            many = t(f"at least {leaf.at_least} times", f"至少 {leaf.at_least} 次") if leaf.at_least > 1 else ""
            words = [w for w in (many, said.get(leaf.on, "")) if w]
            return aside(listed(words, self.lang), self.lang) if words else ""
        if not isinstance(leaf, FactLeaf) or leaf.each is None:
            return ""
        n = leaf.each.number
        many = {
            "any": t("any of them", "任意一个"), "all": t("each of them", "每一个"), "none": t("none of them", "一个都没有"),
            "at_least": t(f"at least {n:g} of them", f"至少 {n:g} 个"), "share": t(f"at least {n:.0%} of them", f"至少 {n:.0%}"),
        }[leaf.each.kind]  # fmt: skip
        return aside(many, self.lang)

    def _about(self, p: LeafProof) -> str:
        """The question about a clause: the code that it names, else the fact."""
        leaf, fact = p.leaf, fact_of(p.leaf)
        if isinstance(leaf, EventLeaf) and fact in ("xid", "sxid"):
            for o in p.observations:
                if isinstance(o.value, Event) and o.value.code is not None:
                    return questions.of_topic(f"{fact} {o.value.code}", self.lang)
            for test in leaf.where:
                if test.field == "code" and isinstance(test.value, int):
                    return questions.of_topic(f"{fact} {test.value}", self.lang)
        return questions.of_topic(f"fact {fact}", self.lang)

    def _seen(self, o: Observation, key: str, targets: Sequence[Target]) -> Node:
        e, event = self.w.view.evidence(o), isinstance(o.value, Event)
        said = e.text or e.raw
        if o.value is None:  # the clause above says of what
            said = reason_name(f"{o.status}: {clean(o.detail)}" if o.detail else str(o.status), self.lang)
        raw = "" if event or e.raw in said or _clauses.machine_made(e.raw) else e.raw
        at = "" if event else readable(lines.moment(o))
        origin = label("told", self.lang) if o.origin is Origin.TOLD and e.place != label("told", self.lang) else ""
        own = tuple(t for t in targets if (t.fact, t.subject) == (o.fact, o.subject)) or tuple(targets[:1])
        code = (
            f"{o.fact} {o.value.code}" if isinstance(o.value, Event) and o.fact in ("xid", "sxid") else f"fact {o.fact}"
        )
        return Node(
            key, Kind.SEEN, opened(said), place=" · ".join(filter(None, (self.w.place(e.place), at, origin))),
            raw=raw, copy=e.exact or e.raw or said, question=questions.of_topic(code, self.lang), targets=own,
        )  # fmt: skip

    def _missing(self, m: Missing, key: str, targets: Sequence[Target], asked: str) -> Node:
        said = reason_name(m.reason, self.lang)
        if m.fact != asked:  # the clause above names its own
            said = f"{meaning(m.fact, self.d.facts.vocabulary, self.lang)}{colon(self.lang)}{said}"
        own = tuple(t for t in targets if (t.fact, t.subject) == (m.fact, m.subject)) or tuple(targets[:1])
        needs = [_NAMES.sub("", n) for n in self.w.view.gaps.needs([m])]
        return Node(
            key, Kind.MISSING, opened(said), Truth.UNKNOWN, place=f"{m.fact} · {self.w.view.name(m.subject)}",
            raw=listed(self.w.view.gaps.needed(needs, [m]), self.lang, ";"),
            question=questions.of_topic(f"fact {m.fact}", self.lang), targets=own,
        )  # fmt: skip

    # --- what to do -----------------------------------------------------------------------

    def _action(self, f: Finding) -> Iterator[Node]:
        a, w = f.advice, self.w
        topic = questions.of_topic(f"action {a.bucket}", self.lang)
        yield Node(
            "bucket",
            Kind.TEXT,
            w.action(f),
            place=listed((w.said_by(f), label(str(a.risk), self.lang)), self.lang, ";"),
            question=topic,
        )
        if a.command:
            note = "" if a.pasteable else w.t("fill in what is in braces", "请先填写花括号中的内容")
            yield Node(
                "command",
                Kind.COMMAND,
                clean(a.command),
                place=note,
                copy=clean(a.command),
                question=questions.of_remedy(self.lang),
            )
        for n, said in enumerate(a.then):
            yield Node(
                f"then {n}",
                Kind.TEXT,
                label("then", self.lang) + said.in_(self.lang),
                question=questions.of_remedy(self.lang),
            )
        if a.runbook:
            yield Node("runbook", Kind.LINK, label("runbook", self.lang) + a.runbook, leads_to=("incidents", f"runbook {a.runbook}"),
                       copy=a.runbook, question=questions.of_topic(f"runbook {a.runbook}", self.lang))  # fmt: skip
        for n, o in enumerate(a.because[:LINES]):
            yield self._seen(o, f"because {n}", ())

    def _ties(self, f: Finding) -> Iterator[Node]:
        """What explains it, and what it explains."""
        by_id = {x.id: x for x in self.d.findings}
        roots = causes_of(f, self.d)
        for key, text, found in (
            ("explained_by", self.w.t("Explained by", "原因"), roots),
            ("explains", self.w.t("Explains", "解释了"), [by_id[i] for i in f.explains if i in by_id]),
            ("may_explain", self.w.t("May explain", "可能解释"), [by_id[i] for i in f.may_explain if i in by_id]),
        ):  # fmt: skip
            if found:
                yield self._heading(key, text, *(
                    Node(f"{key} {x.id}", Kind.LINK, self.w.title(x), severity=str(x.severity), leads_to=("findings", x.id),
                         question=questions.of_finding(x, self.d, self.lang)) for x in found
                ), folded=key == "explains", count=len(found))  # fmt: skip

    # --- what the rule says ---------------------------------------------------------------

    def _page(self, rule: Rule, f: Finding | None) -> Iterator[Node]:
        """Thresholds, what it is and what it is mistaken for: folded, it is the same each time."""
        asked = questions.of_topic(f"rule {rule.id}", self.lang)
        subject = f.subject if f is not None else None
        thresholds = [
            Node(
                f"param {t.name}",
                Kind.THRESHOLD,
                t.title.in_(self.lang),
                value=t.now,
                against=t.allowed.in_(self.lang),
                targets=(t,),
                question=asked,
            )
            for t in of_params(rule, subject)
        ]
        if thresholds:
            yield self._heading("thresholds", self.w.t("Thresholds", "阈值"), *thresholds, folded=True)
        said = [
            (self.w.t("What it is", "这是什么"), "why", rule.why),
            (self.w.t("Mistaken for it", "容易误判的情况"), "mistaken", rule.false_positives),
        ]
        for title, key, text in said:
            if text:
                yield self._heading(
                    key, title, Node(f"{key} text", Kind.TEXT, clean(text.in_(self.lang)), question=asked), folded=True
                )
        links = [
            Node(f"source {n}", Kind.TEXT, clean(url), copy=url, question=asked)
            for n, url in enumerate(rule.references)
        ]
        page = Node(
            "rule",
            Kind.LINK,
            f"{label('rule', self.lang)}{rule.id}",
            leads_to=("knowledge", f"rule {rule.id}"),
            copy=rule.id,
            question=asked,
        )
        yield self._heading("sources", self.w.t("Rule and sources", "规则与来源"), page, *links, folded=True)


def _ends(f: Finding) -> tuple[Observation | None, Observation | None]:
    """The first and the last event with a time, of the clock of the first."""
    timed = [o for o in f.events if o.at is not None]
    same = sorted((o for o in timed if o.clock is timed[0].clock), key=lambda o: o.at or 0)
    return (same[0], same[-1]) if same else (None, None)
