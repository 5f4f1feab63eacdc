"""What if: only the differences, nothing touched, and clear words about what cannot be assumed."""

from __future__ import annotations

from functools import cache

import pytest

from assistant.dialogue._suppose import measured, suppose, value_of
from assistant.dialogue._thresholds import Threshold, threshold
from assistant.intent.query import Assumed, Intent, Slots
from assistant.reply import Reply
from assistant.values import Problem, parse
from knowledge.facts import vocabulary
from knowledge.observation import Clock, Observation, Origin, Scope, Value, gpu
from rules.condition import FactLeaf, leaves
from rules.engine import run
from rules.factbase import FactBase
from rules.loader import RuleSet, load
from tests.assistant.dialogue.talk import NOTHING, OFF_BUS, ask, log, query, rules, said, texts
from tests.cases import each
from tests.diagnoses import incident


@cache
def suppose_in(name: str, *assumed: Assumed, lang: str = "en", slots: Slots = NOTHING, focus: str = "") -> Reply:
    d = log(OFF_BUS) if name == "small" else incident(name)
    return ask(d, query(Intent.WHATIF, lang=lang, assumed=assumed, slots=slots), focus=focus)


# --- facts --------------------------------------------------------------------------------


def test_maintenance_rules_it_out() -> None:
    reply = suppose_in("small", Assumed("node.maintenance.gpu_reset", "yes"))
    assert texts(reply) == [
        "Supposed: planned maintenance on this node: yes. It would be OK instead of UNHEALTHY.",
        "verdict now: UNHEALTHY: GPU 0000:3b:00.0 has fallen off the bus. Not usable until the node has been rebooted and the GPU is back.",
        "it would be: OK: Nothing wrong was found in what was given (1 GPU seen). Not enough to call it usable: the GPU inventory was not read.",
        "Would not be found",
        "GPU 0000:3b:00.0 has fallen off the bus",
    ]
    assert reply.hypothetical
    assert reply.diagnosis is None
    assert reply.data["vanish"][0]["rule"] == "gpu-fell-off-bus"


@pytest.mark.slow
def test_in_chinese() -> None:
    reply = suppose_in("small", Assumed("node.maintenance.gpu_reset", "是"), lang="zh")
    assert reply.headline == "假设：本节点计划内维护：是。结论将为“正常”，而不是“异常”。"
    gpus = suppose_in("healthy", Assumed("gpu.temperature.core", "95"), lang="zh", slots=Slots(gpu=(3,)))
    assert gpus.headline == "假设：GPU 0000:5d:00.0 的核心温度为 95 °C。结论将为“降级”，而不是“正常”。"
    assert reply.hypothetical


def test_a_sign_that_disagrees_changes_the_grade() -> None:
    reply = suppose_in("small", Assumed("gpu.nvml.reachable", "no"))
    assert "GPU 0000:3b:00.0 has fallen off the bus: probable -> confirmed" in texts(reply)


def test_one_gpu_or_all() -> None:
    one = suppose_in("healthy", Assumed("gpu.temperature.core", "95"), slots=Slots(gpu=(3,)))
    assert (
        one.headline
        == "Supposed: the core temperature of GPU 0000:5d:00.0 is 95 °C. It would be DEGRADED instead of OK."
    )
    every = suppose_in("healthy", Assumed("gpu.ecc.mode", "off"))
    assert "WARNING 8 GPUs (0-7): ECC is switched off on a data-centre GPU; confirmed; CHANGE_SETTING" in texts(every)


def test_several_at_once() -> None:
    reply = suppose_in(
        "healthy", Assumed("gpu.temperature.core", "95"), Assumed("gpu.ecc.mode", "off"), slots=Slots(gpu=(3,))
    )
    rules_found = {f["rule"] for f in reply.data["appear"]}
    assert {"ecc-disabled", "core-near-slowdown"} <= rules_found


@pytest.mark.slow
def test_nothing_would_change_and_why() -> None:
    already = suppose_in("healthy", Assumed("gpu.ecc.mode", "on"))
    assert already.headline == "Supposed: ECC on 8 GPUs: yes. Nothing would change."
    assert "It is so already." in texts(already)
    cool = suppose_in("healthy", Assumed("gpu.temperature.core", "41"), slots=Slots(gpu=(3,)))
    assert cool.headline.endswith("Nothing would change.")
    assert any(
        "would still not hold. The core temperature of GPU 0000:5d:00.0 is " in t
        and "threshold: " in t
        and "GPU 0000:5d:00.0" in t
        for t in texts(cool)
    )
    unused = suppose_in("healthy", Assumed("gpu.board_part_number", "x"))
    assert 'No rule asks for this: "Part number of the board that carries the GPU".' in texts(unused)


def test_none_seen() -> None:
    """That errors were looked for and none was there is zero for a counter; another count of them still holds."""
    total, dram = (Assumed(f"gpu.ecc.volatile.uncorrected.{name}", "", "none") for name in ("total", "dram"))
    one = suppose_in("double-bit-error", total)
    assert one.headline.endswith(": none seen. Nothing would change.")
    assert "holds all the same. GPU " in said(one)
    both = suppose_in("double-bit-error", total, dram)
    assert "ecc-uncorrected-volatile" in {f["rule"] for f in both.data["vanish"]}


# --- events -------------------------------------------------------------------------------


@each("name", ["xid", "xid 48", "XID48", "xid.48"])
def test_no_such_xid(name: str) -> None:
    reply = suppose_in("double-bit-error", Assumed(name, "48" if name == "xid" else "", "none"))
    assert reply.headline == "Supposed: no XID 48 was seen. It would still be UNHEALTHY, for another reason."
    assert {f["rule"] for f in reply.data["vanish"]} == {"uncorrectable-ecc"}


def test_no_xid_at_all() -> None:
    reply = suppose_in("small", Assumed("xid", "", "none"))
    assert reply.headline == "Supposed: no XID was seen. It would be OK instead of UNHEALTHY."


def test_no_xid_of_another_gpu_takes_nothing_away() -> None:
    reply = suppose_in("off-the-bus", Assumed("xid", "79", "none"), slots=Slots(gpu=(3,)))
    assert reply.headline.endswith("Nothing would change.")


def test_another_xid_happened() -> None:
    reply = suppose_in("small", Assumed("xid", "48"))
    assert reply.headline.startswith("Supposed: XID 48 was seen on GPU 0000:3b:00.0. ")
    assert any(f["rule"] == "uncorrectable-ecc" for f in reply.data["appear"])
    assert "Say its number" in suppose_in("small", Assumed("xid", "bad")).headline


# --- thresholds ---------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["20 C", "20 °C", "20"])
def test_a_parameter_of_a_rule(said: str) -> None:
    reply = suppose_in("healthy", Assumed("thermal-margin-low.margin", said))
    assert reply.hypothetical
    assert reply.headline.startswith("Supposed: thermal-margin-low.margin is 20 °C. ")
    kept = suppose_in("overheating", Assumed("thermal-margin-low.margin", "1"))
    assert any("holds all the same. " in t and "threshold: at most 1 °C" in t for t in texts(kept))


def test_bounds_are_kept_and_said() -> None:
    reply = suppose_in("overheating", Assumed("thermal-margin-low.margin", "50"))
    assert reply.headline == "thermal-margin-low.margin can be from 1 °C to 20 °C, not '50'."
    assert not reply.settled
    zh = suppose_in("overheating", Assumed("thermal-margin-low.margin", "热"), lang="zh")
    assert zh.headline == "thermal-margin-low.margin 的取值范围为 1 °C 到 20 °C，不能是 '热'。"


def test_the_limit_of_the_rule_in_focus() -> None:
    d = incident("half-width")
    clock = incident("overheating")
    focus = next(f.id for f in clock.findings if f.rule.id == "clock-below-peers")
    assert suppose_in("overheating", Assumed("busy", "90"), focus=focus).headline.startswith(
        "Supposed: clock-below-peers.busy is 90 %"
    )
    ambiguous = suppose_in("overheating", Assumed("limit", "0.5"), focus=focus)
    assert "clock-below-peers has no one threshold" in ambiguous.headline
    nothing = suppose_in("overheating", Assumed("the limit", "90"))
    assert "clock-below-peers.ratio" in nothing.headline.partition("Thresholds of what was found: ")[2]
    assert d.findings


def test_a_threshold_that_is_called_by_its_name() -> None:
    d = incident("overheating")
    q = query(Intent.WHATIF, "what if the margin were 2?", assumed=(Assumed("limit", "2"),))
    assert ask(d, q).headline == "Supposed: thermal-margin-low.margin is 2 °C. Nothing would change."


def test_what_a_site_changed_stays_changed() -> None:
    """Another parameter of the same rule is supposed; the site's own value of the first one counts on."""
    rule = load()["thermal-margin-low"]
    site = [x for x in leaves(rule.when) if isinstance(x, FactLeaf) and x.value == 5]
    assert site, "the default margin"
    changed = threshold(Assumed("thermal-margin-low.margin", "7"), rules(), None)
    assert isinstance(changed, Threshold)
    of_site = RuleSet(tuple(changed.rule if r.id == rule.id else r for r in rules().rules), "site")
    both = threshold(Assumed("thermal-margin-low.warm", "60"), of_site, None)
    assert isinstance(both, Threshold)
    values = {x.value for x in leaves(both.rule.when) if isinstance(x, FactLeaf)}
    assert 7 in values
    assert 60 in values
    assert 5 not in values


# --- what cannot be assumed ---------------------------------------------------------------


@each(
    ("assumed", "start"),
    [
        (Assumed("gpu.temprature.core", "90"), "There is no fact or threshold called 'gpu.temprature.core'. Near to it: gpu.temperature.core"),
        (Assumed("gpu.fabric.state", "bananas"), "gpu.fabric.state is never 'bananas': it is not_supported, not_started, in_progress, completed."),
        (Assumed("gpu.ecc.mode", "maybe"), "gpu.ecc.mode is never 'maybe': it is yes or no."),
        (Assumed("gpu.temperature.core", "hot"), "gpu.temperature.core is never 'hot': it is a number in °C."),
        (Assumed("gpu.temperature.core", "90 MiB"), "gpu.temperature.core is never '90 MiB': it is a number in °C."),
        (Assumed("\u202ex" * 500, "1"), "There is no fact or threshold called "),
    ],
)  # fmt: skip
def test_what_cannot_be(assumed: Assumed, start: str) -> None:
    reply = suppose_in("healthy", assumed)
    assert reply.headline.startswith(start)
    assert not reply.settled
    assert not reply.hypothetical, "nothing was supposed"
    assert reply.data["problems"] == [reply.headline]


def test_nothing_assumed() -> None:
    assert suppose_in("small").headline == "What should be assumed? Name a fact and its value."
    assert suppose_in("small").suggestions[0] == "what if there had been no xid 79?"
    assert suppose_in("small", lang="zh").headline.startswith("要假设什么")


def test_an_unknown_gpu() -> None:
    assert suppose_in("healthy", Assumed("gpu.ecc.mode", "off"), slots=Slots(gpu=(42,))).headline.startswith(
        "No GPU 42 is known"
    )


@each(
    ("fact", "word", "op", "value"),
    [
        ("gpu.ecc.mode", "OFF", "is", False), ("gpu.ecc.mode", "启用", "is", True), ("gpu.temperature.core", "90°C", "is", 90),
        ("gpu.temperature.core", "90", "above", 91), ("gpu.temperature.core", "90", "below", 89), ("gpu.memory.used", "1.5 GiB", "is", 1536),
        ("gpu.fabric.state", "in progress", "is", "in_progress"), ("gpu.power.limit", "0.7 kW", "is", 700.0),
        ("node.driver.version", "570.86.15", "is", "570.86.15"),
    ],
)  # fmt: skip
def test_values_as_people_say_them(fact: str, word: str, op: str, value: Value) -> None:
    spec = vocabulary()[fact]
    parsed = parse(spec, word, op)
    assert parsed == value
    assert not isinstance(parsed, Problem)
    assert spec.accepts(parsed)


def test_values_of_every_fact_are_values_or_problems() -> None:
    for spec in vocabulary():
        for word in ("", "1", "off", "-3.5e2", "nan", "inf", "1e99", "x" * 5000, "是", *spec.values[:2]):
            for op in ("is", "above", "below", "none"):
                parsed = parse(spec, word, op)
                assert isinstance(parsed, Problem) or spec.accepts(parsed), (spec.name, word, op, parsed)


# --- the law of the overlay ---------------------------------------------------------------


@pytest.mark.slow
def test_it_is_what_the_engine_says_of_such_facts() -> None:
    """The supposition gives the findings of a fresh run over the facts with that value in their place."""
    d = incident("healthy")
    spec = vocabulary()["gpu.ecc.mode"]
    gpu = d.facts.subjects(Scope.GPU)[2]
    then = suppose(d, rules(), [value_of(spec, gpu, False, d.facts)])
    fresh = [o for o in measured(d.facts) if not (o.fact == spec.name and o.subject == gpu)]
    one = Observation(
        spec.name, gpu, False, at=d.as_of, clock=d.facts.of(spec.name, gpu)[0].clock, origin=Origin.HYPOTHETICAL
    )
    from knowledge.derive import derive

    expected = run(rules().rules, FactBase(derive([*fresh, one]), vocabulary(), d.as_of))
    assert [f.id for f in then.findings] == [f.id for f in expected.findings]


def test_a_value_is_supposed_for_when_it_was_read_last_and_is_as_old() -> None:
    spec, subject = vocabulary()["gpu.ecc.mode"], gpu("0000:3b:00.0")
    read = Observation(spec.name, subject, True, at=5, clock=Clock.REALTIME)
    for seen, at in (((read,), 5), ((), 60)):
        assert [o.at for o in value_of(spec, subject, False, FactBase(seen, vocabulary(), 60)).instead] == [at]


def test_said_twice_is_said_once() -> None:
    first = said(suppose_in("small", Assumed("gpu.nvml.reachable", "no")))
    assert first == said(suppose_in("small", Assumed("gpu.nvml.reachable", "no")))


@pytest.mark.parametrize(("said", "lang", "start"), [
    ("what if the width were 16?", "en", "Supposed: the PCIe link of 8 GPUs runs on 16 lanes."),
    ("如果宽度是 16 呢？", "zh", "假设：8 个 GPU 当前的 PCIe 链路宽度：16。"),
    ("what if the depth were 16?", "en", "What should be assumed?"),
])  # fmt: skip
def test_a_value_that_the_finding_rests_on_is_known_by_its_short_name(said: str, lang: str, start: str) -> None:
    d = incident("half-width")
    assert ask(d, query(Intent.WHATIF, said, lang), focus=d.roots[0].id).headline.startswith(start)
