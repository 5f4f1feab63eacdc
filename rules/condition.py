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


_EVENT_KEYS = {"event", "where", "same", "count", "within", "gap", "on", "after"}
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
        self._unknown_keys(plain, _EVENT_KEYS, path)
        spec = self._spec(plain["event"], (*path, "event"))
        if spec is None:
            return None
        if spec.kind is not Kind.EVENT:
            self.report((*path, "event"), f"{spec.name} is a {spec.kind}, not an event", "write {fact: ...}")
            return None
        where = self._where(plain.get("where", {}), spec, (*path, "where"))
        same = tuple(plain.get("same", ()))
        for i, name in enumerate(same):
            self._field(spec, name, (*path, "same", i))
        at_least, at_most = self._count(plain.get("count"), (*path, "count"))
        after = None
        if "after" in plain:
            after = self._event(plain["after"], (*path, "after")) if isinstance(plain["after"], dict) else None
            if after is None or after.within is None:
                self.report((*path, "after"), "after is an event condition with `within`", "")
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
            if isinstance(wanted, dict):
                for word, raw in wanted.items():
                    op = self._enum(Op, word, here, _OPS[type_])
                    if op:
                        tests.append(FieldTest(name, op, self._operand(raw, type_, op, (*here, word), spec)))  # type: ignore[arg-type]
            elif isinstance(wanted, list):
                tests.append(FieldTest(name, Op.IN, self._operand(wanted, type_, Op.IN, here, spec)))  # type: ignore[arg-type]
            else:
                tests.append(FieldTest(name, Op.IS, self._operand(wanted, type_, Op.IS, here, spec)))  # type: ignore[arg-type]
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
        type_ = Type.FLOAT if ratio or (take is not Take.LAST and take is not Take.SUSTAINED) else spec.type
        if "op" not in plain or "value" not in plain:
            self.report(path, "a fact condition has op and value", "")
            return None
        op = self._enum(Op, plain["op"], (*path, "op"), _OPS[type_])
        if op is None:
            return None
        value = self._operand(plain["value"], type_, op, (*path, "value"), spec)
        via = tuple(
            s
            for s in (self._enum(Scope, w, (*path, "via", i), set(Scope)) for i, w in enumerate(plain.get("via", ())))
            if s
        )
        on = On.VIA if via else self._enum(On, plain.get("on", "self"), (*path, "on"), set(On)) or On.SELF
        each = self._each(plain.get("each"), (*path, "each"))
        if on is not On.SELF and each is None and not ratio:
            self.report(
                path, f"on: {on} looks at several subjects: say each", "any, all, none, {at_least: n} or {share: 0.5}"
            )
        return FactLeaf(
            spec.name, op, value, take, self._duration(plain, "within", path), self._duration(plain, "per", path) or 10**9,
            float(plain.get("percentile", 50)), float(plain.get("coverage", 0.5)), on, via, each, ratio,
            int(plain.get("min_peers", 3)), negated, path,
        )  # fmt: skip

    def _operand(self, raw: Any, type_: Type, op: Op, path: Path, spec: FactSpec) -> Operand:
        raw = self.resolve(raw, path)
        if isinstance(raw, dict) and "fact" in raw:
            other = self._spec(raw["fact"], (*path, "fact"))
            if other and other.unit != spec.unit and "times" not in raw:
                self.report(
                    path,
                    f"{other.name} is in {other.unit or 'no unit'}, {spec.name} in {spec.unit or 'no unit'}",
                    "give `times` to convert",
                )
            return Reference(str(raw["fact"]), float(raw.get("times", 1)), float(raw.get("plus", 0)))
        if op in (Op.IN, Op.NOT_IN):
            if not isinstance(raw, list) or not raw:
                self.report(path, f"{op} takes a list", "")
                return ()
            return tuple(self._scalar(item, type_, (*path, i), spec) for i, item in enumerate(raw))
        if op is Op.MATCHES:
            self._pattern(raw, path)
        if type_ is Type.SET and isinstance(raw, list):
            return tuple(raw)
        return self._scalar(raw, type_, path, spec)

    def _scalar(self, raw: Any, type_: Type, path: Path, spec: FactSpec) -> Scalar:
        good = {
            Type.BOOL: isinstance(raw, bool),
            Type.INT: isinstance(raw, int) and not isinstance(raw, bool),
            Type.FLOAT: isinstance(raw, int | float) and not isinstance(raw, bool),
        }.get(type_, isinstance(raw, str))
        if not good:
            self.report(path, f"{raw!r} is not a {type_}", f"{spec.name} is in {spec.unit}" if spec.unit else "")
        elif spec.values and type_ in (Type.ENUM, Type.SET) and raw not in spec.values:
            self.report(path, f"{spec.name} is never {raw!r}", nearest_hint(str(raw), spec.values))
        return raw if isinstance(raw, bool | int | float | str) else None

    def _pattern(self, raw: Any, path: Path) -> None:
        import re2

        try:
            re2.compile(str(raw))
        except re2.error as error:
            self.report(path, f"not an RE2 pattern: {error}", "RE2 has no look-around and no back-references")

    def _each(self, raw: Any, path: Path) -> Quantifier | None:
        raw = self.resolve(raw, path)
        if raw is None:
            return None
        if raw in ("any", "all", "none"):
            return Quantifier(raw)
        if isinstance(raw, dict) and len(raw) == 1:
            ((kind, number),) = raw.items()
            if kind in ("at_least", "share") and isinstance(number, int | float) and number > 0:
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
        if not isinstance(low, int) or not (high is None or isinstance(high, int)):
            self.report(path, "a count is a whole number", "")
            return 1, None
        return low, high

    def _duration(self, plain: Mapping[str, Any], key: str, path: Path) -> int | None:
        raw = self.resolve(plain.get(key), (*path, key))
        if raw is None:
            return None
        try:
            return parse_duration(str(raw))
        except ValueError as error:
            self.report((*path, key), str(error), "")
            return None

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

    def _field(self, spec: FactSpec, name: str, path: Path) -> str | None:
        if name == "code":
            return "int"
        if name in spec.fields:
            return spec.fields[name]
        self.report(path, f"event {spec.name} has no field {name!r}", nearest_hint(name, ["code", *spec.fields]))
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
