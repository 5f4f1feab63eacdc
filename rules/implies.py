"""Whether one condition holds wherever another one does: told from the two trees alone, for every possible set of facts.

The check is sound, not complete. Where it says yes, no facts make the first condition true of a subject and leave the
second one false or unknown about that subject. Where it says no, nobody knows. What it does not see:

* two leaves that only together imply a third (above 5 and below 7 is 6 for a whole number), and an ``any`` whose
  branches only together cover what the other one asks;
* that a condition can never be true (it would imply everything), and what follows from one fact for another;
* windows of different length over time, different percentiles, thresholds that different references give;
* what ``on: self`` has to do with ``on: node``, and one value with a quantifier over several;
* few events as the reason for something (``at_most``), and bursts (``gap``) of different events: more of
  them may join two bursts into one;
* of different subjects only that a part's events are its node's, and not the other way round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias, cast

from knowledge.facts import Type, Vocabulary
from knowledge.observation import Value
from knowledge.record import dataclass
from rules.compare import compare, version
from rules.condition import (
    All,
    Any_,
    Condition,
    EventLeaf,
    FactLeaf,
    FieldTest,
    KnownLeaf,
    Leaf,
    On,
    Op,
    Operand,
    Quantifier,
    Reference,
    Take,
)

_MOST = 256  # ways in which a condition can come true that are looked at
_ORDERED = {Op.AT_LEAST, Op.AT_MOST, Op.ABOVE, Op.BELOW}
_OPPOSITE = {Op.IS: Op.IS_NOT, Op.IS_NOT: Op.IS, Op.IN: Op.NOT_IN, Op.NOT_IN: Op.IN}
_VERSIONS = {Op.VERSION_BELOW: Op.BELOW, Op.VERSION_AT_LEAST: Op.AT_LEAST}

Way: TypeAlias = "tuple[Leaf, ...]"  # leaves that together make a condition true


def implies(a: Condition, b: Condition, vocabulary: Vocabulary, *, of_node: bool = False) -> bool:
    """True only when `b` is true of every subject of which `a` is, whatever the facts are.

    `of_node`: only when `b` is then true of the node that the subject of `a` is a part of.
    """
    a, b = bare(a), bare(b)
    found = ways(a)
    if not found:
        return not of_node and shape(a) == shape(b)
    return all(_holds(b, way, vocabulary, of_node) for way in found)


def bare(condition: Condition) -> Condition:
    """The condition without the places in its file."""
    if isinstance(condition, All | Any_):
        return replace(condition, path=(), children=tuple(bare(child) for child in condition.children))
    if isinstance(condition, EventLeaf) and condition.after is not None and condition.after.path:
        condition = replace(condition, after=replace(condition.after, path=()))
    return replace(condition, path=()) if condition.path else condition


def shape(condition: Condition) -> str:
    """The same text for bare conditions that ask the same, in whatever order their parts are written."""
    if isinstance(condition, All | Any_):
        word = "all" if isinstance(condition, All) else "any"
        return f"{word}({', '.join(sorted(shape(c) for c in condition.children))})"
    return repr(condition)


def ways(condition: Condition) -> list[Way]:
    """Every set of leaves that makes the condition true; none when there are too many to look at."""
    if not isinstance(condition, All | Any_):
        return [(condition,)]
    parts = [ways(child) for child in condition.children]
    if not all(parts):
        return []
    if isinstance(condition, Any_):
        found = [way for part in parts for way in part]
    elif math.prod(map(len, parts)) > _MOST:
        return []
    else:
        found = [tuple(leaf for way in chosen for leaf in way) for chosen in product(*parts)]
    return found if len(found) <= _MOST else []


def _holds(condition: Condition, given: Way, vocabulary: Vocabulary, of_node: bool) -> bool:
    """Whether the condition is true where all leaves of `given` are."""
    if isinstance(condition, All):
        return all(_holds(child, given, vocabulary, of_node) for child in condition.children)
    if isinstance(condition, Any_):
        return any(_holds(child, given, vocabulary, of_node) for child in condition.children)
    if of_node:
        return any(_is_of_node(leaf, condition) for leaf in given)
    return any(_leaf_implies(leaf, condition, vocabulary) for leaf in given)


def _leaf_implies(a: Leaf, b: Leaf, vocabulary: Vocabulary) -> bool:
    if a == b:
        return True
    if isinstance(b, KnownLeaf):
        return not b.negated and _answers(a) == b.fact
    if isinstance(a, EventLeaf) and isinstance(b, EventLeaf):
        return _event_implies(a, b)
    if isinstance(a, FactLeaf) and isinstance(b, FactLeaf):
        return _fact_implies(a, b, vocabulary)
    return False


def _answers(leaf: Leaf) -> str:
    """The fact that was answered about the subject where this leaf is true."""
    if isinstance(leaf, FactLeaf) and leaf.each is None and leaf.on is On.SELF:
        return leaf.fact
    return leaf.fact if isinstance(leaf, KnownLeaf) and not leaf.negated else ""


# --- one value ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Test:
    """What is asked of one value, with `not` drawn into the operator where it has an exact opposite."""

    op: Op
    value: Operand
    negated: bool = False

    @classmethod
    def of(cls, op: Op, value: Operand, negated: bool = False) -> _Test:
        return cls(_OPPOSITE[op], value) if negated and op in _OPPOSITE else cls(op, value, negated)

    def holds(self, value: object) -> bool:
        """Whether this is true of a value. Of what is no version, no question about versions is."""
        if self.op in _VERSIONS and not (isinstance(value, str) and version(value)):
            return False
        return compare(cast("Value", value), self.op, self.value) is not self.negated

    @property
    def named(self) -> tuple[object, ...]:
        """The values that are named one by one."""
        if self.op in (Op.IN, Op.NOT_IN) and isinstance(self.value, tuple):
            return self.value
        return (self.value,)


def _entails(a: _Test, b: _Test, type_: Type | None) -> bool:
    """Whether every value of a type that `a` holds of is one that `b` holds of. Without a type: any value at all."""
    if a == b:
        return True
    if isinstance(a.value, Reference) or isinstance(b.value, Reference):
        return a.value == b.value and _same_threshold(a, b, type_)
    if type_ is Type.BOOL:
        return all(b.holds(v) for v in (True, False) if a.holds(v))
    if a.op in (Op.IS, Op.IN):
        return all(b.holds(v) for v in a.named)
    if b.op in (Op.IS_NOT, Op.NOT_IN):
        return not any(a.holds(v) for v in b.named)
    if a.op in _ORDERED and b.op in _ORDERED:
        return _along(a, b, a.value, b.value, nan=type_ not in (Type.INT, Type.FLOAT))
    if a.op in _VERSIONS and b.op in _VERSIONS:
        one, two = (replace(t, op=_VERSIONS[t.op]) for t in (a, b))
        return _along(one, two, version(str(a.value)), version(str(b.value)), nan=False)
    if a.op is b.op is Op.CONTAINS and a.negated == b.negated:
        return _contains(b, a, type_) if a.negated else _contains(a, b, type_)
    return False


def _along(a: _Test, b: _Test, low: Any, high: Any, *, nan: bool) -> bool:
    """`_entails` for an order, of which the thresholds' own order is all that counts: 0, 2 and 4 lie around them."""
    first, second = (1, 3) if low < high else (3, 1) if low > high else (1, 1)
    a, b = replace(a, value=first), replace(b, value=second)
    return all(b.holds(place) for place in (0, 1, 2, 3, 4, *([math.nan] if nan else [])) if a.holds(place))


def _same_threshold(a: _Test, b: _Test, type_: Type | None) -> bool:
    """`_entails` for one and the same threshold that another fact gives, which may be no number."""
    if type_ not in (Type.INT, Type.FLOAT) or not {a.op, b.op} <= {*_ORDERED, Op.IS, Op.IS_NOT}:
        return False
    for threshold in (0, math.nan):
        one, two = replace(a, value=threshold), replace(b, value=threshold)
        if not all(two.holds(v) for v in (-1, 0, 1) if one.holds(v)):
            return False
    return True


def _contains(a: _Test, b: _Test, type_: Type | None) -> bool:
    """Whether what holds one of `a`'s words holds one of `b`'s."""
    ours, theirs = (t.value if isinstance(t.value, tuple) else (t.value,) for t in (a, b))
    if type_ is Type.SET:
        return set(ours) <= set(theirs)
    return all(any(str(y).casefold() in str(x).casefold() for y in theirs) for x in ours)


# --- facts --------------------------------------------------------------------------------


def _fact_implies(a: FactLeaf, b: FactLeaf, vocabulary: Vocabulary) -> bool:
    if not _same_look(a, b):
        return False
    type_: Type | None = vocabulary[a.fact].type
    if a.peer_ratio:
        type_ = Type.FLOAT
    elif a.take not in (Take.LAST, Take.SUSTAINED):
        type_ = None  # an increase between endless values is no number
    if a.each is None and a.take is not Take.SUSTAINED:
        return _entails(_test(a), _test(b), type_)
    return _many_imply(a, b, type_)


def _same_look(a: FactLeaf, b: FactLeaf) -> bool:
    """Whether two leaves look at the same values of the same subjects."""
    blank = {"op": Op.IS, "value": None, "each": None, "negated": False, "min_peers": 0}
    if replace(a, **blank) != replace(b, **blank) or (a.each is None) != (b.each is None):  # type: ignore[arg-type]
        return False
    return not a.peer_ratio or b.min_peers <= a.min_peers


def _test(leaf: FactLeaf, negated: bool | None = None) -> _Test:
    return _Test.of(leaf.op, leaf.value, leaf.negated if negated is None else negated)


def _many_imply(a: FactLeaf, b: FactLeaf, type_: Type | None) -> bool:
    """`_fact_implies` for several values, of subjects or samples: so many hold of `a`, at least as many of `b`."""
    if (a.op in _VERSIONS) != (b.op in _VERSIONS):
        return False  # one is unknown of what is no version, the other is not
    (a_many, a_not), (b_many, b_not) = _quantified(a), _quantified(b)
    if a_not != b_not:
        return False
    if a_not:
        a, b, a_many, b_many = b, a, b_many, a_many
    one, two = _test(a, False), _test(b, False)
    if a_many.kind == "none" or b_many.kind == "none":
        return a_many == b_many and _entails(two, one, type_)
    return _enough(a_many, b_many) and _entails(one, two, type_)


def _quantified(leaf: FactLeaf) -> tuple[Quantifier, bool]:
    """The quantifier of a leaf and whether it is negated: not any is none, and not none is any."""
    each = leaf.each or Quantifier("all")  # of the samples of a window
    if leaf.negated and each.kind in ("any", "none"):
        return Quantifier("none" if each.kind == "any" else "any"), False
    return each, leaf.negated


def _enough(a: Quantifier, b: Quantifier) -> bool:
    """Whether as many as `a` asks for are as many as `b` asks for, of however many there are (at least one)."""
    if b.kind == "any" or (b.kind == "at_least" and b.number <= 1):
        return True
    if b.kind == "share":
        return a.kind == "all" or (a.kind == "share" and a.number >= b.number)
    if b.kind == "at_least":
        return a.kind == "at_least" and a.number >= b.number
    return a.kind == "all" or (a.kind == "share" and a.number >= 1)


# --- events -------------------------------------------------------------------------------


def _event_implies(a: EventLeaf, b: EventLeaf) -> bool:
    if a.negated != b.negated:
        return False
    if a.negated:
        return a.on is b.on and _is_plain(a) and _is_plain(b) and _means(b, a)
    if _is_same_but_count(a, b):
        return a.at_least >= b.at_least and (math.inf if a.at_most is None else a.at_most) <= (
            math.inf if b.at_most is None else b.at_most
        )
    return _reaches(a, b) and _as_many(a, b)


def _is_of_node(a: Leaf, b: Leaf) -> bool:
    """Whether events that are seen from a part are seen as well from the node that it is a part of."""
    if not isinstance(a, EventLeaf) or not isinstance(b, EventLeaf) or a.negated or b.negated:
        return False
    return _of_node(a, b) and (b.gap is None or b.at_least <= 1) and _as_many(a, b)


def _of_node(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether all that `a` looks at from a part is looked at by `b` from its node."""
    here = b.on is On.SELF or (b.on is On.NODE and a.on is not On.SELF)
    return here and (a.after is None or b.after is None or _of_node(a.after, b.after))


def _reaches(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether all that `a` looks at is looked at by `b`, from the same subject."""
    here = a.on is b.on or (a.on is On.OTHERS and b.on is On.NODE)
    return here and (a.after is None or b.after is None or _reaches(a.after, b.after))


def _as_many(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether `b` counts enough events when `a` does, where `b` looks at all that `a` looks at."""
    if b.at_most is not None or a.at_least < 1 or not _selects(a, b):
        return False
    if b.at_least <= 1:
        return True  # one event of `a` is enough
    if a.at_least < b.at_least or not (b.gap is None or _is_same_but_span(a, b)):
        return False
    return b.within is None or (a.within is not None and a.within <= b.within)


def _is_plain(leaf: EventLeaf) -> bool:
    """Whether the leaf asks for one event of its kind, whenever it was."""
    return replace(leaf, event="", where=(), on=On.SELF, negated=False, path=()) == EventLeaf("")


def _is_same_but_count(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether two leaves count the same events in the same way: `within` is a span where several are asked for."""
    alike = replace(a, at_least=1, at_most=None) == replace(b, at_least=1, at_most=None)
    return alike and (a.within is None or (a.at_least > 1) == (b.at_least > 1))


def _is_same_but_span(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether two leaves look at the same events, and take the same of them as one burst."""
    one, two = (replace(leaf, at_least=1, at_most=None, within=None) for leaf in (a, b))
    return one == two


def _selects(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether each event that counts for `a` counts for `b`, and those of one group of `a` stand in one group of `b`."""
    if not (_means(a, b) and _is_recent(a, b)):
        return False
    told = {*a.same, *(t.field for t in a.where)}
    one = {*a.same, *(t.field for t in a.where if t.op is Op.IS)}
    if not set(b.same) <= (told if b.at_least <= 1 else one):
        return False
    if b.after is None:
        return True
    first, then = a.after, b.after
    return first is not None and _means(first, then) and (first.within or 0) <= (then.within or 0)


def _means(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether what `a` is about is among what `b` is about."""
    return a.event == b.event and all(any(_narrower(x, y) for x in a.where) for y in b.where)


def _narrower(a: FieldTest, b: FieldTest) -> bool:
    return a.field == b.field and _entails(_Test.of(a.op, a.value), _Test.of(b.op, b.value), None)


def _is_recent(a: EventLeaf, b: EventLeaf) -> bool:
    """Whether the events of `a` are as recent as `b` asks. Where several are asked for, `within` is a span."""
    if b.within is None or b.at_least > 1:
        return True
    return a.at_least <= 1 and a.within is not None and a.within <= b.within
