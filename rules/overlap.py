"""Rules that hold together and contradict each other: one implies the other, they advise different things, nobody explains.

Both findings would stand in the answer as roots, each with its own first step. What is no contradiction:

* IGNORE beside MONITOR: neither asks for anything now.
* A finding of severity info beside another one: it is a note, which is never among the steps and never in the verdict.
  (A rule whose action keeps the thing from being used is no note, whatever severity its file says: see the engine.)
  But a note that says IGNORE, "no action is needed now", does contradict an action.
* MONITOR of the wider rule beside an action of the narrower one, unless the wider one is more severe: "act when it
  repeats or grows" is what MONITOR says, and the narrower rule is that case.

An action that is resolved is worked out for the codes that the narrower condition names, as if nothing else were known.
Where that does not tell the bucket (a sub-code decides, the driver's own word is part of the condition), nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from knowledge.facts import Vocabulary
from knowledge.observation import Event, Observation, Scope, gpu
from knowledge.record import dataclass
from rules.condition import Any_, EventLeaf, FactLeaf, Op, facts_of
from rules.engine import severity_of
from rules.factbase import FactBase
from rules.implies import Way, implies, ways
from rules.index import Index
from rules.model import Bucket, Rule, RuleStatus, Severity
from rules.resolve import LOOKS_AT, Advice, Case, advise

_QUIET = (Bucket.IGNORE, Bucket.MONITOR)
# Subjects that are part of one node: their events are the node's.
_ON_NODE = frozenset(Scope) - {
    Scope.CLUSTER, Scope.RACK, Scope.SWITCH, Scope.NODE, Scope.JOB, Scope.RANK, Scope.COLLECTIVE, Scope.DOCUMENT,
    Scope.OBJECT, Scope.TEAM,
}  # fmt: skip

_Events: TypeAlias = tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two rules of which the second holds wherever the first does."""

    narrow: Rule
    wide: Rule
    advised: tuple[Bucket, Bucket] | None  # what they advise; None: they ask the very same


def overlaps(rules: Sequence[Rule], vocabulary: Vocabulary, unread: Collection[str] = ()) -> Iterator[Overlap]:
    """Every pair that says the same, or that contradicts each other, and of which neither explains the other.

    `unread`: ids of rules of which too little could be read to judge them.
    """
    rules = [r for r in rules if r.status is not RuleStatus.RETIRED]
    explained = _Explained(rules)
    for a, b in _near([r for r in rules if r.id not in unread]):
        there, back = _covers(a, b, vocabulary), _covers(b, a, vocabulary)
        if not (there or back) or explained.either(a, b):
            continue
        if there and back:
            yield Overlap(a, b, None)
            continue
        narrow, wide = (a, b) if there else (b, a)
        advised = None if _ruled_out(narrow, wide, vocabulary) else _contradiction(narrow, wide, vocabulary)
        if advised:
            yield Overlap(narrow, wide, advised)


def _near(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """The pairs that ask for one fact, each once."""
    asking: dict[str, list[int]] = defaultdict(list)
    for i, rule in enumerate(rules):
        for name in facts_of(rule.when):
            asking[name].append(i)
    pairs = {(i, j) for places in asking.values() for n, i in enumerate(places) for j in places[n + 1 :]}
    return ((rules[i], rules[j]) for i, j in sorted(pairs))


class _Explained:
    """Which rules explain which, directly or through others."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._index = Index(rules)
        self._below: dict[str, frozenset[str]] = {}

    def either(self, a: Rule, b: Rule) -> bool:
        """Whether one of the two explains the other."""
        return b.id in self._effects(a.id) or a.id in self._effects(b.id)

    def _effects(self, name: str) -> frozenset[str]:
        if name not in self._below:
            seen: set[str] = set()
            stack = [name]
            while stack:
                more = self._index.effects(stack.pop()) - seen
                seen |= more
                stack += more
            self._below[name] = frozenset(seen)
        return self._below[name]


# --- where both hold ----------------------------------------------------------------------


def _covers(a: Rule, b: Rule, vocabulary: Vocabulary) -> bool:
    """Whether `b` holds wherever `a` does: of the same subject, or of the node that it is a part of."""
    if not _of_a_kind(a.applies, b.applies):
        return False
    if a.scope is b.scope:
        return implies(a.when, b.when, vocabulary)
    return b.scope is Scope.NODE and a.scope in _ON_NODE and implies(a.when, b.when, vocabulary, of_node=True)


def _of_a_kind(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    """Whether what `a` applies to is among what `b` applies to."""
    return all(key in a and _words(a[key]) <= _words(wanted) for key, wanted in b.items() if wanted)


def _words(raw: object) -> set[str]:
    return {str(word).lower() for word in (raw if isinstance(raw, list | tuple) else [raw])}


def _ruled_out(narrow: Rule, wide: Rule, vocabulary: Vocabulary) -> bool:
    """Whether the wider rule excludes itself wherever the narrower one holds."""
    same = narrow.scope is wide.scope
    return same and bool(wide.excludes) and implies(narrow.when, Any_(wide.excludes), vocabulary)


# --- what both advise ---------------------------------------------------------------------


def _contradiction(narrow: Rule, wide: Rule, vocabulary: Vocabulary) -> tuple[Bucket, Bucket] | None:
    """What the two advise where they contradict each other, in the first way in which they do."""
    for way in ways(narrow.when):
        for events in _worlds(way):
            one, two = (_advice(rule, way, events, vocabulary) for rule in (narrow, wide))
            if one and two and _contradict((narrow, one), (wide, two), events or ()):
                return one.bucket, two.bucket
    return None


def _worlds(way: Way) -> Iterator[_Events | None]:
    """The events that make a way come true, code by code; None where it does not tell which those are."""
    found = [leaf for leaf in way if isinstance(leaf, EventLeaf) and not leaf.negated]
    if not found:
        yield ()
        return
    codes = _codes(found[0]) if len(found) == 1 else ()
    if not codes:
        yield None
    for code in codes:
        yield _completed(Observation(found[0].event, gpu("0000:01:00.0", "node"), Event(code)))


def _codes(leaf: EventLeaf) -> Collection[int]:
    named = [t.value for t in leaf.where if t.field == "code" and t.op in (Op.IS, Op.IN)]
    values = [v if isinstance(v, tuple) else (v,) for v in named]
    return sorted({v for vs in values[:1] for v in vs if isinstance(v, int)})


def _completed(o: Observation) -> _Events:
    """The event with what the catalogue says of its code."""
    from knowledge.derive import derive

    return tuple(x for x in derive([o]) if x.fact == o.fact)


def _advice(rule: Rule, way: Way, events: _Events | None, vocabulary: Vocabulary) -> Advice | None:
    """What a rule advises when these events are all that is known; None when that is not enough to tell."""
    asked = {name for resolver in rule.action.resolve for name in LOOKS_AT[resolver]}
    told = {leaf.fact for leaf in way if isinstance(leaf, FactLeaf)}
    if rule.action.resolve and (events is None or asked & told or any(map(_undecided, events))):
        return None
    case = Case(rule, gpu("0000:01:00.0", "node"), events or (), FactBase(events or (), vocabulary))
    return advise(case)


def _undecided(o: Observation) -> bool:
    """Whether the code alone does not tell the action."""
    return isinstance(o.value, Event) and o.value.get("decoded") is False


def _contradict(narrow: tuple[Rule, Advice], wide: tuple[Rule, Advice], events: _Events) -> bool:
    one, two = narrow[1].bucket, wide[1].bucket
    if one is two or (one in _QUIET and two in _QUIET):
        return False
    if Bucket.IGNORE in (one, two):
        return True
    how, how_wide = (severity_of(rule, events, advice) for rule, advice in (narrow, wide))
    if Severity.INFO in (how, how_wide):
        return False
    return two is not Bucket.MONITOR or how_wide.rank > how.rank
