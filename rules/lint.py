"""What is wrong with a rule beyond its shape: the page, the tests, the graph, the reach.

Faults of the shape are found by `rules.loader`; the checks here need the whole set, or the
names that probes provide, which are handed in from above.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from knowledge.errors import Fault, nearest_hint
from knowledge.facts import Vocabulary, vocabulary
from rules.condition import (
    All,
    Any_,
    Condition,
    EventLeaf,
    FactLeaf,
    KnownLeaf,
    Leaf,
    Op,
    Reference,
    Take,
    facts_of,
    leaves,
)
from rules.model import Risk, Rule, Severity, facts_named
from rules.resolve import buckets

_SERIOUS = (Severity.ERROR, Severity.CRITICAL)
_APPLIES = ("arch", "vendor")  # what the engine looks at, and whose rule it is


def lint(rules: Sequence[Rule], provided: Collection[str], runbooks: Collection[str]) -> list[Fault]:
    """All faults of a rule set. `provided` are facts that probes, derivation or people can give."""
    if not rules:
        return [Fault("rules", 1, 1, "no rules were found: nothing was checked")]
    vocab = vocabulary()
    ids = {r.id for r in rules}
    faults: list[Fault] = []
    for rule in rules:
        for path, message, hint in _rule_faults(rule, ids, vocab, provided, runbooks):
            line, column = place(rule, path)
            faults.append(Fault(rule.file, line, column, message, hint))
    faults += _cycles(rules)
    faults += _overlaps(rules)
    return sorted(faults)


def place(rule: Rule, path: tuple[str | int, ...]) -> tuple[int, int]:
    """Line and column of a path in the rule's file (the file is read again: faults are rare)."""
    from knowledge import yamlfile

    shipped = Path(__file__).parent.parent / rule.file  # an absolute path stays what it is
    return yamlfile.load(shipped if shipped.is_file() else Path(rule.file)).at(path)


_Found = tuple[tuple[str | int, ...], str, str]


def _rule_faults(
    rule: Rule, ids: Collection[str], vocab: Vocabulary, provided: Collection[str], runbooks: Collection[str]
) -> Iterator[_Found]:
    yield from _page(rule)
    yield from _tests(rule)
    yield from _action(rule, runbooks)
    for i, e in enumerate(rule.explains):
        if e.rule and e.rule not in ids:
            yield ("explains", i, "rule"), f"explains {e.rule!r}, which is no rule", nearest_hint(e.rule, ids)
        if not e.rule and not e.by:
            yield ("explains", i), "explains names a rule or a catalogue (by)", ""
    told: set[str] = set()
    for condition in (rule.when, *rule.confirms, *rule.excludes):
        for name in sorted(facts_of(condition) - told):
            spec = vocab[name]
            told.add(name)
            if name not in provided and not spec.derived and spec.ask is None:
                message = f"nothing can tell {name}: no probe provides it, it is not derived, nobody is asked"
                yield condition.path, message, ""
    yield from _beside(rule, told, vocab, provided)
    yield from _fields(rule, vocab)
    for condition in (rule.when, *rule.confirms, *rule.excludes):
        yield from _constant(condition)
    for key in rule.applies:
        if key not in _APPLIES:
            yield ("applies", key), f"nothing looks at {key!r}", nearest_hint(key, _APPLIES)


def _beside(rule: Rule, told: Collection[str], vocab: Vocabulary, provided: Collection[str]) -> Iterator[_Found]:
    """Facts that stand beside the conditions: of `names`, `impact` and `shows`."""
    named: list[tuple[tuple[str | int, ...], str]] = [(("shows", i), name) for i, name in enumerate(rule.shows)]
    named += [(("names",), name) for name in facts_named(rule.names.en)]
    if rule.names and not rule.names.zh:
        yield ("names",), "names has no Chinese", ""
    if set(facts_named(rule.names.en)) != set(facts_named(rule.names.zh or rule.names.en)):
        yield ("names",), "names tells other facts in Chinese", ""
    if rule.impact is not None:
        named += [(("impact", "share"), rule.impact.share), (("impact", "window"), rule.impact.window)]
        if not rule.impact.of.zh:
            yield ("impact", "of"), "of has no Chinese", ""
    for path, name in named:
        if name and name not in told and name not in provided and not vocab[name].derived and vocab[name].ask is None:
            yield path, f"nothing can tell {name}: no probe provides it, it is not derived, nobody is asked", ""


def _page(rule: Rule) -> Iterator[_Found]:
    for key, text in (("title", rule.title), ("why", rule.why), ("false_positives", rule.false_positives)):
        if not text.en:
            yield (key,), f"{key} is missing", ""
        elif not text.zh:
            yield (key,), f"{key} has no Chinese", ""
    if len(rule.why.en) < 80:
        yield ("why",), "the page is too short to help: what it is, how we know, what it is confused with", ""
    if not rule.references:
        yield ("references",), "no reference", ""
    for i, text in enumerate(rule.action.then):
        if not text.zh:
            yield ("action", "then", i), "a step has no Chinese", ""
    if rule.action.text and not rule.action.text.zh:
        yield ("action", "text"), "the action has no Chinese", ""


def _tests(rule: Rule) -> Iterator[_Found]:
    kinds = {t.expect for t in rule.tests}
    for kind, meaning in (
        ("matched", "a case that matches"),
        ("not_matched", "a near miss"),
        ("unknown", "a case that stays unknown"),
    ):
        if kind not in kinds:
            yield ("tests",), f"the tests lack {meaning} (expect: {kind})", ""


def _action(rule: Rule, runbooks: Collection[str]) -> Iterator[_Found]:
    spec = rule.action
    if spec.bucket is None and not spec.resolve:
        yield ("action",), "an action has a bucket or resolvers", ""
    if spec.resolve and spec.bucket is None:
        yield ("action",), "resolvers need a bucket to fall back to", ""
    info = buckets().get(spec.bucket) if spec.bucket else None
    risky = info is not None and (spec.risk or info.risk) is not Risk.SAFE
    book = spec.runbook or (info.runbook if info else "")
    if (risky or rule.severity in _SERIOUS) and not book:
        yield ("action",), "a risky action or a severity of error and above needs a runbook", ""
    if book and book not in runbooks:
        yield ("action", "runbook"), f"no runbook {book!r}", nearest_hint(book, runbooks)


def _fields(rule: Rule, vocab: Vocabulary) -> Iterator[_Found]:
    events = [leaf.event for leaf in leaves(rule.when) if isinstance(leaf, EventLeaf)]
    known = {"code", *(name for e in events for name in vocab[e].fields)}
    for key in ("split_by", "severity_from"):
        name = getattr(rule, key)
        if name and name not in known:
            yield (key,), f"no event of this rule has a field {name!r}", nearest_hint(name, known)


def _constant(condition: Condition) -> Iterator[_Found]:
    """Conditions that can never hold, or always do: alone, or two of one group that exclude each other."""
    if isinstance(condition, KnownLeaf) and condition.negated:
        yield condition.path, f"never true: that {condition.fact} is not known proves nothing", ""
    if not isinstance(condition, All | Any_):
        return
    for child in condition.children:
        yield from _constant(child)
    for i, a in enumerate(condition.children):
        for b in condition.children[i + 1 :]:
            if isinstance(a, All | Any_) or isinstance(b, All | Any_):
                continue
            what = b.event if isinstance(b, EventLeaf) else b.fact
            if isinstance(condition, All) and (_opposite(a, b) or _disjoint(a, b)):
                yield b.path, f"never true together with the other condition on {what}", ""
            if isinstance(condition, Any_) and (_opposite(a, b) or _covering(a, b)):
                yield b.path, f"always true together with the other condition on {what}", ""


def _opposite(a: Leaf, b: Leaf) -> bool:
    return a.negated != b.negated and _shape(replace(a, negated=False)) == _shape(replace(b, negated=False))


def _same_measure(a: Leaf, b: Leaf) -> TypeGuard[FactLeaf]:
    """Whether two leaves compare one and the same number with plain values."""
    if not isinstance(a, FactLeaf) or not isinstance(b, FactLeaf) or a.each is not None:
        return False
    if isinstance(a.value, Reference) or isinstance(b.value, Reference):
        return False
    one, two = (replace(x, op=Op.IS, value=None, negated=False, path=()) for x in (a, b))
    return one == two


def _interval(leaf: FactLeaf) -> tuple[float, float] | None:
    if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
        return None
    low, high = {
        Op.AT_LEAST: (leaf.value, float("inf")),
        Op.ABOVE: (leaf.value, float("inf")),
        Op.AT_MOST: (float("-inf"), leaf.value),
        Op.BELOW: (float("-inf"), leaf.value),
        Op.IS: (leaf.value, leaf.value),
    }.get(leaf.op, (0.0, -1.0))
    return None if low > high or leaf.negated else (low, high)


def _disjoint(a: Leaf, b: Leaf) -> bool:
    if not (_same_measure(a, b) and _same_measure(b, a)):
        return False
    one, two = _interval(a), _interval(b)
    if one and two:
        strict = Op.ABOVE in (a.op, b.op) or Op.BELOW in (a.op, b.op)
        low, high = max(one[0], two[0]), min(one[1], two[1])
        return low > high or (low == high and strict)
    return a.op is Op.IS and b.op is Op.IS and not a.negated and not b.negated and a.value != b.value


def _covering(a: Leaf, b: Leaf) -> bool:
    """Whether one of the two holds for every number (a course over time may do neither)."""
    if not (_same_measure(a, b) and _same_measure(b, a)) or a.take is Take.SUSTAINED:
        return False
    one, two = _interval(a), _interval(b)
    if not one or not two or Op.IS in (a.op, b.op):
        return False
    low, high = max(one[0], two[0]), min(one[1], two[1])
    gap = low == high and {a.op, b.op} == {Op.ABOVE, Op.BELOW}
    everything = min(one[0], two[0]) == float("-inf") and max(one[1], two[1]) == float("inf")
    return everything and low <= high and not gap


def _cycles(rules: Sequence[Rule]) -> list[Fault]:
    graph = {r.id: {e.rule for e in r.explains if e.rule} for r in rules}
    faults: list[Fault] = []
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
            return faults
        except graphlib.CycleError as error:
            names = list(reversed(error.args[1]))  # graphlib lists effects before causes
            rule = next(r for r in rules if r.id == names[0])
            message = f"explains goes round in a circle: {' -> '.join(names)}"
            faults.append(Fault(rule.file, *place(rule, ("explains",)), message))
            graph[names[0]].discard(names[1])  # and look for the next one


def _overlaps(rules: Sequence[Rule]) -> list[Fault]:
    """Two rules with the same condition on the same scope, of which neither explains the other."""
    seen: dict[str, Rule] = {}
    faults = []
    for rule in rules:
        key = f"{rule.scope}:{sorted(rule.applies.items())}:{_shape(rule.when)}"
        other = seen.setdefault(key, rule)
        if other is rule:
            continue
        linked = any(e.rule == rule.id for e in other.explains) or any(e.rule == other.id for e in rule.explains)
        if not linked:
            faults.append(
                Fault(
                    rule.file,
                    *place(rule, ("when",)),
                    f"says the same as rule {other.id}, and neither explains the other",
                )
            )
    return faults


def _shape(condition: Condition) -> str:
    if isinstance(condition, All | Any_):
        word = "all" if isinstance(condition, All) else "any"
        return f"{word}({', '.join(sorted(_shape(c) for c in condition.children))})"
    if isinstance(condition, KnownLeaf):
        return f"known {condition.fact} {condition.negated}"
    plain = replace(condition, path=())
    if isinstance(plain, EventLeaf) and plain.after is not None:
        plain = replace(plain, after=replace(plain.after, path=()))
    return repr(plain)
