"""From a rule's plain data to a condition: the forms of `rules.condition`, with every fault at its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knowledge.errors import nearest_hint
from knowledge.facts import FactSpec, Kind, Type
from knowledge.observation import Scope
from rules.condition import (
    All,
    Any_,
    Condition,
    EventLeaf,
    FactLeaf,
    FieldTest,
    KnownLeaf,
    On,
    Op,
    Operand,
    Path,
    Reference,
    Take,
)
from rules.reading import Reader

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
_PLACES = frozenset(On) - {On.VIA}  # what `on` may say; `via` names its relations
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
class Builder(Reader):
    """Turns the YAML form into a tree."""

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
            self.unknown_keys(plain, {"not"}, path)
            return self.build(plain["not"], (*path, "not"), not negated)
        if head == "event":
            return self._event(plain, path, negated)
        if head == "known":
            self.unknown_keys(plain, {"known"}, path)
            return KnownLeaf(plain["known"], negated, path) if self.fact(plain["known"], (*path, "known")) else None
        return self._fact(plain, path, negated)

    def _group(self, head: str, plain: Mapping[str, Any], path: Path, negated: bool) -> Condition | None:
        self.unknown_keys(plain, {head}, path)
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
        self.unknown_keys(plain, _AFTER_KEYS if path[-1:] == ("after",) else _EVENT_KEYS, path)
        spec = self.fact(plain["event"], (*path, "event"))
        if spec is None:
            return None
        if spec.kind is not Kind.EVENT:
            self.report((*path, "event"), f"{spec.name} is a {spec.kind}, not an event", "write {fact: ...}")
            return None
        where = self._where(plain.get("where", {}), spec, (*path, "where"))
        same = tuple(self.listed(plain, "same", path))
        for i, name in enumerate(same):
            self.field(spec, name, (*path, "same", i))
        at_least, at_most = self.count(plain.get("count"), (*path, "count"))
        after = None
        if "after" in plain:
            inner = plain["after"]
            good = isinstance(inner, dict) and "event" in inner
            after = self._event(inner, (*path, "after")) if good else None
            if not good or (after is not None and after.within is None):
                self.report((*path, "after"), "after is an event condition with `within`", "")
            if after is None:
                return None
        on = self.word(On, plain.get("on", "self"), (*path, "on"), {On.SELF, On.NODE, On.OTHERS})
        within, gap = self.duration(plain, "within", path), self.duration(plain, "gap", path)
        return EventLeaf(spec.name, where, same, at_least, at_most, within, gap, on or On.SELF, after, negated, path)

    def _where(self, plain: Any, spec: FactSpec, path: Path) -> tuple[FieldTest, ...]:
        if not isinstance(plain, dict):
            self.report(path, "where is a mapping of field names", "")
            return ()
        tests = []
        for name, wanted in plain.items():
            here = (*path, name)
            kind = self.field(spec, name, here)
            if kind is None:
                continue
            type_ = Type(kind)
            if not isinstance(wanted, dict):
                op = Op.IN if isinstance(wanted, list) else Op.IS
                if self.word(Op, op, here, _OPS[type_]):
                    tests.append(FieldTest(name, op, self.value(wanted, type_, op, here, spec)))
                continue
            for word, raw in wanted.items():
                op = self.word(Op, word, (*here, word), _OPS[type_])
                if op:
                    tests.append(FieldTest(name, op, self.value(raw, type_, op, (*here, word), spec)))
        return tuple(tests)

    def _fact(self, plain: Mapping[str, Any], path: Path, negated: bool) -> FactLeaf | None:
        self.unknown_keys(plain, _FACT_KEYS, path)
        spec = self.fact(plain["fact"], (*path, "fact"))
        if spec is None:
            return None
        if spec.kind is Kind.EVENT:
            self.report((*path, "fact"), f"{spec.name} is an event", "write {event: ...}")
            return None
        take = self.word(Take, plain.get("take", "last"), (*path, "take"), set(Take)) or Take.LAST
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
        op = self.word(Op, plain["op"], (*path, "op"), _OPS[type_])
        if op is None:
            return None
        value = self._operand(plain["value"], type_, op, (*path, "value"), spec)
        if ratio and isinstance(value, Reference):
            self.report((*path, "value"), "a ratio compares with a plain number", "")
        words = enumerate(self.listed(plain, "via", path))
        via = tuple(s for s in (self.word(Scope, w, (*path, "via", i), set(Scope)) for i, w in words) if s)
        on = On.VIA if via else self.word(On, plain.get("on", "self"), (*path, "on"), _PLACES) or On.SELF
        each = self.each(plain.get("each"), (*path, "each"))
        if on is not On.SELF and "each" not in plain and not ratio:
            self.report(
                path, f"on: {on} looks at several subjects: say each", "any, all, none, {at_least: n} or {share: 0.5}"
            )
        return FactLeaf(
            spec.name, op, value, take, self.duration(plain, "within", path), self.duration(plain, "per", path) or 10**9,
            self.number(plain, "percentile", path, 50.0, 0, 100), self.number(plain, "coverage", path, 0.5, 0, 1),
            on, via, each, ratio, int(self.number(plain, "min_peers", path, 3, 1, 1000, whole=True)), negated, path,
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
        return self.value(raw, type_, op, path, spec)

    def _reference(self, raw: Mapping[str, Any], type_: Type, op: Op, path: Path, spec: FactSpec) -> Reference:
        self.unknown_keys(raw, {"fact", "times", "plus"}, path)
        other = self.fact(raw["fact"], (*path, "fact"))
        numbers = (Type.INT, Type.FLOAT)
        if other and (other.type not in numbers if type_ in numbers else other.type is not type_):
            self.report((*path, "fact"), f"{other.name} is a {other.type}, {spec.name} is compared as a {type_}", "")
        elif other and other.unit != spec.unit and "times" not in raw:
            self.report(
                path,
                f"{other.name} is in {other.unit or 'no unit'}, {spec.name} in {spec.unit or 'no unit'}",
                "give `times` to convert",
            )
        if op not in ORDERED | {Op.IS, Op.IS_NOT, Op.VERSION_BELOW, Op.VERSION_AT_LEAST}:
            self.report(path, f"{op} takes a plain value, not another fact", "")
        bound = float("inf")
        times, plus = (self.number(raw, k, path, d, -bound, bound) for k, d in (("times", 1.0), ("plus", 0.0)))
        return Reference(str(raw["fact"]), times, plus)
