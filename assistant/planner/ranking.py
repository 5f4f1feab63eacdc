"""What a look is worth and what it costs: numbers that order, and nothing else.

None of them decides anything: every probe that can change the outcome is listed, whatever its number. They say only
which comes first, and so need to be in the right order, not exact. Each is argued where it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from assistant.planner.model import Candidate, Goal
from assistant.planner.tellers import Tellers
from assistant.planner.waiting import Waiting
from knowledge.language import Text
from probes.live import Cost, ProbeSpec
from rules.index import Card
from rules.model import Bucket, Severity, Usable

# Two warnings are worth an error and two errors a critical finding: people act on the worst first.
_SEVERITY = {Severity.INFO: 0.5, Severity.WARNING: 1.0, Severity.ERROR: 2.0, Severity.CRITICAL: 4.0}
_ASKED = 4.0  # what was asked about by name comes before its causes and effects, even a severity worse
_SYMPTOM = 2.0  # what goes with the symptom, before what does not
_EVIDENCE = 3.0  # something of it is true already: it wants settling more than what is only conceivable
_VERDICT = 2.0  # it would forbid use, and whether it may be used is the question
_LATER = 0.1  # it counts only if another probe's answer makes the rule hold, which most do not
# Relative CPU and wall time of the classes: a file, a command of up to a second, of several, of minutes.
_COST = {Cost.FREE: 0.5, Cost.CHEAP: 1.0, Cost.SECONDS: 5.0, Cost.HEAVY: 100.0}
_SECONDS = {Cost.FREE: 0.1, Cost.CHEAP: 1.0, Cost.SECONDS: 5.0}  # that one takes as a rule; of HEAVY its deadline
_UNPRIVILEGED = 1.5  # without the privilege the answer is partial: half as dear again for what it gives
_SIDE_EFFECT = 0.25  # each: a GPU that wakes up, a few seconds of load


def worst_use(card: Card) -> Usable:
    """The worst that a finding of the rule can say about use, as far as that is known before there is one."""
    if card.usable:
        return Usable(card.usable)
    if card.resolve or card.graded:
        return Usable.NO
    from rules.resolve import buckets

    return buckets()[Bucket(card.bucket or Bucket.MONITOR)].usable


def weight(w: Waiting, goal: Goal, tags: Collection[str]) -> float:
    """How much it matters to settle a rule. `tags`: the rules' symptom words that belong to the goal's symptoms."""
    card = w.card
    value = _SEVERITY[Severity.CRITICAL if card.graded else card.severity]
    if card.id in goal.core:
        value *= _ASKED
    if not set(tags).isdisjoint(card.symptoms):
        value *= _SYMPTOM
    if w.evidence:
        value *= _EVIDENCE
    if goal.verdict and worst_use(card).stops:
        value *= _VERDICT
    return value


def cost(spec: ProbeSpec, root: bool) -> float:
    """What a probe costs; 1 is a command that ends within a second. `root`: it would run as root."""
    lacks = "root" in spec.needs.privileges and not root
    base = _COST[spec.cost] * (_UNPRIVILEGED if lacks else 1.0)
    return base + _SIDE_EFFECT * len(spec.side_effects)


def seconds(spec: ProbeSpec) -> float:
    """How long a probe takes as a rule."""
    return min(_SECONDS.get(spec.cost, spec.deadline), spec.deadline)


def needs_consent(spec: ProbeSpec, base: Collection[str] = ()) -> bool:
    """Whether a person is asked before it runs: it costs seconds or more, or is felt by what it looks at.

    Who asks about the health of it all, or names a tool, has asked for the seconds of those in `base`.
    """
    if spec.cost >= Cost.HEAVY or (spec.side_effects and not spec.default):
        return True
    return spec.cost >= Cost.SECONDS and (spec.name not in base or not spec.default)


def candidates(
    goal: Goal, live: Mapping[str, Waiting], open_: Sequence[ProbeSpec], tellers: Tellers, base: Collection[str],
    tags: Collection[str], root: bool,
) -> list[Candidate]:  # fmt: skip
    """Every probe that can change something, best first; `base` are those that the health of a node rests on.

    A rule's weight is shared among the facts that it waits for: who tells them all gets it whole.
    """
    value: dict[str, float] = {}
    settles: dict[str, list[tuple[float, str, str]]] = {}
    for w in live.values():
        total = weight(w, goal, tags)
        for wanted, share in ((w.now, 1.0), (w.later - w.now, _LATER)):
            told = [fact for fact in sorted(wanted) if tellers.of(fact)]
            for fact in told:
                for probe in sorted(tellers.of(fact)):
                    part = total * share / len(told)
                    value[probe] = value.get(probe, 0.0) + part
                    settles.setdefault(probe, []).append((-part, fact, w.card.id))
    hinted = {w.card.id for w in live.values() if w.evidence}
    out = []
    for spec in open_:
        if spec.name not in settles and spec.name not in base:
            continue
        pairs = [(fact, rule) for _, fact, rule in sorted(settles.get(spec.name, ()))]
        worth = value.get(spec.name, 0.0)
        reason = _reason(spec, pairs, tellers)
        asks, some = needs_consent(spec, base), any(rule in hinted for _, rule in pairs)
        out.append(Candidate(spec.name, round(worth, 6), cost(spec, root), tuple(pairs), asks, reason, some))
    return sorted(out, key=lambda c: (c.consent, c.probe not in base, -c.value / c.cost, c.probe))


def _reason(spec: ProbeSpec, pairs: Sequence[tuple[str, str]], tellers: Tellers) -> Text:
    """Why this probe: the fact and the rule that matter most, and how many more."""
    if not pairs:
        return Text(f"{spec.name}: part of what the health of a node rests on", f"{spec.name}：节点健康判断的基础之一")
    fact, rule = pairs[0]
    told = tellers.given(spec.name, fact)
    rules = len({r for _, r in pairs}) - 1
    more_en = f" and {rules} more {'waits' if rules == 1 else 'wait'}" if rules else " waits"
    more_zh = f"等 {rules + 1} 条规则" if rules else ""
    name = told[0] if told else fact
    return Text(
        f"{spec.name}: tells {name}, on which rule {rule}{more_en}",
        f"{spec.name}：可得到 {name}，规则 {rule} {more_zh}正在等待它",
    )
