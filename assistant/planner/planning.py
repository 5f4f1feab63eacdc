"""The plan: from live rules to the probes that can settle them, and when to stop.

Pure: a function of the goal, the facts, the rules and the probes there are, and of whether they run as root.
Nothing depends on an order of arrival.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from assistant.planner.model import Candidate, Goal, Plan
from assistant.planner.questions import questions
from assistant.planner.ranking import candidates, needs_consent, seconds, worst_use
from assistant.planner.tellers import Tellers, waiting
from assistant.planner.waiting import Waiting, live
from knowledge.observation import Status, Subject
from probes.live import Cost, ProbeSpec
from rules.factbase import FactBase
from rules.index import Index, index
from rules.loader import RuleSet
from rules.model import Severity

if TYPE_CHECKING:
    from rules.engine import Finding


def plan(
    goal: Goal, facts: FactBase, ruleset: RuleSet, available: Sequence[ProbeSpec], ran: Collection[str] = (),
    budget_s: float | None = None, *, root: bool | None = None,
) -> Plan:  # fmt: skip
    """What to look at, ask and run next for `goal`, given what is known.

    `available`: the probes that can be run where the goal lies (none for a machine that cannot be reached). `ran`:
    names of those that ran, whatever they gave. `budget_s`: seconds that are left for probes; None: as many as it takes.
    `root`: probes run as root; None: if this process does.
    """
    root = os.geteuid() == 0 if root is None else root
    cards = index(ruleset.rules)
    open_ = waiting(available, ran, facts)
    tellers = Tellers(open_, facts, facts.vocabulary)
    base = _base(goal, facts, available, ran)
    everyone = live(goal, facts, cards, tellers)
    matters: Mapping[str, Waiting] = everyone
    if goal.verdict and not (goal.everything and base):
        worst = _forbidding(goal, facts, ruleset, cards)
        matters = everyone if worst is None else _of_verdict(worst, everyone, cards)
        if worst is not None and not matters:
            return Plan((), (), (), tuple(everyone), True)
        if worst is None and not base and not _unasked(everyone, open_, tellers):
            base = _defaults(available, ran)  # it would be a yes, and nobody says yes on less than `check` does
    tags = _tags(goal)
    standing_in = [s for s in available if s.name in base and s not in open_]
    found = candidates(goal, matters, [*open_, *standing_in], tellers, base, tags, root)
    batch = _batch(found, {s.name: s for s in available}, matters, tellers, base, budget_s)
    unasked = {c.probe for c in found if not c.consent}
    asked = questions(goal, matters, unasked, tellers, cards, facts.vocabulary, tags)
    still = _open(matters, tellers, {rule for q in asked for rule in q.rules})
    decided = not base and not asked and not _worth(goal, matters, still, unasked, tellers)
    return Plan(tuple(found), batch, tuple(asked), still, decided)


def _tags(goal: Goal) -> frozenset[str]:
    """The symptom words of rules that the goal's symptoms stand for."""
    if not goal.symptoms:
        return frozenset()
    from knowledge.symptoms import symptoms

    known = symptoms()
    return frozenset(tag for name in goal.symptoms if name in known for tag in known[name].tags)


def _base(goal: Goal, facts: FactBase, available: Sequence[ProbeSpec], ran: Collection[str]) -> frozenset[str]:
    """Probes that have to run whatever the rules wait for.

    Whoever asks about the health of all of it gets what `check` runs, so that both say the same. Whoever asks whether
    a thing can be used gets at first what tells the GPU inventory and the kernel log: they may be enough for a no.
    """
    if goal.everything:
        return _defaults(available, ran)
    if goal.facts or goal.probes:
        return _to_show(goal, facts, waiting(available, ran, facts), available, ran)
    if not goal.verdict:
        return frozenset()
    from assistant.diagnosis import BASE

    told = {o.fact for o in facts.observations if o.inner.status is Status.OK}
    unseen = [facts_of for _, facts_of in BASE if told.isdisjoint(facts_of)]
    return frozenset(
        s.name for s in waiting(available, ran, facts)
        if s.default and any(not set(s.provides).isdisjoint(part) for part in unseen)
    )  # fmt: skip


def _to_show(
    goal: Goal, facts: FactBase, open_: Sequence[ProbeSpec], available: Sequence[ProbeSpec], ran: Collection[str]
) -> frozenset[str]:
    """The probes that were named, and those that tell the facts that are to be shown and that nobody has told."""
    from assistant.planner.asked import givers

    told = {o.fact for o in facts.observations if o.inner.status.answered}
    named = {s.name for s in available if s.name in goal.probes and s.name not in ran}
    return frozenset(named | set(givers(goal.facts - told, open_)))


def _defaults(available: Sequence[ProbeSpec], ran: Collection[str]) -> frozenset[str]:
    """What `check` would run and did not yet: every default probe, and those that stand in for one.

    The runner leaves the latter out when the former answers; after a round of their own they come up as any other.
    """
    here = {s.name for s in available}
    return frozenset(
        s.name for s in available
        if s.default and s.name not in ran and not (s.instead_of in here and s.instead_of in ran)
    )  # fmt: skip


def _unasked(rules: Mapping[str, Waiting], open_: Sequence[ProbeSpec], tellers: Tellers) -> bool:
    """Whether a rule waits for a probe that can be run unasked."""
    free = {s.name for s in open_ if not needs_consent(s)}
    return any(free.intersection(tellers.of(fact)) for w in rules.values() for fact in w.now)


def _batch(
    found: Sequence[Candidate], specs: Mapping[str, ProbeSpec], rules: Mapping[str, Waiting], tellers: Tellers,
    base: Collection[str], budget_s: float | None,
) -> tuple[str, ...]:  # fmt: skip
    """What to run now, side by side, best first.

    Cheap probes that can all matter go together: one round of them takes as long as the slowest. Four kinds wait:
    what needs consent; what is of use only if another probe makes a rule hold; a dear one where a cheap one may
    make it needless; and what `check` leaves out while there is anything else to run. A base probe never waits.
    """
    now = {p for w in rules.values() for fact in w.now for p in tellers.of(fact)}
    fits = [
        c for c in found
        if not c.consent and (c.probe in base or c.probe in now)
        and (budget_s is None or seconds(specs[c.probe]) <= budget_s or (c.probe in base and budget_s > 0))
    ]  # fmt: skip
    if any(specs[c.probe].default for c in fits):
        fits = [c for c in fits if specs[c.probe].default or c.probe in base]
    cheap = {c.probe for c in fits if specs[c.probe].cost < Cost.SECONDS}
    return tuple(
        c.probe for c in fits if c.probe in base or c.probe in cheap or not _may_wait(c.probe, rules, tellers, cheap)
    )


def _may_wait(probe: str, rules: Mapping[str, Waiting], tellers: Tellers, cheap: Collection[str]) -> bool:
    """Whether a cheap probe of the same round has a say in every rule that `probe` could settle."""
    served = [w for w in rules.values() if any(probe in tellers.of(fact) for fact in w.now)]
    return all(any(set(tellers.of(fact)) & set(cheap) for fact in w.now) for w in served)


def _open(rules: Mapping[str, Waiting], tellers: Tellers, asked: Collection[str]) -> tuple[str, ...]:
    """Rules that a probe can still move, or a person who is asked."""
    return tuple(r for r, w in rules.items() if r in asked or any(tellers.of(fact) for fact in w.now))


def _worth(
    goal: Goal, rules: Mapping[str, Waiting], still: Collection[str], unasked: Collection[str], tellers: Tellers
) -> bool:
    """Whether one of the open rules keeps the answer from being final.

    A probe that needs consent can always find one thing more: that keeps an answer open only where something of the
    rule is true, or where the rule was asked about by name and not as one of many that go with a symptom.
    """
    named = frozenset() if goal.symptoms else goal.core
    for rule_id in still:
        w = rules[rule_id]
        by = {p for fact in w.now for p in tellers.of(fact)}
        if by & set(unasked) or w.evidence or rule_id in named:
            return True
    return False


def _forbidding(goal: Goal, facts: FactBase, ruleset: RuleSet, cards: Index) -> Finding | None:
    """The worst root about the goal, when it is confirmed and forbids use; None when the answer may still be a yes."""
    from assistant.diagnosis import bad_roots
    from rules.engine import Grade, run

    if not facts.observations:
        return None
    chosen = ruleset.rules if goal.rules is None else [cards.rule(r) for r in sorted(goal.rules) if r in cards.cards]
    bad = [f for f in bad_roots(run(chosen, facts).findings) if _touches(f.subject, goal)]
    worst = max(bad, key=lambda f: (f.advice.usable.rank, f.severity.rank), default=None)
    if worst is None or worst.grade is not Grade.CONFIRMED or not worst.advice.usable.stops:
        return None
    return worst


def _touches(subject: Subject, goal: Goal) -> bool:
    """Whether a finding on `subject` is one on what the goal is about: on it, on a part of it, or on what it is part of."""
    about = goal.subjects
    return not about or any(g in subject.ancestors() or subject in g.ancestors() for g in about)


def _of_verdict(worst: Finding, rules: Mapping[str, Waiting], cards: Index) -> Mapping[str, Waiting]:
    """Of the live rules those that can change whether the thing can be used, given a root that forbids it.

    They are the root's own, while its grade or advice is open; those that could explain it, and those that could
    explain these; and those that could be worse.
    """
    above = cards.above([worst.rule.id])
    limit = (worst.advice.usable.rank, worst.severity.rank)
    return {r: w for r, w in rules.items() if r in above or _worst(w) > limit}


def _worst(w: Waiting) -> tuple[int, int]:
    severity = Severity.CRITICAL if w.card.graded else w.card.severity
    return worst_use(w.card).rank, severity.rank
