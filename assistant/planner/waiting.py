"""Which rules are live, and what each of them waits for.

A rule is live when a finding of it can still come, go or change: its `when` can become true on some subject, known or
not yet seen; or it holds, and what would confirm it, exclude it or change its advice can still be told. That a rule
which is unknown may turn out false changes no answer, and is not worth a look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from assistant.planner.model import Goal
from assistant.planner.outcomes import Outlook, outlook, shape_towards
from assistant.planner.tellers import Tellers
from knowledge.observation import Scope, Subject, node
from knowledge.record import dataclass
from rules.engine import applies
from rules.evaluate import proof_of
from rules.factbase import FactBase
from rules.index import Card, Index
from rules.model import Rule, RuleStatus
from rules.proof import Proof, Truth, leaf_proofs
from rules.resolve import LOOKS_AT

# What a subject of a scope is part of, when nobody has seen one yet.
_WITHIN = {Scope.LINK: Scope.GPU, Scope.MIG: Scope.GPU}
_OWN_PLACE = frozenset({Scope.CLUSTER, Scope.RACK, Scope.SWITCH, Scope.TEAM, Scope.DOCUMENT})  # no part of a node


@dataclass(slots=True)
class Waiting:
    """What one live rule waits for."""

    card: Card
    now: set[str] = field(default_factory=set)  # facts that can change it as things stand
    later: set[str] = field(default_factory=set)  # facts that count only once its `when` holds
    holds: bool = False  # on some subject
    evidence: bool = False  # something of it is true
    subjects: dict[str, list[Subject]] = field(default_factory=dict)  # fact -> subjects on which it is waited for


def live(goal: Goal, facts: FactBase, index: Index, tellers: Tellers) -> dict[str, Waiting]:
    """The live rules of a goal by id; and those that could be the cause of what holds among them."""
    chosen = set(index.cards) if goal.rules is None else set(goal.rules) & set(index.cards)
    others = tellers.of_others(facts)
    found, holding = _each(sorted(chosen), goal, facts, index, tellers, others)
    causes = set[str]().union(*(index.causes(r) for r in holding)) - chosen if goal.rules is not None else set()
    more, _ = _each(sorted(causes), goal, facts, index, tellers, others)
    return dict(sorted({**found, **more}.items()))


def _each(
    ids: Iterable[str], goal: Goal, facts: FactBase, index: Index, tellers: Tellers, others: Tellers
) -> tuple[dict[str, Waiting], list[str]]:
    places = _Places(goal, facts)
    out: dict[str, Waiting] = {}
    holding = []
    for rule_id in ids:
        card = index.cards[rule_id]
        if card.status is RuleStatus.RETIRED:
            continue
        w = Waiting(card)
        if card.asks.isdisjoint(facts.facts):
            _unseen(w, places, tellers)
        else:
            _seen(w, index.rule(rule_id), places, facts, tellers, others)
        if w.holds:
            holding.append(rule_id)
        if w.now:
            out[rule_id] = w
    return out, holding


def advised_by(card: Card) -> frozenset[str]:
    """The facts that the rule's resolvers of its action look at, beside its events."""
    return frozenset[str]().union(*(LOOKS_AT.get(name, ()) for name in card.resolve))


def _unseen(w: Waiting, places: _Places, tellers: Tellers) -> None:
    """A rule of which no fact was ever looked at."""
    w.now |= shape_towards(w.card.when, tellers.facts)
    w.later |= (w.card.more | advised_by(w.card)) & tellers.facts
    _asked_on(w, w.now, (places.seen(w.card.scope) or places.unseen(w.card.scope))[:1], tellers)


def _seen(w: Waiting, rule: Rule, places: _Places, facts: FactBase, tellers: Tellers, others: Tellers) -> None:
    """A rule of which something was told or looked at."""
    card = w.card
    ties = _ties(card, tellers)
    told_out = (card.asks | card.more | advised_by(card) | ties).isdisjoint(tellers.facts)
    for subject in places.seen(rule.scope):
        if not applies(rule, subject, facts):
            continue
        if told_out:
            w.holds = w.holds or proof_of(rule.when, subject, facts).truth is Truth.TRUE
        else:
            _on(w, rule, subject, facts, tellers)
    if w.holds:
        w.now |= _ties(card, tellers, card.via)
    turning_up = others.of_scope(rule.scope)
    if told_out and not turning_up:
        return
    for subject in places.unseen(rule.scope):
        proof = proof_of(rule.when, subject, facts)
        if proof.truth is Truth.TRUE:  # whoever names such a subject makes it hold there
            w.now |= turning_up
        else:
            w.now |= outlook(proof, subject, facts, others).towards(Truth.TRUE)
            w.later |= (card.more | advised_by(card)) & tellers.facts
    if not places.seen(rule.scope):
        _asked_on(w, w.now, places.unseen(rule.scope)[:1], tellers)


def _on(w: Waiting, rule: Rule, subject: Subject, facts: FactBase, tellers: Tellers) -> None:
    """What the rule waits for on one known subject."""
    proof = proof_of(rule.when, subject, facts)
    seen = outlook(proof, subject, facts, tellers)
    if proof.truth is Truth.TRUE:
        w.holds = w.evidence = True
        movers = seen.moving() | _grade(rule, subject, facts, tellers) | _advice(w.card, subject, facts, tellers)
    else:
        movers = seen.towards(Truth.TRUE)
        w.later |= (w.card.more | advised_by(w.card)) & tellers.facts
        w.evidence = w.evidence or (bool(movers) and _some_true(proof))
    w.now |= movers
    _asked_on(w, movers, [subject], tellers)


def _asked_on(w: Waiting, movers: Collection[str], subjects: Sequence[Subject], tellers: Tellers) -> None:
    for fact in tellers.askable.intersection(movers):
        w.subjects.setdefault(fact, []).extend(subjects)


def _ties(card: Card, tellers: Tellers, paths: Sequence[Sequence[str]] | None = None) -> set[str]:
    """Relations along which the rule looks or explains (or along `paths`) and that can still be told."""
    paths = (*card.via, *card.paths) if paths is None else paths
    return set[str]().union(*(tellers.ties(map(Scope, path), card.scope) for path in paths))


def _some_true(proof: Proof) -> bool:
    return any(p.truth is Truth.TRUE and p.observations for p in leaf_proofs(proof))


def _grade(rule: Rule, subject: Subject, facts: FactBase, tellers: Tellers) -> frozenset[str]:
    """What can still change the grade of a rule that holds (see `rules.engine.grade_of`)."""
    excludes = [outlook(proof_of(c, subject, facts), subject, facts, tellers) for c in rule.excludes]
    confirms = [outlook(proof_of(c, subject, facts), subject, facts, tellers) for c in rule.confirms]
    if any(_surely(e, Truth.TRUE) for e in excludes):
        return frozenset()
    open_ = [e for e in excludes if Truth.TRUE in e.may]
    if not any(_surely(c, Truth.TRUE) for c in confirms):
        open_ += confirms
    return frozenset[str]().union(*(o.moving() for o in open_))


def _surely(seen: Outlook, truth: Truth) -> bool:
    return seen.fixed and truth in seen.may


def _advice(card: Card, subject: Subject, facts: FactBase, tellers: Tellers) -> frozenset[str]:
    """What the resolvers look at and nobody has answered yet."""
    asked = advised_by(card) & tellers.facts
    events = {f for f in asked if facts.vocabulary.get(f) and facts.vocabulary[f].kind == "event"}
    states = asked - events
    answered = {f for f in states if (o := facts.read_up(f, subject)[1]) is not None and o.status.answered}
    return frozenset(events | (states - answered))


class _Places:
    """The subjects that a goal is about, and one of each kind that nobody has seen yet."""

    def __init__(self, goal: Goal, facts: FactBase) -> None:
        self._facts = facts
        self._named = goal.subjects
        hosts = {s.host for s in goal.subjects} - {""}
        known = [s for s in facts.subjects(Scope.NODE) if not hosts or s.id in hosts]
        self._nodes: Sequence[Subject] = known or [node(h) for h in sorted(hosts)] or [node()]
        here = {g for g in goal.subjects if g in set(facts.subjects(g.scope))}
        self._of: dict[Scope, set[Subject]] = {}
        for g in here - set(self._nodes):
            self._of.setdefault(g.scope, set()).add(g)

    def seen(self, scope: Scope) -> list[Subject]:
        """Known subjects of `scope`: not those of other nodes, nor of another GPU or process than those named."""
        nodes = set(self._nodes)
        everywhere = not self._named
        return [
            s for s in self._facts.subjects(scope)
            if (everywhere or (up := s.up(Scope.NODE)) is None or up in nodes) and self._meant(s)
        ]  # fmt: skip

    def _meant(self, subject: Subject) -> bool:
        for scope, named in self._of.items():
            mine = subject.up(scope)
            if mine is not None and mine not in named:
                return False
        return True

    def unseen(self, scope: Scope) -> list[Subject]:
        """A subject of `scope` that may yet turn up, on each node."""
        if scope is Scope.NODE:
            return [n for n in self._nodes if n not in set(self._facts.subjects(Scope.NODE))]
        if scope in _OWN_PLACE:
            return [Subject(scope, "")]
        named = [g for g in self._named if g.scope is scope]
        whole = _WITHIN.get(scope)
        return named or [Subject(scope, "", Subject(whole, "", n) if whole else n) for n in self._nodes]
