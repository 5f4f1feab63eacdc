"""What of a proof can be supposed to be another, and the question that supposes it.

The query that is made for an edited value is the one that the sentence beside it is understood as: pointing and saying
give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from assistant.dialogue._assumed import called, reached
from assistant.dialogue._scope import scoped
from assistant.intent.query import Assumed, Intent, Query
from assistant.proofs import questions
from assistant.proofs.values import in_words
from assistant.values import Problem, parse
from knowledge.facts import FactSpec, Kind, Type, vocabulary
from knowledge.language import Text
from knowledge.observation import Event, Scope, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from knowledge.units import measured
from rules.condition import EventLeaf, FactLeaf, Leaf, Op, leaves

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.reply import Reply
    from rules.factbase import FactBase
    from rules.loader import RuleSet
    from rules.model import Param, Rule
    from rules.proof import LeafProof

NONE, SEEN = "none", "seen"  # of events
_PLAIN = re.compile(r"[A-Za-z0-9_.%+-]*[A-Za-z0-9_+-]")  # a value that needs no quotes
_HAN = ("是", "否", "无")
CODED = ("xid", "sxid")
_SLOTTED = frozenset({Scope.NODE, Scope.GPU, Scope.PROCESS, Scope.RANK, Scope.JOB})


class What(StrEnum):
    """What kind of thing is supposed."""

    FACT = "fact"
    EVENT = "event"
    THRESHOLD = "threshold"


@dataclass(frozen=True, slots=True)
class Target:
    """One value that can be supposed to be another."""

    what: What
    name: str  # the fact, the event, or ``rule-id.param``
    subject: Subject | None = None
    code: int | None = None  # of an event
    leaf: Leaf | None = None  # the clause that asks for it
    param: Param | None = None

    @property
    def fact(self) -> str:
        """The fact or event; empty of a threshold."""
        return "" if self.what is What.THRESHOLD else self.name

    @property
    def title(self) -> Text:
        """What a threshold is called."""
        return Text(self.name.partition(".")[2].replace("_", " "))

    @property
    def now(self) -> str:
        """The value of a threshold as it is shipped."""
        if self.param is not None:
            return measured(self.param.default, self.param.unit)
        value = self.leaf.value if isinstance(self.leaf, FactLeaf) else None
        return in_words(vocabulary().get(leaf_fact(self)), value, "en") if isinstance(value, int | float) else ""

    @property
    def allowed(self) -> Text:
        """What a threshold can be."""
        p = self.param
        if p is None or p.min is None or p.max is None:
            return Text("any number", "任意数值")
        low, high = measured(p.min, p.unit), measured(p.max, p.unit)
        return Text(f"from {low} to {high}", f"{low} 到 {high}")


# --- what can be supposed -----------------------------------------------------------------


def of_leaf(p: LeafProof, subject: Subject, rule: Rule, d: Diagnosis) -> Iterator[Target]:
    """The values that a clause rests on, those that it has first; last the number that it compares with."""
    if isinstance(p.leaf, EventLeaf):
        yield from _events(p, p.leaf, subject)
        return
    asked = p.leaf.fact
    seen = dict.fromkeys((o.fact, o.subject) for o in p.observations)
    seen |= dict.fromkeys((m.fact, m.subject) for m in p.missing)
    if not seen:
        seen[asked, subject] = None
    for fact, about in sorted(seen, key=lambda key: key[0] != asked):
        spec = d.facts.vocabulary.get(fact)
        whose = _whose(spec, about, d.facts) if spec is not None and _can_be(spec) else None
        if whose is not None:
            yield Target(What.FACT, fact, whose, leaf=p.leaf)
    if isinstance(p.leaf, FactLeaf) and (found := _threshold(p.leaf, rule)) is not None:
        yield found


def of_params(rule: Rule, subject: Subject | None) -> Iterator[Target]:
    """The thresholds that a rule declares."""
    return (Target(What.THRESHOLD, f"{rule.id}.{p.name}", subject, param=p) for p in rule.params)


def _can_be(spec: FactSpec) -> bool:
    return spec.kind not in (Kind.EVENT, Kind.RELATION) and spec.type not in (Type.EVENT, Type.SUBJECT)


def _whose(spec: FactSpec, subject: Subject, facts: FactBase) -> Subject | None:
    """The subject of a fact's own scope: a clause about a GPU may ask for a fact of its node."""
    if subject.scope is spec.scope:
        return subject
    up = subject.up(spec.scope)
    return up if up is not None else next(iter(facts.related(subject, spec.scope)), None)


def _events(p: LeafProof, leaf: EventLeaf, subject: Subject) -> Iterator[Target]:
    """Events that were seen, by code; else the one code that is asked for."""
    made: dict[tuple[str, int | None, Subject], None] = {}
    for o in p.observations:
        if isinstance(o.value, Event):
            name = o.fact.removesuffix("_implied")
            code = o.value.code if name in CODED else None
            made.setdefault((name, code, o.subject))
    name = leaf.event.removesuffix("_implied")
    if not made and name in CODED:
        for test in leaf.where:
            if test.field == "code" and test.op in (Op.IS, Op.IN):
                codes = test.value if isinstance(test.value, tuple) else (test.value,)
                made |= dict.fromkeys((name, code, subject) for code in codes[:1] if isinstance(code, int))
    for name, code, about in made:
        yield Target(What.EVENT, name, about, code, leaf)


def _threshold(leaf: FactLeaf, rule: Rule) -> Target | None:
    """The number that a clause compares with: a parameter of the rule, or the one number that the fact is held against."""
    if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
        return None
    params = [p for p in rule.params if p.type != "duration" and p.default == leaf.value]
    if len(params) == 1:
        return Target(What.THRESHOLD, f"{rule.id}.{params[0].name}", leaf=leaf, param=params[0])
    same = [x for x in leaves(rule.when) if isinstance(x, FactLeaf) and x.fact == leaf.fact and _number(x.value)]
    if same != [leaf]:
        return None
    return Target(What.THRESHOLD, f"{rule.id}.{leaf.fact}", leaf=leaf)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- what was typed, and the question -----------------------------------------------------


def problem(target: Target, said: str, lang: str) -> str:
    """Why that cannot be supposed; empty when it can."""
    read = _read(target, said)
    return read.in_(lang) if isinstance(read, Text) else ""


def query(target: Target, said: str, d: Diagnosis, lang: str) -> Query:
    """The question that supposes it. ValueError for what `problem` objects to."""
    from assistant.intent.echo import echo

    read = _read(target, said)
    if isinstance(read, Text):
        raise ValueError(read.en)  # noqa: TRY004 - of the words, not of their type
    assumed, text = _said(target, read, d, lang)
    slots = (
        questions.slots_of(target.subject, d.facts)
        if target.subject is not None and target.what is not What.THRESHOLD
        else None
    )
    made = Query(text, lang, Intent.WHATIF, assumed=(assumed,))
    return echo(made if slots is None else Query(text, lang, Intent.WHATIF, slots, assumed=(assumed,)))


def supposed(d: Diagnosis, ruleset: RuleSet, asked: Query, focus: str = "") -> Reply:
    """The answer to it: what would be different."""
    from assistant.dialogue import Turn, answerer

    return answerer(Intent.WHATIF).answer(Turn(asked, asked.lang, ruleset, d, focus=focus))


def _read(target: Target, said: str) -> str | Text:
    """What was typed, as it is written in a query; why not."""
    word = " ".join(clean(said).split())
    if target.what is What.EVENT:
        return word if word in (NONE, SEEN) else Text("It was seen, or it was not.", "要么出现过，要么没有。")
    if target.what is What.THRESHOLD:
        return _read_threshold(target, word)
    spec = vocabulary()[target.name]
    found = parse(spec, word)
    if isinstance(found, Problem):
        return found.text
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int | float):
        return f"{found:.9g}" if isinstance(found, float) else str(found)
    if isinstance(found, tuple):
        return ", ".join(found) or NONE
    return str(found)


def _read_threshold(target: Target, word: str) -> str | Text:
    p = target.param
    if p is None:
        try:
            return f"{float(word):.9g}"
        except ValueError:
            return Text(f"{word!r} is not a number.", f"{word!r} 不是数字。")
    from assistant.dialogue._thresholds import bounded

    return bounded(target.name, p, word) or word.replace(" ", "")


def _said(target: Target, value: str, d: Diagnosis, lang: str) -> tuple[Assumed, str]:
    """The assumption, and the sentence that makes it."""
    of, on, whose = _place(target, d)
    if target.what is What.EVENT and target.code is not None:
        called_ = f"{target.name} {target.code}"
        here = Text(on, f" {whose} 上" if whose else "")
        said = Text(
            f"what if there had been no {called_}{here.en}?", f"如果{here.zh}没有出现 {called_}，结论会变化吗？"
        )
        if value == SEEN:
            said = Text(f"what if {called_} had been seen{here.en}?", f"如果{here.zh}出现了 {called_}，结论会变化吗？")
        return Assumed(target.name, str(target.code), "none" if value == NONE else "is", of), said.in_(lang)
    if lang == "zh":
        value = {"yes": "是", "no": "否", NONE: "无"}.get(value, value)
    word = value if _PLAIN.fullmatch(value) or value in _HAN else f'"{value}"'
    said = Text(
        f"what if {target.name} were {word}{on}?",
        f"如果{f' {whose} 的' if whose else ''} {target.name} 为 {word}，结论会变化吗？",
    )
    return Assumed(target.name, value, "is", of), said.in_(lang)


def _place(target: Target, d: Diagnosis) -> tuple[str, str, str]:
    """Of what: the name that no slot has, and the words for all of it behind and ahead of the value."""
    if target.what is What.THRESHOLD or target.subject is None:
        return "", "", ""
    slots = questions.slots_of(target.subject, d.facts)
    there = questions.place(target.subject, d.facts)
    own = target.subject
    of = ""
    spec = d.facts.vocabulary.get(target.name)
    alike = spec is not None and spec.scope is own.scope
    if alike and own.scope not in _SLOTTED and reached(own.scope, d.facts, scoped(d, slots)) != [own]:
        of = called(own)
    name = of
    if of and not re.fullmatch(r"[^\s\"?,;!]+", own.id):
        name = f'{own.scope} "{own.id}"'
    return of, "".join(f" on {x}" for x in (name, there) if x), " 的 ".join(x for x in (there, name) if x)


def leaf_fact(target: Target) -> str:
    """The fact that the clause of a target asks for; empty where it asks for an event, or there is no clause."""
    return target.leaf.fact if isinstance(target.leaf, FactLeaf) else ""
