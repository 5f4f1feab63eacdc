"""What a sentence asks to be found out."""

from __future__ import annotations

from functools import cache

import pytest

from assistant.diagnosis import diagnose
from assistant.intent.query import Intent, Query, Slots, Topic
from assistant.planner import Goal, goal_of
from assistant.planner.asked import named_probes, wanted
from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Origin, Scope, Source, Subject, gpu, node
from knowledge.symptoms import symptoms
from probes.live import probes
from rules.factbase import FactBase
from rules.index import Index, index
from rules.loader import load
from tests.cases import each


@cache
def cards() -> Index:
    return index(load().rules)


HOST = "n1"


def goal(intent: Intent = Intent.DIAGNOSE, facts: FactBase | None = None, text: str = "", **query: object) -> Goal:
    return goal_of(Query(text, "en", intent, **query), load(), facts)  # type: ignore[arg-type]


def machine() -> FactBase:
    seen = [
        Observation("gpu.index", gpu(f"0000:{bus}:00.0", HOST), i, source=Source("t"))
        for i, bus in enumerate(("1a", "3b"))
    ]
    seen.append(Observation("gpu.uuid", gpu("0000:3b:00.0", HOST), "GPU-1234", source=Source("t")))
    seen.append(Observation("process.state", Subject(Scope.PROCESS, "42", node(HOST)), "S", source=Source("t")))
    return diagnose(seen, load()).facts


def test_a_code_means_the_rules_that_name_it_their_causes_and_their_effects() -> None:
    found = goal(slots=Slots(xid=(63,)))
    assert found.rules is not None
    assert "row-remap-recorded" in found.core
    assert "uncorrectable-ecc" in found.rules  # it causes a remapping
    assert cards().effects("row-remap-recorded") <= found.rules
    assert len(found.rules) < len(cards().cards) / 4


def test_several_codes_mean_all_of_them() -> None:
    both = goal(slots=Slots(xid=(48, 63)))
    assert {"row-remap-recorded", "uncorrectable-ecc"} <= both.core
    assert not both.verdict
    assert goal(Intent.VERDICT, slots=Slots(xid=(48, 63))).verdict


def test_a_code_that_no_rule_names_means_those_that_take_every_code() -> None:
    found = goal(slots=Slots(xid=(9999,)))
    assert "unknown-xid" in found.core
    assert all(not cards().cards[r].any_code.isdisjoint({"xid", "xid_implied"}) for r in found.core)


def test_a_switch_code_is_another_matter() -> None:
    found = goal(slots=Slots(sxid=(20034,)))
    assert found.core
    assert all("sxid" in cards().cards[r].asks for r in found.core)


def test_a_pasted_line_means_the_rules_about_what_stands_in_it() -> None:
    line = Observation("xid", gpu("0000:3b:00.0"), Event(79, {}), source=Source("kernel-log"), origin=Origin.TOLD)
    assert "gpu-fell-off-bus" in goal(observations=(line,)).core


@each("name", lambda: sorted(symptoms()))
def test_a_symptom_means_its_rules_and_their_causes(name: str) -> None:
    found = goal(symptoms=(name,))
    assert found.rules is not None
    assert symptoms()[name].rules <= found.core
    for rule in found.core:
        assert cards().causes(rule) <= found.rules


@pytest.mark.parametrize(
    ("topic", "rule"),
    [
        ("rule row-remap-pending", "row-remap-pending"),
        ("xid 79", "gpu-fell-off-bus"),
        ("runbook gpu-off-bus", "gpu-fell-off-bus"),
    ],
)
def test_topics_name_rules_where_nothing_else_does(topic: str, rule: str) -> None:
    assert rule in goal(Intent.FIX, topics=(Topic(topic, 1.0),)).core
    assert rule not in goal(Intent.FIX, topics=(Topic(topic, 1.0),), slots=Slots(xid=(13,))).core


def test_a_topic_that_fits_much_worse_is_not_meant() -> None:
    found = goal(Intent.FIX, topics=(Topic("rule row-remap-pending", 9.0), Topic("rule gpu-fell-off-bus", 1.0)))
    assert found.core == {"row-remap-pending"}


@pytest.mark.parametrize("intent", [Intent.DIAGNOSE, Intent.VERDICT])
def test_a_likeness_does_not_narrow_what_is_looked_at(intent: Intent) -> None:
    like = (Topic("rule row-remap-pending", 9.0),)
    assert goal(intent, text="what is wrong with this node", topics=like).everything
    assert goal(intent, text="is it row-remap-pending?", topics=like).core == {"row-remap-pending"}


def test_what_names_nothing_means_the_health_of_it_all() -> None:
    assert goal(Intent.VERDICT) == Goal(None, verdict=True)
    assert goal(topics=(Topic("term nvlink", 3.0),)).everything


def test_a_gpu_is_found_by_index_address_and_uuid() -> None:
    there = gpu("0000:3b:00.0", HOST)
    for name in (1, "0000:3b:00.0", "GPU-1234"):
        assert goal(facts=machine(), slots=Slots(gpu=(name,))).subjects == {there}
    assert goal(slots=Slots(gpu=(1,), node=("n2",))).subjects == {gpu("index:1", "n2")}


def test_processes_and_nodes_are_subjects() -> None:
    assert goal(facts=machine(), slots=Slots(pid=(42,))).subjects == {Subject(Scope.PROCESS, "42", node(HOST))}
    assert goal(slots=Slots(node=("n2",))).subjects == {node("n2")}


def test_a_value_to_show_settles_no_rule() -> None:
    found = goal(Intent.PROBE, facts=None, text="x", topics=(Topic("fact gpu.temperature.core", 2.0),))
    assert found.rules == frozenset()
    assert found.facts == {"gpu.temperature.core"}


def test_what_names_a_gpu_is_collected_with_the_value() -> None:
    query = Query("", "en", Intent.PROBE, Slots(gpu=(3,)), facts=("gpu.power.draw", "no.such.fact"))
    assert wanted(query) == {"gpu.power.draw", "gpu.index"}
    assert wanted(Query("", "en", Intent.PROBE, Slots(gpu=(3,)))) == frozenset()


@each(
    ("text", "names"),
    [("run nvidia-smi", {"nvidia-smi"}), ("nvidia-smi topo -m", {"nvidia-smi-topo"}), ("check nvlink", {"nvlink"}),
     ("dcgmi diag", {"dcgm-diag"}), ("run dcgmi", {"dcgm-health"}), ("show dmesg", {"kernel-log"}),
     ("look at the kernel log", {"kernel-log"}), ("look at the kernel logs", {"kernel-log"}), ("内核日志", {"kernel-log"}),
     ("list the processes", {"processes"}), ("lspci", {"lspci"}), ("what is the weather", set()), ("", set()),
     ("show the temperature in slot 3", set()), ("show the stack", set()), ("show the stacks", {"job-stacks"})],
)  # fmt: skip
def test_tools_are_known_by_name(text: str, names: set[str]) -> None:
    assert set(named_probes(text, probes())) == names


def test_with_facts_understood_only_a_tool_names_a_probe() -> None:
    assert named_probes("check nvlink status", probes(), tools_only=True) == ()
    assert named_probes("power draw from nvidia-smi", probes(), tools_only=True) == ("nvidia-smi",)


def test_a_sentence_of_a_megabyte_is_no_trouble() -> None:
    assert named_probes("nvidia-" * 150_000, probes()) == ()
    assert vocabulary()  # still there
