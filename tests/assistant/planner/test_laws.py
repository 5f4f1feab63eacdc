"""Laws of the planner, over small made-up rules, facts and probes (see `tests.rules.lab`).

The world of these tests: each probe tells its facts of every GPU there is, or why it cannot. Whatever is drawn, then:
a look that stops early concludes nothing that the whole look would not; a rule that is not live is settled for good;
the plan depends on no order.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.planner import Goal, plan
from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status, Subject
from probes.live import Cost, ProbeSpec
from rules.engine import run
from rules.evaluate import evaluate
from rules.loader import RuleSet
from rules.model import Explains, Rule, Severity
from rules.proof import Truth
from tests.rules.lab import (
    CONDITIONS,
    GPUS,
    HERE,
    PLACES,
    UNANSWERED,
    bang,
    base,
    events,
    quiet,
    rule,
    seen,
    silent,
    values,
)

EVENTS = ("bang", "knock")
FACTS = (*PLACES, *EVENTS)
Told = Mapping[str, Sequence[Observation]]  # what there is to tell, by fact


def probe(name: str, *facts: str, cost: Cost = Cost.CHEAP, **more: Any) -> ProbeSpec:
    """A probe that tells `facts`; what it says is drawn elsewhere."""
    return ProbeSpec(name, Text(name), facts, facts, lambda *_: [], cost=cost, **more)


@st.composite
def told(draw: st.DrawFn, name: str) -> list[Observation]:
    """What a probe says of one fact: of every place it has, or why it cannot tell."""
    if name in EVENTS:
        if draw(st.integers(0, 3)) == 0:
            return [silent(name, draw(st.sampled_from(UNANSWERED)), HERE)]
        found = [o for o in draw(st.lists(events(name), max_size=3)) if o.fact == name]
        return [*found, quiet(name)]
    out = []
    for on in PLACES[name]:
        can = draw(st.integers(0, 3))
        out.append(draw(values(name, on)) if can else silent(name, draw(st.sampled_from(UNANSWERED)), on))
    return out


WORLDS: st.SearchStrategy[Told] = st.fixed_dictionaries({name: told(name) for name in FACTS})


@st.composite
def offers(draw: st.DrawFn) -> list[ProbeSpec]:
    """Some probes that share the facts among them, each fact told by one."""
    owner = {name: draw(st.integers(0, 3)) for name in FACTS}
    costs = [draw(st.sampled_from((Cost.FREE, Cost.CHEAP, Cost.SECONDS))) for _ in range(4)]
    mine = [tuple(n for n in FACTS if owner[n] == i) for i in range(4)]
    return [probe(f"p{i}", *facts, cost=costs[i]) for i, facts in enumerate(mine) if facts]


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Rule]:
    """A few rules; some are confirmed, excluded or explained by others."""
    out = []
    for i in range(draw(st.integers(1, 3))):
        confirms, excludes = (draw(st.lists(CONDITIONS, max_size=1)) for _ in range(2))
        causes = [Explains(f"r{i + 1}")] if draw(st.booleans()) else []
        severity = draw(st.sampled_from(Severity))
        out.append(
            rule(f"r{i}", draw(CONDITIONS), explains=causes, severity=severity, confirms=confirms, excludes=excludes)
        )
    return out


def said(world: Told, probes: Sequence[ProbeSpec]) -> list[Observation]:
    return [o for spec in probes for fact in spec.provides for o in world[fact]]


def findings(one: Rule, observations: Sequence[Observation]) -> set[tuple[str, str]]:
    """What the rule says: each finding with its grade."""
    result = run([one], base(observations))
    return {(f.id, str(f.grade)) for f in (*result.findings, *result.ruled_out)}


def goal(rules: Sequence[Rule]) -> Goal:
    ids = frozenset(r.id for r in rules)
    return Goal(ids, core=ids)


@pytest.mark.slow
@given(rule_sets(), WORLDS, offers(), st.sampled_from((0.5, 1.0, 5.0, None)))
def test_a_look_that_stops_early_concludes_nothing_that_the_whole_look_would_not(
    rules: list[Rule], world: Told, probes: list[ProbeSpec], budget: float | None
) -> None:
    whole = base(said(world, probes))
    ran: list[str] = []
    while True:
        here = base(said(world, [s for s in probes if s.name in ran]))
        for one in rules:
            for subject in here.subjects(one.scope):
                early, late = (evaluate(one.when, subject, f).truth for f in (here, whole))
                assert early in (Truth.UNKNOWN, late)
        now = plan(goal(rules), here, RuleSet(tuple(rules), "lab"), probes, ran, budget).batch
        assert not set(now) & set(ran)
        if not now:
            return
        ran += now


@pytest.mark.slow
@given(rule_sets(), WORLDS, offers())
def test_a_plan_run_to_its_end_finds_what_all_probes_find(
    rules: list[Rule], world: Told, probes: list[ProbeSpec]
) -> None:
    ran: list[str] = []
    while True:
        here = said(world, [s for s in probes if s.name in ran])
        found = plan(goal(rules), base(here), RuleSet(tuple(rules), "lab"), probes, ran)
        allowed = tuple(c.probe for c in found.probes if c.consent)[:1]  # whoever is asked says yes
        if not found.batch and not allowed:
            break
        ran += found.batch or allowed
    assert found.decided
    assert not found.open
    for one in rules:
        assert findings(one, here) == findings(one, said(world, probes))


@pytest.mark.slow
@given(rule_sets(), WORLDS, WORLDS, offers(), st.sets(st.integers(0, 3)), st.randoms(use_true_random=False))
def test_a_rule_that_is_not_live_never_changes_whatever_is_told(
    rules: list[Rule], world: Told, other: Told, probes: list[ProbeSpec], done: set[int], chance: random.Random
) -> None:
    """Whatever the probes that have not run say, all of them or some: what they say is drawn anew."""
    ran = [s for i, s in enumerate(probes) if i in done]
    before = said(world, ran)
    still = plan(goal(rules), base(before), RuleSet(tuple(rules), "lab"), probes, [s.name for s in ran]).open
    rest = [s for s in probes if s not in ran]
    for chosen in (rest, [s for s in rest if chance.random() < 0.5]):
        after = [*before, *said(other, chosen)]
        for one in rules:
            if one.id not in still:
                assert findings(one, before) == findings(one, after)


SMALL: Mapping[tuple[str, Subject], tuple[Any, ...]] = {
    ("good", GPUS[0]): (True, False),
    ("good", GPUS[1]): (True, False),
    ("mode", GPUS[0]): ("red", "green", "blue"),
    ("busy", HERE): (True, False),
}
_LEAVES = st.one_of(
    st.sampled_from((True, False)).map(lambda v: {"fact": "good", "op": "is", "value": v}),
    st.sampled_from(("red", "blue")).map(lambda v: {"fact": "mode", "op": "is", "value": v}),
    st.just({"fact": "busy", "op": "is", "value": True}),
    st.sampled_from(("any", "all", "none")).map(
        lambda e: {"fact": "good", "op": "is", "value": True, "on": "node", "each": e}
    ),
    st.just({"known": "busy"}),
)
_SMALL = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from(({"all": parts}, {"any": parts}, {"not": parts[0]}))
    ),
    max_leaves=4,
)


def _completions(open_: Sequence[tuple[str, Subject]]) -> list[list[Observation]]:
    """Every way to answer, or not to answer, each of these."""
    ways = [[*(seen(f, v, s) for v in SMALL[f, s]), silent(f, Status.DENIED, s)] for f, s in open_]
    return [list(way) for way in itertools.product(*ways)]


@pytest.mark.slow
@given(
    _SMALL,
    st.lists(_SMALL, max_size=1),
    st.lists(_SMALL, max_size=1),
    st.sets(st.sampled_from(("good", "mode", "busy"))),
    st.data(),
)
def test_liveness_against_every_answer_there_can_be(
    when: Any, confirms: list[Any], excludes: list[Any], done: set[str], data: st.DataObject
) -> None:
    """Both ways: what is not live never changes; what is live and rests on facts that nobody repeats can change."""
    one = rule("r", when, confirms=confirms, excludes=excludes)
    asked = [key for key in SMALL if key[0] in done]
    before = data.draw(st.sampled_from(_completions(asked)))
    probes = [probe(f"p-{name}", name) for name in ("good", "mode", "busy")]
    found = plan(goal([one]), base(before), RuleSet((one,), "lab"), probes, [f"p-{name}" for name in done])
    now = findings(one, before)
    later = [findings(one, [*before, *more]) for more in _completions([key for key in SMALL if key not in asked])]
    if "r" not in found.open:
        assert all(f == now for f in later)


@given(rule_sets(), WORLDS, offers(), st.sets(st.integers(0, 3)), st.randoms(use_true_random=False))
def test_the_plan_depends_on_no_order(
    rules: list[Rule], world: Told, probes: list[ProbeSpec], done: set[int], chance: random.Random
) -> None:
    ran = [s.name for i, s in enumerate(probes) if i in done]
    facts = said(world, [s for s in probes if s.name in ran])
    first = plan(goal(rules), base(facts), RuleSet(tuple(rules), "lab"), probes, ran)
    for mixed in (rules, facts, probes, ran):
        chance.shuffle(mixed)
    assert plan(goal(rules), base(facts), RuleSet(tuple(rules), "lab"), probes, ran) == first


def test_what_a_dead_branch_waits_for_is_not_asked() -> None:
    one = rule(
        "r", {"all": [{"fact": "good", "op": "is", "value": False}, {"fact": "level", "op": "above", "value": 5}]}
    )
    ruleset = RuleSet((one,), "lab")
    probes = [probe("a", "good"), probe("b", "level")]
    assert plan(goal([one]), base([]), ruleset, probes).batch == ("a", "b")
    fine = base([seen("good", True, g) for g in GPUS])
    assert plan(goal([one]), fine, ruleset, probes, ["a"]).batch == ()
    bad = base([seen("good", g == GPUS[0] and False, g) for g in GPUS])
    assert plan(goal([one]), bad, ruleset, probes, ["a"]).batch == ("b",)


def test_an_event_is_looked_for_until_who_could_have_seen_it_was_asked() -> None:
    one = rule("r", {"event": "bang", "where": {"code": 1}}, scope=Scope.NODE)
    ruleset = RuleSet((one,), "lab")
    probes = [probe("a", "bang"), probe("b", "bang")]
    none = base([quiet("bang")])
    assert plan(goal([one]), none, ruleset, probes, ["a"]).batch == ("b",)
    assert plan(goal([one]), none, ruleset, probes, ["a", "b"]).decided
    assert plan(goal([one]), base([bang(), quiet("bang")]), ruleset, probes, ["a"]).batch == ()


def test_a_threshold_that_nobody_can_tell_leaves_nothing_to_look_at() -> None:
    one = rule("r", {"fact": "level", "op": "above", "value": {"fact": "limit"}})
    ruleset = RuleSet((one,), "lab")
    assert plan(goal([one]), base([]), ruleset, [probe("a", "level")]).batch == ()
    assert plan(goal([one]), base([]), ruleset, [probe("a", "level"), probe("b", "limit")]).batch == ("a", "b")
    half = base([seen("level", 3, g) for g in GPUS])
    assert plan(goal([one]), half, ruleset, [probe("a", "level"), probe("b", "limit")], ["a"]).batch == ("b",)


def test_relations_lead_to_who_can_tell_them() -> None:
    one = rule("r", {"fact": "level", "op": "above", "value": 5, "via": ["gpu"], "each": "any"}, scope=Scope.PROCESS)
    ruleset = RuleSet((one,), "lab")
    probes = [probe("a", "level"), probe("b", "uses")]
    known = base([seen("level", 7, g) for g in GPUS])
    assert plan(goal([one]), known, ruleset, probes, ["a"]).batch == ("b",)


def test_what_would_confirm_waits_until_there_is_something_to_confirm() -> None:
    one = rule(
        "r", {"fact": "good", "op": "is", "value": False}, confirms=[{"fact": "level", "op": "above", "value": 5}]
    )
    ruleset = RuleSet((one,), "lab")
    probes = [probe("a", "good"), probe("b", "level")]
    first = plan(goal([one]), base([]), ruleset, probes)
    assert first.batch == ("a",)
    assert [c.probe for c in first.probes] == ["a", "b"]
    assert plan(goal([one]), base([seen("good", False)]), ruleset, probes, ["a"]).batch == ("b",)
    assert plan(goal([one]), base([seen("good", True)]), ruleset, probes, ["a"]).probes == ()


def test_a_threshold_is_looked_up_together_with_the_value() -> None:
    above = {"fact": "level", "op": "above", "value": {"fact": "limit"}}
    one = rule("r", {"all": [{"fact": "good", "op": "is", "value": False}, above]})
    probes = [probe("a", "good"), probe("b", "level"), probe("c", "limit")]
    bad = base([seen("good", False, g) for g in GPUS])
    assert set(plan(goal([one]), bad, RuleSet((one,), "lab"), probes, ["a"]).batch) == {"b", "c"}


def test_what_holds_on_every_gpu_waits_for_one_to_turn_up() -> None:
    one = rule("r", {"fact": "busy", "op": "is", "value": True})
    probes = [probe("a", "busy"), probe("b", "level"), probe("c", "knock")]
    assert plan(goal([one]), base([seen("busy", True, HERE)]), RuleSet((one,), "lab"), probes, ["a"]).batch == ("b",)
    assert plan(goal([one]), base([seen("busy", False, HERE)]), RuleSet((one,), "lab"), probes, ["a"]).batch == ()


def test_bursts_may_join_when_more_events_are_told() -> None:
    plain = {"event": "bang", "count": {"at_least": 2}, "gap": "1m"}
    one = rule("r", plain, scope=Scope.NODE)
    two = [bang(-10 * 60 * 10**9), bang(0), quiet("bang")]
    probes = [probe("a", "bang"), probe("b", "bang")]
    assert findings(one, two)
    assert plan(goal([one]), base(two), RuleSet((one,), "lab"), probes, ["a"]).batch == ("b",)
