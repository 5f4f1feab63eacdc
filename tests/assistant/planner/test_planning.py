"""Plans over the shipped rules and probes: what goes first, what waits, what is asked, and when to stop."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from assistant.diagnosis import diagnose
from assistant.intent.query import Intent, Query, Slots
from assistant.planner import Goal, Plan, goal_of, plan, ranking
from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Origin, Source, Status, gpu, node
from probes.live import Cost, ProbeSpec, probes
from probes.runner import select
from rules.factbase import FactBase
from rules.index import index
from rules.loader import load

PROBES = probes()
HOST = "n1"
GPU = gpu("0000:3b:00.0", HOST)
EVERYTHING = Goal(None, verdict=True)


def known(observations: Iterable[Observation]) -> FactBase:
    return diagnose(list(observations), load()).facts


def obs(fact: str, value: object, status: Status = Status.OK, on: object = None, **more: object) -> Observation:
    subject = on or (GPU if fact.startswith("gpu.") or fact == "xid" else node(HOST))
    return Observation(fact, subject, value, status, Source("test", "test.txt"), **more)  # type: ignore[arg-type]


def xid(code: int, **fields: object) -> Observation:
    return obs("xid", Event(code, {"text": "", **fields}))  # type: ignore[dict-item]


def quiet(spec: ProbeSpec) -> list[Observation]:
    """A probe that ran and saw nothing: its logs are silent, what it could not read is unsupported."""
    out = []
    for fact in spec.provides:
        kind = vocabulary()[fact].kind
        status = Status.NONE_SEEN if kind == "event" else Status.UNSUPPORTED
        out.append(obs(fact, None, status, node(HOST)))
    return out


def asked(
    goal: Goal, facts: FactBase, ran: Sequence[str] = (), available: Sequence[ProbeSpec] = PROBES, **more: Any
) -> Plan:
    return plan(goal, facts, load(), available, ran, **more)


def of_codes(*codes: int, intent: Intent = Intent.DIAGNOSE) -> Goal:
    return goal_of(Query("", "en", intent, Slots(xid=codes)), load())


# --- what runs ----------------------------------------------------------------------------


def test_with_nothing_known_the_health_of_a_node_takes_what_check_takes() -> None:
    found = asked(EVERYTHING, known([]))
    assert set(found.batch) == {s.name for s in select()}
    assert not found.decided


def test_what_needs_consent_is_offered_and_never_run() -> None:
    found = asked(EVERYTHING, known([]))
    offered = {c.probe for c in found.probes if c.consent}
    dear = {s.name for s in PROBES if not s.default and (s.cost >= Cost.SECONDS or s.side_effects)}
    assert offered == dear & {c.probe for c in found.probes}
    assert "dcgm-diag" in offered
    assert not offered & set(found.batch)


def test_a_narrow_question_leaves_out_what_cannot_matter() -> None:
    found = asked(of_codes(63), known([]))
    assert found.batch == ("kernel-log", "nvml")
    assert set(found.open) <= (of_codes(63).rules or set())


def test_every_candidate_says_what_it_tells_and_who_waits() -> None:
    found = asked(of_codes(79), known([]))
    for c in found.probes:
        spec = next(s for s in PROBES if s.name == c.probe)
        assert c.settles
        rules = {rule for _, rule in c.settles}
        assert rules <= set(index(load().rules).cards)
        assert c.probe in c.reason.en
        assert c.probe in c.reason.zh
        assert c.cost > 0
        for fact, _ in c.settles:
            inputs = {fact, *vocabulary()[fact].derived_from}
            assert inputs & set(spec.provides)


def test_a_stand_in_waits_for_an_answer_that_does_not_come() -> None:
    goal = of_codes(63)
    nothing = known([])
    assert "nvidia-smi" not in {c.probe for c in asked(goal, nothing).probes}
    silent = [
        obs(f, None, Status.FAILED, node(HOST)) for f in ("node.driver.state", "node.gpu.count", "node.gpu.listed")
    ]
    second = asked(goal, known(silent), ["nvml"])
    assert "nvidia-smi" not in second.batch  # it costs seconds: nobody spends them unasked on one code
    assert "nvidia-smi" in {c.probe for c in second.probes if c.consent}
    told = [obs("node.driver.state", "ok"), obs("node.gpu.count", 8)]
    assert "nvidia-smi" not in {c.probe for c in asked(goal, known(told), ["nvml"]).probes}


def test_after_a_hang_nobody_stands_in() -> None:
    hung = [
        obs(f, None, Status.TIMEOUT, node(HOST)) for f in ("node.driver.state", "node.gpu.count", "node.gpu.listed")
    ]
    assert "nvidia-smi" not in {c.probe for c in asked(of_codes(63), known(hung), ["nvml"]).probes}


def test_a_stand_in_is_run_as_any_other_where_the_first_is_not_available() -> None:
    without = [s for s in PROBES if s.name != "nvml"]
    assert "nvidia-smi" in {c.probe for c in asked(of_codes(63), known([]), available=without).probes}


def test_what_a_probe_could_not_tell_is_not_asked_of_it_again() -> None:
    goal = of_codes(63)
    by_name = {s.name: s for s in PROBES}
    denied = [obs("log.kernel.readable", False), obs("xid", None, Status.DENIED, node(HOST))]
    told = [*denied, *quiet(by_name["nvml"]), obs("node.driver.state", "ok")]
    found = asked(goal, known(told), ["kernel-log", "nvml"])
    assert not found.batch
    assert found.decided


def test_a_budget_leaves_out_what_takes_longer() -> None:
    failed = [
        obs(f, None, Status.FAILED, node(HOST)) for f in ("node.driver.state", "node.gpu.count", "node.gpu.listed")
    ]
    cheap = [replace(s, cost=Cost.CHEAP) if s.name == "nvidia-smi" else s for s in PROBES]
    facts = known(failed)
    assert "nvidia-smi" in asked(of_codes(63), facts, ["nvml", "kernel-log"], available=cheap, budget_s=30.0).batch
    assert asked(of_codes(63), facts, ["nvml", "kernel-log"], available=cheap, budget_s=0.4).batch == ()
    assert asked(EVERYTHING, known([]), budget_s=0.0).batch == ()


def test_without_the_privilege_a_probe_is_dearer_and_still_listed() -> None:
    spec = next(s for s in PROBES if s.name == "pci")
    assert ranking.cost(spec, root=False) > ranking.cost(spec, root=True)
    for root in (False, True):
        found = asked(EVERYTHING, known([]), root=root)
        candidate = found.candidate("pci")
        assert "pci" in found.batch
        assert candidate is not None
        assert candidate.cost == ranking.cost(spec, root)
    assert asked(EVERYTHING, known([])) == asked(EVERYTHING, known([]), root=os.geteuid() == 0)


def test_costs_are_in_the_order_of_their_classes() -> None:
    plain = ProbeSpec("x", PROBES[0].title, (), (), lambda *_: [])
    costs = [ranking.cost(replace(plain, cost=c), root=True) for c in sorted(Cost)]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    assert ranking.cost(replace(plain, side_effects=(PROBES[0].title,)), root=True) > ranking.cost(plain, root=True)


# --- when to stop -------------------------------------------------------------------------


def lost_gpu() -> list[Observation]:
    """A GPU that fell off the bus, for certain: log and NVML say so, and what could explain it was looked at."""
    here = node(HOST)
    silent = [obs(name, None, Status.NONE_SEEN, here) for name in ("xid", "sxid", "aer", "fm_error")]
    told = [obs("node.driver.state", "ok"), obs("gpu.nvml.reachable", False), obs("gpu.recovery_action", "node_reboot"),
            obs("gpu.reset_required", False)]  # fmt: skip
    return [xid(79), *silent, *told]


LOOKED = ["kernel-log", "nvml", "fabric-manager-log"]
NOBODY = obs("node.maintenance.gpu_reset", False, origin=Origin.TOLD)


def test_a_confirmed_no_stops_the_look() -> None:
    found = asked(of_codes(79, intent=Intent.VERDICT), known([*lost_gpu(), NOBODY]), LOOKED)
    assert found.decided
    assert found.batch == ()
    assert found.questions == ()
    assert found.open  # of what cannot change whether it can be used


def test_a_no_that_somebody_could_take_back_does_not_stop_the_questions() -> None:
    found = asked(of_codes(79, intent=Intent.VERDICT), known(lost_gpu()), LOOKED)
    assert [q.fact for q in found.questions] == ["node.maintenance.gpu_reset"]
    assert not found.decided


def test_another_gpus_fault_is_no_answer_about_this_one() -> None:
    goal = of_codes(79, intent=Intent.VERDICT)
    facts = known([*lost_gpu(), NOBODY, obs("gpu.nvml.reachable", True, on=gpu("0000:1a:00.0", HOST))])
    assert asked(goal, facts, LOOKED).decided
    other = replace(goal, subjects=frozenset({gpu("0000:1a:00.0", HOST)}))
    assert not asked(other, facts, LOOKED).decided


def test_the_health_of_it_all_is_never_cut_short() -> None:
    found = asked(EVERYTHING, known([*lost_gpu(), NOBODY]), LOOKED)
    stand_ins = {s.name for s in PROBES if s.instead_of in LOOKED}
    assert set(found.batch) == {s.name for s in select()} - set(LOOKED) - stand_ins


def test_nobody_says_yes_on_less_than_check_looks_at() -> None:
    goal = of_codes(63, intent=Intent.VERDICT)
    first = asked(goal, known([]))
    assert {"kernel-log", "nvml", "pci"} == set(first.batch)
    by_name = {s.name: s for s in PROBES}
    fine = [*quiet(by_name["kernel-log"]), obs("log.kernel.readable", True), obs("node.driver.state", "ok"),
            *quiet(by_name["nvml"]), *quiet(by_name["pci"]), obs("node.pci.gpu_count", 8)]  # fmt: skip
    second = asked(goal, known(fine), first.batch)
    stand_ins = {s.name for s in PROBES if s.instead_of in first.batch}
    assert set(second.batch) == {s.name for s in select()} - set(first.batch) - stand_ins


def test_only_the_verdict_stops_early_a_diagnosis_goes_on() -> None:
    assert asked(of_codes(79), known([*lost_gpu(), NOBODY]), LOOKED).batch


def test_what_was_told_is_still_measured() -> None:
    rule, name = "row-remap-pending", "gpu.row_remap.pending"
    goal = Goal(frozenset({rule}), core=frozenset({rule}))
    beside = [obs("gpu.recovery_action", "none"), obs("xid", None, Status.NONE_SEEN, node(HOST))]
    assert rule in asked(goal, known([obs(name, True, origin=Origin.TOLD), *beside]), ["kernel-log"]).open
    assert rule not in asked(goal, known([obs(name, True), *beside]), ["kernel-log"]).open


# --- questions ----------------------------------------------------------------------------


def test_what_no_probe_can_tell_is_asked_of_a_person() -> None:
    goal = goal_of(Query("", "en", Intent.DIAGNOSE, symptoms=("slow-training",)), load())
    every = [o for s in PROBES for o in quiet(s)]
    found = asked(goal, known(every), [s.name for s in PROBES])
    assert 0 < len(found.questions) <= 3
    for q in found.questions:
        spec = vocabulary()[q.fact]
        assert q.text == spec.ask
        assert q.kind == spec.type
        assert q.rules
        assert q.rules[0] in q.reason.en
        assert q.rules[0] in q.reason.zh
        assert set(q.rules) <= set(found.open)


def test_nobody_is_asked_about_the_merely_conceivable() -> None:
    every = [o for s in PROBES for o in quiet(s)]
    assert asked(EVERYTHING, known(every), [s.name for s in PROBES]).questions == ()


def test_a_person_is_asked_once() -> None:
    goal = of_codes(79, intent=Intent.VERDICT)
    lost = [xid(79), obs("gpu.nvml.reachable", False), obs("gpu.recovery_action", "node_reboot")]
    dont_know = obs("node.maintenance.gpu_reset", None, Status.NOT_ASKED, origin=Origin.TOLD)
    found = asked(goal, known([*lost, dont_know]), [s.name for s in PROBES])
    assert found.questions == ()


# --- laws over the whole catalogue ----------------------------------------------------------


def test_the_plan_depends_on_no_order() -> None:
    facts = [xid(79), obs("gpu.nvml.reachable", False), obs("node.gpu.count", 7), obs("gpu.temperature.core", 91)]
    first = asked(EVERYTHING, known(facts), ["kernel-log"])
    chance = random.Random(7)
    for _ in range(3):
        mixed, specs = list(facts), list(PROBES)
        chance.shuffle(mixed)
        chance.shuffle(specs)
        assert asked(EVERYTHING, known(mixed), ["kernel-log"], specs) == first


def test_nothing_is_left_to_look_at_when_every_probe_ran() -> None:
    every = [o for s in PROBES for o in quiet(s)]
    found = asked(EVERYTHING, known(every), [s.name for s in PROBES])
    assert found.probes == ()
    assert found.decided


def test_a_machine_that_cannot_be_reached_has_no_plan() -> None:
    found = asked(of_codes(79), known([xid(79)]), available=())
    assert found.probes == ()
    assert found.batch == ()


def test_facts_to_show_are_collected_and_nothing_else() -> None:
    query = Query("temperature of gpu 3", "en", Intent.PROBE, Slots(gpu=(3,)), facts=("gpu.temperature.core",))
    goal = goal_of(query, load())
    assert asked(goal, known([])).batch == ("nvml",)
    told = known([obs("gpu.temperature.core", 40), obs("gpu.index", 3)])
    assert asked(goal, told).batch == ()
    assert asked(goal, told).decided


def test_a_named_tool_is_run_unless_it_needs_consent() -> None:
    smi = goal_of(Query("run nvidia-smi", "en", Intent.PROBE), load())
    assert asked(smi, known([])).batch == ("nvidia-smi",)
    diag = asked(goal_of(Query("run dcgmi diag", "en", Intent.PROBE), load()), known([]))
    assert diag.batch == ()
    assert [(c.probe, c.consent) for c in diag.probes] == [("dcgm-diag", True)]
    assert not diag.decided
