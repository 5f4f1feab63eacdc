"""Conditions as a typed tree: ``all`` and ``any`` over leaves, with negation in the leaves.

A leaf asks one thing of one fact. It is checked against the vocabulary when the rule is
loaded, so a condition that exists can be evaluated. The surface forms::

    {event: xid, where: {code: 13}, same: [gpc, tpc], count: {at_least: 2}, within: 24h, gap: 3m,
     on: self|node|others, after: {event: ..., where: ..., within: 60s}}
    {fact: NAME, op: at_least, value: 5}
    {fact: NAME, op: at_least, value: {fact: OTHER, times: 0.9, plus: -5}}
    {fact: NAME, take: increase|rate|sustained|percentile, within: 10m, per: 1m, percentile: 95,
     coverage: 0.8, op: above, value: 16}
    {fact: NAME, on: below|peers|node, each: any|all|none|{at_least: 2}|{share: 0.5}, op: ..., value: ...}
    {fact: NAME, via: [process, gpu], each: any, op: ..., value: ...}
    {fact: NAME, peers: ratio, op: below, value: 0.8, min_peers: 3}     own value over the median of the others
    {known: NAME}                                                      somebody answered, whatever the answer
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from knowledge.errors import nearest_hint
from knowledge.facts import FactSpec, Kind, Type, Vocabulary
from knowledge.observation import Scalar, Scope
from knowledge.units import parse_duration

Path: TypeAlias = tuple[str | int, ...]
Report: TypeAlias = Callable[[Path, str, str], None]


class Op(StrEnum):
    """How a value is compared."""

    IS = "is"
    IS_NOT = "is_not"
    IN = "in"
    NOT_IN = "not_in"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    ABOVE = "above"
    BELOW = "below"
    CONTAINS = "contains"
    MATCHES = "matches"
    VERSION_BELOW = "version_below"
    VERSION_AT_LEAST = "version_at_least"


ORDERED = {Op.AT_LEAST, Op.AT_MOST, Op.ABOVE, Op.BELOW}
_OPS: Mapping[Type, frozenset[Op]] = {
    Type.BOOL: frozenset({Op.IS, Op.IS_NOT}),
    Type.INT: frozenset({Op.IS, Op.IS_NOT, Op.IN, Op.NOT_IN} | ORDERED),
    Type.FLOAT: frozenset({Op.IS, Op.IS_NOT} | ORDERED),
    Type.STR: frozenset({Op.IS, Op.IS_NOT, Op.IN, Op.NOT_IN, Op.CONTAINS, Op.MATCHES, Op.VERSION_BELOW, Op.VERSION_AT_LEAST}),
    Type.ENUM: frozenset({Op.IS, Op.IS_NOT, Op.IN, Op.NOT_IN}),
    Type.SET: frozenset({Op.CONTAINS, Op.IS, Op.IS_NOT}),
    Type.SUBJECT: frozenset({Op.IS, Op.IS_NOT}),
    Type.EVENT: frozenset(),
}  # fmt: skip


class Take(StrEnum):
    """What is taken of a fact over time."""

    LAST = "last"
    INCREASE = "increase"  # growth within the window, resets of a counter survived
    RATE = "rate"  # increase per `per`
    SUSTAINED = "sustained"  # every sample of the window satisfies the comparison
    PERCENTILE = "percentile"


class On(StrEnum):
    """Which subjects a leaf looks at, seen from the rule's subject."""

    SELF = "self"  # the subject, what it is part of, and (events) what is part of it
    NODE = "node"  # everything on the same node
    OTHERS = "others"  # the same scope on the same node, without the subject
    BELOW = "below"  # parts of the subject
    VIA = "via"  # along relations


_PLACES = frozenset(On) - {On.VIA}  # what `on` may say; `via` names its relations


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How many of several subjects must satisfy a leaf."""

    kind: str  # any, all, none, at_least, share
    number: float = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """A threshold that another fact of the same subject gives: value * times + plus."""

    fact: str
    times: float = 1.0
    plus: float = 0.0


Operand: TypeAlias = Scalar | tuple[Scalar, ...] | Reference


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One condition on a field of an event."""

    field: str
    op: Op
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class EventLeaf:
    """Some events of a kind happened."""

    event: str
    where: tuple[FieldTest, ...] = ()
    same: tuple[str, ...] = ()
    at_least: int = 1
    at_most: int | None = None
    within: int | None = None  # ns; with at_least > 1 any span of this length
    gap: int | None = None  # ns; events closer together than this count as one (a burst)
    on: On = On.SELF
    after: EventLeaf | None = None  # and an event of this kind happened at most `within` before
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class FactLeaf:
    """A fact compares with a value."""

    fact: str
    op: Op
    value: Operand
    take: Take = Take.LAST
    within: int | None = None  # ns
    per: int = 10**9  # ns, unit of a rate
    percentile: float = 50.0
    coverage: float = 0.5  # of the window that samples must span
    on: On = On.SELF
    via: tuple[Scope, ...] = ()
    each: Quantifier | None = None
    peer_ratio: bool = False
    min_peers: int = 3
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class KnownLeaf:
    """A fact was answered. Its negation is never true: not knowing proves nothing."""

    fact: str
    negated: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class All:
    """Every child holds."""

    children: tuple[Condition, ...]
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Any_:
    """At least one child holds."""

    children: tuple[Condition, ...]
    path: Path = ()


Leaf: TypeAlias = EventLeaf | FactLeaf | KnownLeaf
Condition: TypeAlias = All | Any_ | Leaf


def leaves(condition: Condition) -> Iterator[Leaf]:
    """All leaves, left to right."""
    if isinstance(condition, All | Any_):
        for child in condition.children:
            yield from leaves(child)
    else:
        yield condition


def facts_of(condition: Condition) -> frozenset[str]:
    """Names of all facts that a condition mentions."""
    names: set[str] = set()
    for leaf in leaves(condition):
        if isinstance(leaf, EventLeaf):
            names.add(leaf.event)
            if leaf.after:
                names.add(leaf.after.event)
        else:
            names.add(leaf.fact)
            if isinstance(leaf, FactLeaf) and isinstance(leaf.value, Reference):
                names.add(leaf.value.fact)
    return frozenset(names)


_VERSION = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9})*)")


def version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at the end (12.4 is 12.4.0); empty when there is none."""
    found = _VERSION.match(text.strip())
    parts = [int(part) for part in found[1].split(".")] if found else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


_EVENT_KEYS = {"event", "where", "same", "count", "within", "gap", "on", "after"}
_AFTER_KEYS = {"event", "where", "within", "on"}
_FACT_KEYS = {
    "fact",
    "op",
    "value",
    "take",
    "within",
    "per",
    "percentile",
    "coverage",
    "on",
    "via",
    "each",
    "peers",
    "min_peers",
}


@dataclass(slots=True)
class Builder:
    """Turns the YAML form into a tree; every fault goes to `report`, with its path."""

    vocabulary: Vocabulary
    params: Mapping[str, Any]
    report: Report
    used_params: set[str]

    def build(self, plain: Any, path: Path, negated: bool = False) -> Condition | None:
        """The condition at `path`; None after a fault."""
        if not isinstance(plain, dict):
            self.report(path, "a condition is a mapping", "all, any, not, event, fact or known")
            return None
        heads = [k for k in ("all", "any", "not", "event", "fact", "known") if k in plain]
        if len(heads) != 1:
            hint = nearest_hint(next(iter(plain), ""), ("all", "any", "not", "event", "fact", "known"))
            self.report(path, "a condition has exactly one of all, any, not, event, fact, known", hint)
            return None
        head = heads[0]
        if head in ("all", "any"):
            return self._group(head, plain, path, negated)
        if head == "not":
            self._unknown_keys(plain, {"not"}, path)
            return self.build(plain["not"], (*path, "not"), not negated)
        if head == "event":
            return self._event(plain, path, negated)
        if head == "known":
            self._unknown_keys(plain, {"known"}, path)
            return KnownLeaf(plain["known"], negated, path) if self._spec(plain["known"], (*path, "known")) else None
        return self._fact(plain, path, negated)

    def _group(self, head: str, plain: Mapping[str, Any], path: Path, negated: bool) -> Condition | None:
        self._unknown_keys(plain, {head}, path)
        items = plain[head]
        if not isinstance(items, list) or not items:
            self.report((*path, head), f"{head} needs a list with at least one condition", "")
            return None
        built = [self.build(item, (*path, head, i), negated) for i, item in enumerate(items)]
        children = tuple(c for c in built if c is not None)
        if len(children) != len(built):
            return None
        conjunction = (head == "all") != negated  # De Morgan
        return All(children, path) if conjunction else Any_(children, path)

    def _event(self, plain: Mapping[str, Any], path: Path, negated: bool = False) -> EventLeaf | None:
        self._unknown_keys(plain, _AFTER_KEYS if path[-1:] == ("after",) else _EVENT_KEYS, path)
        spec = self._spec(plain["event"], (*path, "event"))
        if spec is None:
            return None
        if spec.kind is not Kind.EVENT:
            self.report((*path, "event"), f"{spec.name} is a {spec.kind}, not an event", "write {fact: ...}")
            return None
        where = self._where(plain.get("where", {}), spec, (*path, "where"))
        same = tuple(self._list(plain, "same", path))
        for i, name in enumerate(same):
            self._field(spec, name, (*path, "same", i))
        at_least, at_most = self._count(plain.get("count"), (*path, "count"))
        after = None
        if "after" in plain:
            inner = plain["after"]
            good = isinstance(inner, dict) and "event" in inner
            after = self._event(inner, (*path, "after")) if good else None
            if not good or (after is not None and after.within is None):
                self.report((*path, "after"), "after is an event condition with `within`", "")
            if after is None:
                return None
        on = self._enum(On, plain.get("on", "self"), (*path, "on"), {On.SELF, On.NODE, On.OTHERS})
        within, gap = self._duration(plain, "within", path), self._duration(plain, "gap", path)
        return EventLeaf(spec.name, where, same, at_least, at_most, within, gap, on or On.SELF, after, negated, path)

    def _where(self, plain: Any, spec: FactSpec, path: Path) -> tuple[FieldTest, ...]:
        if not isinstance(plain, dict):
            self.report(path, "where is a mapping of field names", "")
            return ()
        tests = []
        for name, wanted in plain.items():
            here = (*path, name)
            kind = self._field(spec, name, here)
            if kind is None:
                continue
            type_ = Type(kind)
            if not isinstance(wanted, dict):
                op = Op.IN if isinstance(wanted, list) else Op.IS
                if self._enum(Op, op, here, _OPS[type_]):
                    tests.append(FieldTest(name, op, self._value(wanted, type_, op, here, spec)))
                continue
            for word, raw in wanted.items():
                op = self._enum(Op, word, (*here, word), _OPS[type_])
                if op:
                    tests.append(FieldTest(name, op, self._value(raw, type_, op, (*here, word), spec)))
        return tuple(tests)

    def _fact(self, plain: Mapping[str, Any], path: Path, negated: bool) -> FactLeaf | None:
        self._unknown_keys(plain, _FACT_KEYS, path)
        spec = self._spec(plain["fact"], (*path, "fact"))
        if spec is None:
            return None
        if spec.kind is Kind.EVENT:
            self.report((*path, "fact"), f"{spec.name} is an event", "write {event: ...}")
            return None
        take = self._enum(Take, plain.get("take", "last"), (*path, "take"), set(Take)) or Take.LAST
        ratio = plain.get("peers") == "ratio"
        if "peers" in plain and not ratio:
            self.report((*path, "peers"), "peers takes the word ratio", "")
        if (take is not Take.LAST or ratio) and spec.type not in (Type.INT, Type.FLOAT, Type.BOOL):
            self.report((*path, "fact"), f"{spec.name} is a {spec.type}: only numbers have a course over time", "")
            return None
        if take is not Take.LAST and "within" not in plain:
            self.report(path, f"take: {take} needs `within`", "")
        self._idle_keys(plain, take, ratio, path)
        type_ = Type.FLOAT if ratio or (take is not Take.LAST and take is not Take.SUSTAINED) else spec.type
        if "op" not in plain or "value" not in plain:
            self.report(path, "a fact condition has op and value", "")
            return None
        op = self._enum(Op, plain["op"], (*path, "op"), _OPS[type_])
        if op is None:
            return None
        value = self._operand(plain["value"], type_, op, (*path, "value"), spec)
        if ratio and isinstance(value, Reference):
            self.report((*path, "value"), "a ratio compares with a plain number", "")
        words = enumerate(self._list(plain, "via", path))
        via = tuple(s for s in (self._enum(Scope, w, (*path, "via", i), set(Scope)) for i, w in words) if s)
        on = On.VIA if via else self._enum(On, plain.get("on", "self"), (*path, "on"), _PLACES) or On.SELF
        each = self._each(plain.get("each"), (*path, "each"))
        if on is not On.SELF and "each" not in plain and not ratio:
            self.report(
                path, f"on: {on} looks at several subjects: say each", "any, all, none, {at_least: n} or {share: 0.5}"
            )
        return FactLeaf(
            spec.name, op, value, take, self._duration(plain, "within", path), self._duration(plain, "per", path) or 10**9,
            self._number(plain, "percentile", path, 50.0, 0, 100), self._number(plain, "coverage", path, 0.5, 0, 1),
            on, via, each, ratio, int(self._number(plain, "min_peers", path, 3, 1, 1000, whole=True)), negated, path,
        )  # fmt: skip

    def _idle_keys(self, plain: Mapping[str, Any], take: Take, ratio: bool, path: Path) -> None:
        """Keys that would change nothing: the author thinks that they do."""
        late = take is not Take.LAST
        for key, used, goes in (
            ("within", late, "take"),
            ("coverage", late, "take"),
            ("per", take is Take.RATE, "take: rate"),
            ("percentile", take is Take.PERCENTILE, "take: percentile"),
            ("min_peers", ratio, "peers: ratio"),
        ):
            if key in plain and not used:
                self.report((*path, key), f"{key} says nothing without {goes}", "")
        for key in ("each", "on", "via", "take"):
            if ratio and key in plain and plain[key] not in ("self", "last"):
                self.report((*path, key), f"{key} says nothing beside peers: ratio", "")
        if "on" in plain and "via" in plain:
            self.report((*path, "on"), "on says nothing beside via", "")

    def _operand(self, raw: Any, type_: Type, op: Op, path: Path, spec: FactSpec) -> Operand:
        raw = self.resolve(raw, path)
        if isinstance(raw, dict) and "fact" in raw:
            return self._reference(raw, type_, op, path, spec)
        return self._value(raw, type_, op, path, spec)

    def _reference(self, raw: Mapping[str, Any], type_: Type, op: Op, path: Path, spec: FactSpec) -> Reference:
        self._unknown_keys(raw, {"fact", "times", "plus"}, path)
        other = self._spec(raw["fact"], (*path, "fact"))
        numbers = (Type.INT, Type.FLOAT)
        if other and (other.type not in numbers if type_ in numbers else other.type is not type_):
            self.report((*path, "fact"), f"{other.name} is a {other.type}, {spec.name} is compared as a {type_}", "")
        elif other and other.unit != spec.unit and "times" not in raw:
            self.report(
                path,
                f"{other.name} is in {other.unit or 'no unit'}, {spec.name} in {spec.unit or 'no unit'}",
                "give `times` to convert",
            )
        if op not in ORDERED | {Op.IS, Op.IS_NOT}:
            self.report(path, f"{op} takes a plain value, not another fact", "")
        bound = float("inf")
        times, plus = (self._number(raw, k, path, d, -bound, bound) for k, d in (("times", 1.0), ("plus", 0.0)))
        return Reference(str(raw["fact"]), times, plus)

    def _value(self, raw: Any, type_: Type, op: Op, path: Path, spec: FactSpec) -> Scalar | tuple[Scalar, ...]:
        """A plain value, or for `in` and sets a list of them, checked against the type."""
        raw = self.resolve(raw, path)
        if op in (Op.IN, Op.NOT_IN):
            if not isinstance(raw, list) or not raw:
                self.report(path, f"{op} takes a list", "")
                return ()
        elif not (type_ is Type.SET and isinstance(raw, list)):
            if op is Op.MATCHES:
                self._pattern(raw, path)
            if op in (Op.VERSION_BELOW, Op.VERSION_AT_LEAST) and isinstance(raw, str) and not version(raw):
                self.report(path, f"{raw!r} is not a version", "write 570.86.15")
            return self._scalar(raw, type_, path, spec)
        here = ((*path, i) for i in range(len(raw)))
        return tuple(self._scalar(self.resolve(item, at), type_, at, spec) for item, at in zip(raw, here, strict=True))

    def _scalar(self, raw: Any, type_: Type, path: Path, spec: FactSpec) -> Scalar:
        good = {
            Type.BOOL: isinstance(raw, bool),
            Type.INT: isinstance(raw, int) and not isinstance(raw, bool),
            Type.FLOAT: (isinstance(raw, int) and not isinstance(raw, bool))
            or (isinstance(raw, float) and not math.isnan(raw)),
        }.get(type_, isinstance(raw, str))
        if not good:
            self.report(path, f"{raw!r} is not a {type_}", f"{spec.name} is in {spec.unit}" if spec.unit else "")
        elif spec.values and type_ in (Type.ENUM, Type.SET) and raw not in spec.values:
            self.report(path, f"{spec.name} is never {raw!r}", nearest_hint(str(raw), spec.values))
        return raw if isinstance(raw, bool | int | float | str) else None

    def _pattern(self, raw: Any, path: Path) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False  # the library would write to stderr itself, beside the fault
        try:
            re2.compile(str(raw), options)
        except re2.error as error:
            self.report(path, f"not an RE2 pattern: {error}", "RE2 has no look-around and no back-references")

    def _each(self, raw: Any, path: Path) -> Quantifier | None:
        raw = self.resolve(raw, path)
        if raw is None:
            return None
        if isinstance(raw, str) and raw in ("any", "all", "none"):
            return Quantifier(raw)
        if isinstance(raw, dict) and len(raw) == 1:
            ((kind, number),) = raw.items()
            number = self.resolve(number, path)
            number = -1 if isinstance(number, bool) or not isinstance(number, int | float) else number
            if (kind == "at_least" and number >= 1 and number % 1 == 0) or (kind == "share" and 0 < number <= 1):
                return Quantifier(kind, float(number))
        self.report(path, f"{raw!r} is not a quantifier", "any, all, none, {at_least: 2} or {share: 0.5}")
        return None

    def _count(self, raw: Any, path: Path) -> tuple[int, int | None]:
        if raw is None:
            return 1, None
        if not isinstance(raw, dict) or not raw or set(raw) - {"at_least", "at_most"}:
            self.report(path, "count takes at_least and at_most", "")
            return 1, None
        low, high = self.resolve(raw.get("at_least", 0), path), self.resolve(raw.get("at_most"), path)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in (low, 0 if high is None else high)):
            self.report(path, "a count is a whole number", "")
            return 1, None
        if high is None and low == 0:
            self.report(path, "at least 0 is always true", "")
        if high is not None and high < low:
            self.report(path, f"at least {low} and at most {high} is never true", "")
        return low, high

    def _duration(self, plain: Mapping[str, Any], key: str, path: Path) -> int | None:
        raw = self.resolve(plain.get(key), (*path, key))
        if raw is None:
            return None
        try:
            length = parse_duration(str(raw))
        except ValueError as error:
            self.report((*path, key), str(error), "")
            return None
        if length == 0:
            self.report((*path, key), f"{key} is longer than nothing", "")
        return length

    def _number(
        self,
        plain: Mapping[str, Any],
        key: str,
        path: Path,
        default: float,
        low: float,
        high: float,
        whole: bool = False,
    ) -> float:
        """The number under `key`, within `low` and `high`; the default after a fault."""
        raw = self.resolve(plain.get(key, default), (*path, key))
        kind = int if whole else (int, float)
        if not isinstance(raw, bool) and isinstance(raw, kind) and low <= raw <= high:
            return float(raw)
        bounds = f" from {low:g} to {high:g}" if high != float("inf") else ""
        self.report((*path, key), f"{key} is a {'whole ' if whole else ''}number{bounds}, not {raw!r}", "")
        return default

    def _list(self, plain: Mapping[str, Any], key: str, path: Path) -> Sequence[Any]:
        raw = plain.get(key, ())
        if isinstance(raw, list | tuple):
            return raw
        self.report((*path, key), f"{key} takes a list", "")
        return ()

    def resolve(self, raw: Any, path: Path) -> Any:
        """`raw`, or the value of the parameter that ``$name`` stands for."""
        if isinstance(raw, str) and raw.startswith("$"):
            name = raw[1:]
            if name not in self.params:
                self.report(path, f"no parameter {name!r}", nearest_hint(name, self.params))
                return None
            self.used_params.add(name)
            return self.params[name]
        return raw

    def _field(self, spec: FactSpec, name: Any, path: Path) -> str | None:
        if name == "code":
            return "int"
        if isinstance(name, str) and name in spec.fields:
            return spec.fields[name]
        self.report(path, f"event {spec.name} has no field {name!r}", nearest_hint(str(name), ["code", *spec.fields]))
        return None

    def _spec(self, name: Any, path: Path) -> FactSpec | None:
        spec = self.vocabulary.get(name) if isinstance(name, str) else None
        if spec is None:
            self.report(
                path, f"no fact {name!r} in the vocabulary", nearest_hint(str(name), (s.name for s in self.vocabulary))
            )
        elif spec.replaced_by:
            self.report(path, f"{name} is replaced by {spec.replaced_by}", "")
        return spec

    def _enum(self, kind: type[Any], raw: Any, path: Path, allowed: Sequence[Any] | set[Any] | frozenset[Any]) -> Any:
        try:
            word = kind(raw)
        except ValueError:
            word = None
        if word not in allowed:
            names = sorted(str(a) for a in allowed)
            self.report(
                path, f"{raw!r} cannot stand here", nearest_hint(str(raw), names) or f"allowed: {', '.join(names)}"
            )
            return None
        return word

    def _unknown_keys(self, plain: Mapping[str, Any], known: set[str], path: Path) -> None:
        for key in plain:
            if key not in known:
                self.report((*path, key), f"unknown key {key!r}", nearest_hint(key, known))
