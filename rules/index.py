"""Cards: what the planner asks of every rule, small enough to be kept compiled, so that no rule is built to be asked.

A rule is built when something of it is known; which rules those are, and who explains whom, stands on the cards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from knowledge.observation import Scope
from knowledge.record import dataclass
from rules.condition import All, Any_, Condition, EventLeaf, FactLeaf, KnownLeaf, Leaf, Op, Reference, leaves
from rules.model import Rule, Rules, RuleStatus, Severity

# A condition of which only the names of facts are left: ["all", ...], ["any", ...], or the names that one leaf needs
# together, "own" or "own threshold", as one string.
Shape: TypeAlias = "str | list[Any]"

_XIDS = ("xid", "xid_implied")


@dataclass(frozen=True, slots=True)
class Card:
    """One rule, as far as it can be told without building its conditions."""

    id: str
    scope: Scope
    status: RuleStatus
    severity: Severity  # the rule's own; its events may carry a worse one where `graded`
    graded: bool
    symptoms: tuple[str, ...]
    when: Shape
    asks: frozenset[str]  # facts of `when`
    more: frozenset[str]  # facts of `confirms` and `excludes`
    resolve: tuple[str, ...]  # resolvers of the action
    bucket: str
    usable: str
    runbook: str
    explains: tuple[str, ...]  # ids of rules whose findings it can cause
    by_catalogue: bool  # and those that the XID catalogue names
    via: tuple[tuple[str, ...], ...]  # paths of relations along which it explains
    paths: tuple[tuple[str, ...], ...]  # and along which its conditions look
    xid: int | None
    codes: Mapping[str, tuple[int, ...]]  # event -> the codes that `when` names
    any_code: frozenset[str]  # events that `when` asks for whatever their code

    def about(self, event: str, code: int) -> bool:
        """Whether the rule names this code of this event."""
        if self.xid == code and event in _XIDS:
            return True
        return code in self.codes.get(event, ())


def card_of(rule: Rule) -> Card:
    """The card of a built rule."""
    return card(rule.id, plain_card(rule))


def plain_card(rule: Rule) -> dict[str, Any]:
    """What a card says beyond the rule's id, as JSON can keep it."""
    codes: dict[str, set[int]] = {}
    any_code: set[str] = set()
    every = [leaf for c in (rule.when, *rule.confirms, *rule.excludes) for leaf in leaves(c)]
    paths = {tuple(map(str, leaf.via)) for leaf in every if isinstance(leaf, FactLeaf) and leaf.via}
    for leaf in leaves(rule.when):
        if isinstance(leaf, EventLeaf):
            named = _codes(leaf)
            codes.setdefault(leaf.event, set()).update(named)
            if not named:
                any_code.add(leaf.event)
    return {
        "scope": str(rule.scope), "status": str(rule.status), "severity": str(rule.severity),
        "graded": bool(rule.severity_from), "symptoms": list(rule.symptoms), "when": shape_of(rule.when),
        "more": sorted({name for c in (*rule.confirms, *rule.excludes) for name in names(shape_of(c))}),
        "resolve": list(rule.action.resolve), "bucket": str(rule.action.bucket or ""),
        "usable": str(rule.action.usable or ""), "runbook": rule.action.runbook,
        "explains": sorted({e.rule for e in rule.explains if e.rule}), "by_catalogue": any(e.by for e in rule.explains),
        "via": sorted({tuple(map(str, e.via)) for e in rule.explains if e.via}),
        "paths": sorted(paths), "xid": rule.xid,
        "codes": {event: sorted(found) for event, found in sorted(codes.items()) if found}, "any_code": sorted(any_code),
    }  # fmt: skip


def card(rule_id: str, plain: Mapping[str, Any]) -> Card:
    """A card out of what `plain_card` made."""
    return Card(
        id=rule_id, scope=Scope(plain["scope"]), status=RuleStatus(plain["status"]),
        severity=Severity(plain["severity"]), graded=plain["graded"], symptoms=tuple(plain["symptoms"]),
        when=plain["when"], asks=frozenset(names(plain["when"])), more=frozenset(plain["more"]),
        resolve=tuple(plain["resolve"]), bucket=plain["bucket"], usable=plain["usable"], runbook=plain["runbook"],
        explains=tuple(plain["explains"]), by_catalogue=plain["by_catalogue"],
        via=tuple(tuple(v) for v in plain["via"]), paths=tuple(tuple(v) for v in plain["paths"]), xid=plain["xid"],
        codes={event: tuple(found) for event, found in plain["codes"].items()}, any_code=frozenset(plain["any_code"]),
    )  # fmt: skip


def _codes(leaf: EventLeaf) -> set[int]:
    out: set[int] = set()
    for test in leaf.where:
        if test.field == "code" and test.op in (Op.IS, Op.IN):
            values = test.value if isinstance(test.value, tuple) else (test.value,)
            out.update(v for v in values if isinstance(v, int))
    return out


def shape_of(condition: Condition) -> Shape:
    """The condition with nothing left but the names of its facts."""
    if isinstance(condition, All | Any_):
        word = "all" if isinstance(condition, All) else "any"
        return [word, *(shape_of(c) for c in condition.children)]
    return " ".join(needs(condition))


def needs(leaf: Leaf) -> tuple[str, ...]:
    """The facts that a leaf takes together: its own first, then its threshold's, or the event that came before."""
    if isinstance(leaf, EventLeaf):
        return (leaf.event, leaf.after.event) if leaf.after else (leaf.event,)
    if isinstance(leaf, KnownLeaf):
        return (leaf.fact,)
    assert isinstance(leaf, FactLeaf)
    return (leaf.fact, leaf.value.fact) if isinstance(leaf.value, Reference) else (leaf.fact,)


def names(shape: Shape) -> Iterator[str]:
    """All facts of a shape."""
    if isinstance(shape, str):
        yield from shape.split()
        return
    for child in shape[1:]:
        yield from names(child)


class Index:
    """The cards of a rule set, who can cause what, and the rules themselves by id."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        if isinstance(rules, Rules) and rules.cards:
            self.cards: Mapping[str, Card] = {name: card(name, plain) for name, plain in sorted(rules.cards.items())}
            self.rule: Callable[[str], Rule] = rules.named
        else:
            by_id = {r.id: r for r in rules}
            self.cards = {name: card_of(r) for name, r in sorted(by_id.items())}
            self.rule = by_id.__getitem__
        self._causes: dict[str, set[str]] = {}
        for cause in self.cards.values():
            for effect in cause.explains:
                self._causes.setdefault(effect, set()).add(cause.id)
        self._by_catalogue: dict[str, set[str]] | None = None

    def causes(self, rule_id: str) -> frozenset[str]:
        """Rules whose findings can be the cause of this one's."""
        return frozenset(self._causes.get(rule_id, ())) | self._catalogued().get(rule_id, set())

    def above(self, rule_ids: Collection[str]) -> frozenset[str]:
        """The rules themselves, those that can cause them, and those that can cause these."""
        found, stack = set(rule_ids), list(rule_ids)
        while stack:
            more = self.causes(stack.pop()) - found
            found |= more
            stack += more
        return frozenset(found)

    def effects(self, rule_id: str) -> frozenset[str]:
        """Rules whose findings this one's can be the cause of."""
        own = frozenset(e for e in self.cards[rule_id].explains if e in self.cards)
        return own | {effect for effect, causes in self._catalogued().items() if rule_id in causes}

    def _catalogued(self) -> dict[str, set[str]]:
        """Effect -> causes after the XID catalogue, for rules that are about one code."""
        if self._by_catalogue is None:
            from knowledge.catalog.xid import xid

            about = {c.xid: c.id for c in self.cards.values() if c.xid is not None}
            self._by_catalogue = {}
            for cause in self.cards.values():
                entry = xid(cause.xid) if cause.by_catalogue and cause.xid is not None else None
                for code in entry.explains if entry else ():
                    if code in about:
                        self._by_catalogue.setdefault(about[code], set()).add(cause.id)
        return self._by_catalogue


@lru_cache(maxsize=2)
def _index(held: _Same) -> Index:
    return Index(held.rules)


class _Same:
    """Rules that are the same when they are one object: comparing them would build them all."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.rules is other.rules

    def __hash__(self) -> int:
        return id(self.rules)


def index(rules: Sequence[Rule]) -> Index:
    """The index of `rules`; kept, since a conversation has one rule set."""
    return _index(_Same(rules))
