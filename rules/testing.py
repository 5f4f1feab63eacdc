"""Rules' own tests: recorded text through the real parsers, facts laid out by hand, absence on purpose.

`run` is given the parser from above, because rules and probes never know each other.

A case's ``given`` may hold:

* ``kmsg``: kernel-log text (a whole log: what it does not show did not happen)
* ``log``: application-log text
* ``input``: text of any recognised format, or a list of such texts
* ``facts``: list of ``{fact, value, on, status, at, origin}``; ``on`` is ``gpu:ID``, ``link:N@gpu:ID``, ...
* ``as_of``: duration after the epoch of the times in ``facts``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from knowledge.errors import GpudiagError
from knowledge.facts import Kind, Type, Vocabulary, vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Source, Status, Subject, Value, node
from knowledge.record import dataclass
from knowledge.units import parse_duration
from rules.condition import All, Any_, Condition, EventLeaf, FactLeaf, KnownLeaf
from rules.engine import applies
from rules.engine import run as evaluate_rules
from rules.factbase import FactBase
from rules.model import Rule, RuleTest

Parse: TypeAlias = Callable[[str, str], list[Observation]]  # (kind: kmsg|log|input, text) -> observations
UNREADABLE = (GpudiagError, KeyError, ValueError, TypeError, AttributeError)  # what a case of the wrong shape raises
BASE = 1_700_000_000 * 10**9  # ns; times in cases are durations after this moment


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case gave."""

    rule: str
    case: str
    expected: str
    got: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        """True when the case gave what it expects."""
        return not self.problem


def run(rules: Iterable[Rule], parse: Parse) -> list[Outcome]:
    """Every test of every rule, each against its own rule alone."""
    return [check_case(rule, case, parse) for rule in rules for case in rule.tests]


def check_case(rule: Rule, case: RuleTest, parse: Parse) -> Outcome:
    """One case. A case that cannot be read is a failure, never a pass."""
    try:
        facts = facts_of_case(case, parse)
    except UNREADABLE as error:
        return Outcome(rule.id, case.name, case.expect, "unreadable", f"the case cannot be read: {error!r}")
    result = evaluate_rules([rule], facts)
    everything = [*result.findings, *result.ruled_out]
    got = "matched" if result.findings else "not_matched"
    if (not everything and result.undecided) or (not everything and not _decided_false(rule, facts)):
        got = "unknown"
    problem = (
        ""
        if got == case.expect or (case.grade == "ruled_out" and result.ruled_out)
        else f"expected {case.expect}, got {got}"
    )
    if not problem and case.grade and case.grade not in {f.grade for f in everything}:
        problem = f"expected grade {case.grade}, got {', '.join(f.grade for f in everything) or 'none'}"
    if not problem and case.bucket and case.bucket not in {f.advice.bucket for f in everything}:
        problem = f"expected action {case.bucket}, got {', '.join(f.advice.bucket for f in everything) or 'none'}"
    if not problem and case.count is not None and case.count != len(everything):
        problem = f"expected {case.count} findings, got {len(everything)}"
    return Outcome(rule.id, case.name, case.expect, got, problem)


def _decided_false(rule: Rule, facts: FactBase) -> bool:
    """True when for every subject the rule is about another kind, or its condition is false."""
    from rules.evaluate import evaluate
    from rules.proof import Truth

    subjects = facts.subjects(rule.scope)
    return bool(subjects) and all(
        not applies(rule, s, facts) or evaluate(rule.when, s, facts).truth is Truth.FALSE for s in subjects
    )


def facts_of_case(case: RuleTest, parse: Parse) -> FactBase:
    """The fact base that a case describes, with derived facts."""
    from knowledge.derive import derive

    vocab = vocabulary()
    observations: list[Observation] = []
    for key in ("kmsg", "log", "input"):
        texts = case.given.get(key, [])
        for text in [texts] if isinstance(texts, str) else texts:
            if not isinstance(text, str):
                raise TypeError(f"{key} holds text, not {text!r}")
            observations += parse(key, text)
    observations += [_fact(item, vocab) for item in case.given.get("facts", [])]
    unknown = set(case.given) - {"kmsg", "log", "input", "facts", "as_of"}
    if unknown:
        raise ValueError(f"given has no {', '.join(sorted(unknown))}")
    as_of = BASE + parse_duration(case.given["as_of"]) if "as_of" in case.given else None
    return FactBase(derive(observations), vocab, as_of)


def _fact(item: Mapping[str, Any], vocab: Vocabulary) -> Observation:
    unknown = set(item) - {"fact", "value", "on", "status", "at", "origin", "detail"}
    if unknown:
        raise ValueError(f"a fact of a case has no {', '.join(sorted(unknown))}")
    spec = vocab[item["fact"]]
    status = Status(item.get("status", "ok"))
    value = _value(item.get("value"), spec.type is Type.EVENT, spec.type is Type.SET) if status is Status.OK else None
    if status is Status.OK and not spec.accepts(value):
        raise ValueError(f"{spec.name} does not accept {item.get('value')!r}")
    default = Scope.NODE if status is Status.NONE_SEEN and spec.kind is Kind.EVENT else spec.scope
    subject = subject_of(item["on"]) if "on" in item else _default_subject(default)
    at = BASE + parse_duration(item["at"]) if "at" in item else None
    return Observation(
        spec.name, subject, value, status, Source("case"), at, Clock.REALTIME if at is not None else Clock.NONE,
        origin=Origin(item.get("origin", "measured")), detail=item.get("detail", ""),
    )  # fmt: skip


def _value(raw: Any, event: bool, is_set: bool) -> Value:
    if event:
        fields = dict(raw or {})
        return Event(fields.pop("code", None), fields)
    return tuple(raw) if is_set and isinstance(raw, list) else raw


def _default_subject(scope: Scope) -> Subject:
    names = {Scope.NODE: "n1", Scope.GPU: "0000:01:00.0", Scope.LINK: "0", Scope.PORT: "mlx5_0/1"}
    here = node("n1")
    if scope is Scope.NODE:
        return here
    parent = Subject(Scope.GPU, "0000:01:00.0", here) if scope in (Scope.LINK, Scope.MIG) else here
    if scope in (Scope.DOCUMENT, Scope.JOB, Scope.RANK, Scope.CLUSTER):
        return Subject(scope, "1")
    return Subject(scope, names.get(scope, "1"), parent)


def subject_of(text: str) -> Subject:
    """``gpu:0000:3b:00.0``, ``link:3@gpu:0000:3b:00.0``, ``node:n1``, ``gpu:ID@node:n2``."""
    head, _, rest = text.partition("@")
    scope, _, identifier = head.partition(":")
    kind = Scope(scope)
    if rest:
        return Subject(kind, identifier, subject_of(rest))
    if kind is Scope.NODE:
        return node(identifier)
    if kind in (Scope.DOCUMENT, Scope.JOB, Scope.RANK, Scope.CLUSTER):
        return Subject(kind, identifier)
    parent = Subject(Scope.GPU, "0000:01:00.0", node("n1")) if kind in (Scope.LINK, Scope.MIG) else node("n1")
    return Subject(kind, identifier, parent)


# --- mutation -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Survivor:
    """A change of a rule that none of its tests notices."""

    rule: str
    path: str
    change: str


def mutate(rules: Sequence[Rule], parse: Parse) -> list[Survivor]:
    """Flip every clause of every rule; a mutant that passes all tests survives."""
    out = []
    for rule in rules:
        prepared = [(case, facts) for case in rule.tests if (facts := _readable(case, parse)) is not None]
        expected = [_signature(rule, facts) for _, facts in prepared]
        for path, change, mutant in mutants(rule):
            if [_signature(mutant, facts) for _, facts in prepared] == expected:
                out.append(Survivor(rule.id, path, change))
    return out


def _readable(case: RuleTest, parse: Parse) -> FactBase | None:
    """The facts of a case; None when it cannot be read, which `run` reports."""
    try:
        return facts_of_case(case, parse)
    except UNREADABLE:
        return None


def _signature(rule: Rule, facts: FactBase) -> tuple[object, ...]:
    result = evaluate_rules([rule], facts)
    found = tuple(sorted((f.id, str(f.grade)) for f in (*result.findings, *result.ruled_out)))
    return (found, _decided_false(rule, facts), bool(result.undecided))


def mutants(rule: Rule) -> Iterable[tuple[str, str, Rule]]:
    """The rule with one clause negated, or one group turned from all to any."""
    for path, change, when in _mutated(rule.when):
        yield path or "when", change, replace(rule, when=when)
    for path, change, confirms in _mutated_each(rule.confirms):
        yield path, change, replace(rule, confirms=confirms)
    for path, change, excludes in _mutated_each(rule.excludes):
        yield path, change, replace(rule, excludes=excludes)


def _mutated_each(conditions: tuple[Condition, ...]) -> Iterable[tuple[str, str, tuple[Condition, ...]]]:
    for i, condition in enumerate(conditions):
        for path, change, new in _mutated(condition):
            yield path, change, (*conditions[:i], new, *conditions[i + 1 :])


def _mutated(condition: Condition) -> Iterable[tuple[str, str, Condition]]:
    path = ".".join(map(str, condition.path))
    if isinstance(condition, EventLeaf | FactLeaf | KnownLeaf):
        yield path, "negated", replace(condition, negated=not condition.negated)
        return
    if len(condition.children) > 1:
        other: Condition = (
            Any_(condition.children, condition.path)
            if isinstance(condition, All)
            else All(condition.children, condition.path)
        )
        yield path, "all turned into any" if isinstance(condition, All) else "any turned into all", other
    for i, child in enumerate(condition.children):
        for where, change, new in _mutated(child):
            yield (
                where,
                change,
                replace(condition, children=(*condition.children[:i], new, *condition.children[i + 1 :])),
            )
