"""From a rule's plain data to a condition: the forms of `rules.condition`, with every fault at its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.errors import nearest_hint
from knowledge.facts import FactSpec, Kind, Type
from knowledge.observation import Scope
from knowledge.record import dataclass
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
from rules.reading import UNRESOLVED, Reader

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
        """The condition at `path`; None after a fault, or with `partly` when nothing is left without it."""
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
        if not children or (len(children) != len(built) and not self.partly):
            return None
        conjunction = (head == "all") != negated  # De Morgan
        return All(children, path) if conjunction else Any_(children, path)

    def _event(self, plain: Mapping[str, Any], path: Path, negated: bool = False) -> EventLeaf | None:
        self.unknown_keys(plain, _AFTER_KEYS if path[-1:] == ("after",) else _EVENT_KEYS, path)
        spec = self.fact(plain["event"], (*path, "event"))
        if spec is not None and spec.kind is not Kind.EVENT:
            self.report((*path, "event"), f"{spec.name} is a {spec.kind}, not an event", "write {fact: ...}")
            spec = None
        where = self._where(plain.get("where", {}), spec, (*path, "where"))
        same = tuple(self.listed(plain, "same", path))
        for i, name in enumerate(same):
            if spec is not None:
                self.field(spec, name, (*path, "same", i))
        at_least, at_most = self.count(plain.get("count"), (*path, "count"))
        after = self._after(plain["after"], (*path, "after")) if "after" in plain else None
        on = self.word(On, plain.get("on", "self"), (*path, "on"), {On.SELF, On.NODE, On.OTHERS})
        within, gap = self.duration(plain, "within", path), self.duration(plain, "gap", path)
        if spec is None or ("after" in plain and after is None):
            return None
        return EventLeaf(spec.name, where, same, at_least, at_most, within, gap, on or On.SELF, after, negated, path)

    def _after(self, inner: Any, path: Path) -> EventLeaf | None:
        """The event that came before."""
        message = "after is an event condition with `within`"
        if not isinstance(inner, dict) or "event" not in inner:
            self.report(path, message, "")
            return None
        self.lacking(inner, ("within",), _AFTER_KEYS, path, message)
        return self._event(inner, path)

    def _where(self, plain: Any, spec: FactSpec | None, path: Path) -> tuple[FieldTest, ...]:
        if not isinstance(plain, dict):
            self.report(path, "where is a mapping of field names", "")
            return ()
        tests = []
        for name, wanted in plain.items():
            here = (*path, name)
            kind = self.field(spec, name, here) if spec is not None else None
            if kind is None or spec is None:
                self._without_a_type(wanted, here)
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

    def _without_a_type(self, wanted: Any, path: Path) -> None:
        """What can be said of the test of a field that nobody knows: its operators and parameters."""
        for word, raw in wanted.items() if isinstance(wanted, dict) else ():
            self.word(Op, word, (*path, word), set(Op))
            self.resolve(raw, (*path, word))
        self.resolve(wanted, path)

    def _fact(self, plain: Mapping[str, Any], path: Path, negated: bool) -> FactLeaf | None:
        self.unknown_keys(plain, _FACT_KEYS, path)
        spec = self.fact(plain["fact"], (*path, "fact"))
        take = self.word(Take, plain.get("take", "last"), (*path, "take"), set(Take))
        ratio = plain.get("peers") == "ratio"
        if "peers" in plain and not ratio:
            self.report((*path, "peers"), "peers takes the word ratio", "")
        spec = self._comparable(spec, take not in (None, Take.LAST) or ratio, path)
        if take not in (None, Take.LAST):
            self.lacking(plain, ("within",), _FACT_KEYS, path, f"take: {take} needs `within`")
        self._idle_keys(plain, take, ratio, path)
        type_ = self._type(spec, take, ratio)
        self.lacking(plain, ("op", "value"), _FACT_KEYS, path, "a fact condition has op and value")
        op = self.word(Op, plain["op"], (*path, "op"), _OPS[type_] if type_ else set(Op)) if "op" in plain else None
        value = self._operand(plain.get("value"), type_, op, (*path, "value"), spec) if "value" in plain else None
        if ratio and isinstance(value, Reference):
            self.report((*path, "value"), "a ratio compares with a plain number", "")
        words = enumerate(self.listed(plain, "via", path))
        via = tuple(s for s in (self.word(Scope, w, (*path, "via", i), set(Scope)) for i, w in words) if s)
        on = On.VIA if via else self.word(On, plain.get("on", "self"), (*path, "on"), _PLACES) or On.SELF
        each = self.each(plain.get("each"), (*path, "each"))
        if on is not On.SELF and not ratio:
            hint = "any, all, none, {at_least: n} or {share: 0.5}"
            self.lacking(plain, ("each",), _FACT_KEYS, path, f"on: {on} looks at several subjects: say each", hint)
        times = self.duration(plain, "within", path), self.duration(plain, "per", path) or 10**9
        shares = self.number(plain, "percentile", path, 50.0, 0, 100), self.number(plain, "coverage", path, 0.5, 0, 1)
        peers = int(self.number(plain, "min_peers", path, 3, 1, 1000, whole=True))
        if spec is None or op is None or "value" not in plain:
            return None
        return FactLeaf(
            spec.name, op, value, take or Take.LAST, *times, *shares, on, via, each, ratio, peers, negated, path
        )

    def _comparable(self, spec: FactSpec | None, over_time: bool, path: Path) -> FactSpec | None:
        """The fact, when its values can be compared in this way."""
        if spec is not None and spec.kind is Kind.EVENT:
            self.report((*path, "fact"), f"{spec.name} is an event", "write {event: ...}")
            return None
        if spec is not None and over_time and spec.type not in (Type.INT, Type.FLOAT, Type.BOOL):
            self.report((*path, "fact"), f"{spec.name} is a {spec.type}: only numbers have a course over time", "")
            return None
        return spec

    def _type(self, spec: FactSpec | None, take: Take | None, ratio: bool) -> Type | None:
        """The type of what is compared; None when nobody knows."""
        if spec is None:
            return None
        if take is None:  # a misspelt word: any number may be right
            return Type.FLOAT if spec.type is Type.INT else spec.type
        return Type.FLOAT if ratio or take not in (Take.LAST, Take.SUSTAINED) else spec.type

    def _idle_keys(self, plain: Mapping[str, Any], take: Take | None, ratio: bool, path: Path) -> None:
        """Keys that would change nothing: the author thinks that they do."""
        late = take is not Take.LAST or self.misspelt(plain, "take", _FACT_KEYS)
        ratio = ratio or "peers" in plain or self.misspelt(plain, "peers", _FACT_KEYS)
        for key, used, goes in (
            ("within", late, "take"),
            ("coverage", late, "take"),
            ("per", take is Take.RATE or (late and take in (None, Take.LAST)), "take: rate"),
            ("percentile", take is Take.PERCENTILE or (late and take in (None, Take.LAST)), "take: percentile"),
            ("min_peers", ratio, "peers: ratio"),
        ):
            if key in plain and not used:
                self.report((*path, key), f"{key} says nothing without {goes}", "")
        for key in ("each", "on", "via", "take"):
            if ratio and key in plain and plain[key] not in ("self", "last"):
                self.report((*path, key), f"{key} says nothing beside peers: ratio", "")
        if "on" in plain and "via" in plain:
            self.report((*path, "on"), "on says nothing beside via", "")

    def _operand(self, raw: Any, type_: Type | None, op: Op | None, path: Path, spec: FactSpec | None) -> Operand:
        raw = self.resolve(raw, path)
        if isinstance(raw, dict) and "fact" in raw:
            return self._reference(raw, type_, op, path, spec)
        if raw is UNRESOLVED or type_ is None or op is None or spec is None:
            return None  # nobody knows what may stand here
        return self.value(raw, type_, op, path, spec)

    def _reference(
        self, raw: Mapping[str, Any], type_: Type | None, op: Op | None, path: Path, spec: FactSpec | None
    ) -> Reference:
        self.unknown_keys(raw, {"fact", "times", "plus"}, path)
        other = self.fact(raw["fact"], (*path, "fact"))
        numbers = (Type.INT, Type.FLOAT)
        if other and spec and type_ and (other.type not in numbers if type_ in numbers else other.type is not type_):
            self.report((*path, "fact"), f"{other.name} is a {other.type}, {spec.name} is compared as a {type_}", "")
        elif other and spec and other.unit != spec.unit:
            message = f"{other.name} is in {other.unit or 'no unit'}, {spec.name} in {spec.unit or 'no unit'}"
            self.lacking(raw, ("times",), {"fact", "times", "plus"}, path, message, "give `times` to convert")
        if op is not None and op not in ORDERED | {Op.IS, Op.IS_NOT, Op.VERSION_BELOW, Op.VERSION_AT_LEAST}:
            self.report(path, f"{op} takes a plain value, not another fact", "")
        bound = float("inf")
        times, plus = (self.number(raw, k, path, d, -bound, bound) for k, d in (("times", 1.0), ("plus", 0.0)))
        return Reference(str(raw["fact"]), times, plus)
