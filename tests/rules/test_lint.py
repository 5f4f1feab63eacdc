"""Every kind of fault that only a whole rule, or a whole set, can have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from knowledge.errors import Fault
from rules import loader
from rules.lint import lint
from rules.model import Rule
from tests.rules.files import GOOD, changed, write

FACTS = frozenset({"gpu.temperature.core", "gpu.temperature.memory", "gpu.power.draw", "gpu.on_bus", "xid"})
BOOKS = frozenset({"gpu-off-bus", "gpu-reset", "node-reboot"})
Check = Callable[..., list[Fault]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Faults of rules given by their text."""

    def run(*texts: str) -> list[Fault]:
        rules: list[Rule] = []
        for i, text in enumerate(texts):
            name = text.split("\n", 1)[0].removeprefix("id: ")
            document, rule = loader.read_file(write(tmp_path / str(i), text, name))
            assert rule is not None, document.faults
            rules.append(rule)
        return lint(rules, FACTS, BOOKS)

    return run


def when(text: str) -> str:
    """GOOD with another condition, in one line of flow style; it begins on line 7."""
    head, _, rest = GOOD.partition("params:")
    return f"{head}when: {text}\n{rest[rest.index('action:') :]}"


def test_a_good_rule_has_no_fault(check: Check) -> None:
    assert check(GOOD) == []


def test_no_rules_is_a_fault() -> None:
    (fault,) = lint([], FACTS, BOOKS)
    assert "nothing was checked" in fault.message


# --- conditions that say nothing ----------------------------------------------------------

CORE = "fact: gpu.temperature.core"
NEVER = [
    f"{{all: [{{{CORE}, op: above, value: 90}}, {{{CORE}, op: below, value: 80}}]}}",
    f"{{all: [{{{CORE}, op: above, value: 90}}, {{{CORE}, op: at_most, value: 90}}]}}",
    f"{{all: [{{{CORE}, op: is, value: 90}}, {{{CORE}, op: is, value: 80}}]}}",
    f"{{all: [{{{CORE}, op: is, value: 90}}, {{{CORE}, op: below, value: 90}}]}}",
    f"{{all: [{{{CORE}, op: above, value: 90}}, {{not: {{{CORE}, op: above, value: 90}}}}]}}",
    "{all: [{fact: gpu.on_bus, op: is, value: true}, {fact: gpu.on_bus, op: is, value: false}]}",
    "{all: [{event: xid, where: {code: 79}}, {not: {event: xid, where: {code: 79}}}]}",
    "{not: {known: gpu.on_bus}}",
    f"{{any: [{{event: xid}}, {{all: [{{{CORE}, op: above, value: 90}}, {{{CORE}, op: below, value: 80}}]}}]}}",
]
ALWAYS = [
    f"{{any: [{{{CORE}, op: above, value: 80}}, {{{CORE}, op: below, value: 90}}]}}",
    f"{{any: [{{{CORE}, op: at_least, value: 90}}, {{{CORE}, op: below, value: 90}}]}}",
    f"{{any: [{{{CORE}, op: above, value: 90}}, {{not: {{{CORE}, op: above, value: 90}}}}]}}",
    "{any: [{event: xid}, {not: {event: xid}}]}",
]
FINE = [
    f"{{all: [{{{CORE}, op: at_least, value: 80}}, {{{CORE}, op: at_most, value: 80}}]}}",
    f"{{all: [{{{CORE}, op: above, value: 80}}, {{{CORE}, op: below, value: 90}}]}}",
    f"{{any: [{{{CORE}, op: above, value: 90}}, {{{CORE}, op: below, value: 90}}]}}",
    f"{{any: [{{{CORE}, op: above, value: 90}}, {{{CORE}, op: below, value: 10}}]}}",
    f"{{all: [{{{CORE}, op: above, value: 90}}, {{fact: gpu.temperature.memory, op: below, value: 80}}]}}",
    f"{{all: [{{{CORE}, op: above, value: 90, on: node, each: any}}, {{{CORE}, op: below, value: 80, on: node, each: any}}]}}",
    f"{{all: [{{{CORE}, op: is_not, value: 90}}, {{{CORE}, op: is_not, value: 80}}]}}",
    "{all: [{event: xid, where: {code: 79}}, {not: {event: xid, where: {code: 48}}}]}",
    "{known: gpu.on_bus}",
]


@pytest.mark.parametrize("text", NEVER)
def test_never_true(check: Check, text: str) -> None:
    found = check(when(text))
    assert [f.line for f in found] == [7]
    assert "never true" in found[0].message


@pytest.mark.parametrize("text", ALWAYS)
def test_always_true(check: Check, text: str) -> None:
    found = check(when(text))
    assert ["always true" in f.message for f in found] == [True]


@pytest.mark.parametrize("text", FINE)
def test_what_may_be_either(check: Check, text: str) -> None:
    assert check(when(text)) == []


# --- one rule -----------------------------------------------------------------------------

_LINES = {t.split("name: ")[1].split(",")[0]: f"{t}\n" for t in GOOD.splitlines() if "- {name:" in t}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (_LINES["hot"], "", 19, "lack a case that matches"),
        (_LINES["cool"], "", 19, "lack a near miss"),
        (_LINES["nobody looked"], "", 19, "lack a case that stays unknown"),
        (", zh: GPU 过热", "", 3, "title has no Chinese"),
        ("\n  zh: 核心温度已达到本站点的上限；这是芯片自身的传感器，不是显存的传感器。", "", 14, "why has no Chinese"),
        (", zh: 暂无已知误报。", "", 17, "false_positives has no Chinese"),
        ("false_positives: {en: None known., zh: 暂无已知误报。}\n", "", 1, "false_positives is missing"),
        ("; it is the die's own sensor, not the one of the memory", "", 14, "too short"),
        ("references: [https://docs.nvidia.com/deploy/nvml-api/]", "references: []", 18, "no reference"),
        ("{bucket: MONITOR}", "{}", 13, "has a bucket or resolvers"),
        ("{bucket: MONITOR}", "{resolve: [catalogue]}", 13, "a bucket to fall back to"),
        ("{bucket: MONITOR}", "{bucket: MONITOR, then: [{en: a}]}", 13, "a step has no Chinese"),
        ("{bucket: MONITOR}", "{bucket: MONITOR, text: {en: a}}", 13, "the action has no Chinese"),
        ("{bucket: MONITOR}", "{bucket: MONITOR, runbook: gpu-of-bus}", 13, "no runbook 'gpu-of-bus'"),
        ("{bucket: MONITOR}", "{bucket: MONITOR, risk: destructive}", 13, "needs a runbook"),
        ("{bucket: MONITOR}", "{bucket: ASK_PLATFORM}", 13, "alone does not say what to do"),
        ("severity: warning", "severity: error", 13, "needs a runbook"),
        ("why:", "explains: [{rule: too-hott}]\nwhy:", 14, "which is no rule"),
        ("why:", "explains: [{within: 5m}]\nwhy:", 14, "names a rule or a catalogue"),
        ("why:", "split_by: gpc\nwhy:", 14, "has a field 'gpc'"),
        ("why:", "severity_from: gpc\nwhy:", 14, "has a field 'gpc'"),
        ("why:", "applies: {archs: [hopper]}\nwhy:", 14, "nothing looks at 'archs'"),
    ],
)  # fmt: skip
def test_one_fault_at_its_line(check: Check, old: str, new: str, line: int, words: str) -> None:
    found = check(changed((old, new)))
    assert [(f.line, words in f.message) for f in found] == [(line, True)], found


def test_what_may_still_run_is_not_critical(check: Check) -> None:
    grave, runbook = ("severity: warning", "severity: critical"), ", runbook: gpu-off-bus"
    for word in ("", ", usable: impaired"):
        (fault,) = check(changed(grave, ("{bucket: MONITOR}", f"{{bucket: MONITOR{word}{runbook}}}")))
        assert "critical, and usable" in fault.message
    assert check(changed(grave, ("{bucket: MONITOR}", f"{{bucket: MONITOR, usable: not_yet{runbook}}}"))) == []


def test_the_nearest_names_are_told(check: Check) -> None:
    (fault,) = check(changed(("{bucket: MONITOR}", "{bucket: MONITOR, runbook: gpu-of-bus}")))
    assert "gpu-off-bus" in fault.hint
    (fault,) = check(changed(("why:", "explains: [{rule: too-hott}]\nwhy:")))
    assert "too-hot" in fault.hint


@pytest.mark.parametrize("key", ["when", "confirms", "excludes"])
def test_nobody_can_tell(check: Check, key: str) -> None:
    lost = "{fact: pci.link.width, op: below, value: 8}"
    text = when(lost) if key == "when" else changed(("why:", f"{key}: [{lost}]\nwhy:"))
    found = check(text)
    assert ["nothing can tell pci.link.width" in f.message for f in found] == [True]
    assert found[0].line == (7 if key == "when" else 14)


# --- several rules ------------------------------------------------------------------------


def named(name: str, *explains: str, text: str = GOOD) -> str:
    items = ", ".join(f"{{rule: {e}}}" for e in explains)
    return text.replace("id: too-hot", f"id: {name}", 1).replace("why:", f"explains: [{items}]\nwhy:", 1)


def test_two_rules_that_say_the_same(check: Check) -> None:
    found = check(named("one"), named("two"))
    assert ["says the same as rule one" in f.message for f in found] == [True]
    assert found[0].file.endswith("two.yaml")
    assert found[0].line == 9
    assert "one.yaml:9:1)" in found[0].message, "and where the other one stands"
    assert check(named("one", "two"), named("two")) == []
    assert check(named("one"), named("two", "one")) == []


_OFTEN = "{event: xid, where: {code: 31}, count: {at_least: 5}, within: 1h}"
_RESET = "{bucket: DRAIN_AND_RESET, runbook: gpu-reset}"
_RESTART = "{bucket: RESTART_APP, runbook: node-reboot}"


@pytest.mark.parametrize("turn", [False, True])
def test_a_rule_that_contradicts_a_wider_one_is_told_with_both_places(check: Check, turn: bool) -> None:
    often = named("often", text=when(_OFTEN).replace("{bucket: MONITOR}", _RESET))
    once = named("once", text=when("{event: xid, where: {code: 31}}").replace("{bucket: MONITOR}", _RESTART))
    (fault,) = check(*((once, often) if turn else (often, once)))
    here, there, ours, theirs = "once", "often", "RESTART_APP", "DRAIN_AND_RESET"
    if turn:
        here, there, ours, theirs = there, here, theirs, ours
    assert (Path(fault.file).stem, fault.line) == (here, 7), "the one that is read later"
    assert f"rule {there} (" in fault.message
    assert f"{there}.yaml:7:1)" in fault.message
    assert f"{ours} here contradicts {theirs} there" in fault.message
    assert f"explains: [{{rule: {there}}}]" in fault.hint
    linked = often.replace("explains: []", "explains: [{rule: once}]")
    assert check(linked, once) == []


def test_the_order_of_conditions_makes_no_other_rule(check: Check) -> None:
    one = when(f"{{any: [{{{CORE}, op: above, value: 90}}, {{event: xid}}]}}")
    two = when(f"{{any: [{{event: xid}}, {{{CORE}, op: above, value: 90}}]}}")
    assert ["says the same" in f.message for f in check(named("one", text=one), named("two", text=two))] == [True]


def test_another_scope_or_kind_is_another_rule(check: Check) -> None:
    hopper = GOOD.replace("why:", "applies: {arch: hopper}\nwhy:", 1)
    assert check(named("one"), named("two", text=hopper)) == []


def test_explaining_in_circles(check: Check) -> None:
    found = check(named("one", "two"), named("two", "three"), named("three", "one"))
    circles = [f.message for f in found if "circle" in f.message]
    assert len(circles) == 1
    assert sorted(circles[0].split(": ")[1].split(" -> ")[:-1]) == ["one", "three", "two"]
    steps = circles[0].split(": ")[1].split(" -> ")
    assert all((a, b) in {("one", "two"), ("two", "three"), ("three", "one")} for a, b in pairwise(steps))


def test_every_circle_is_told(check: Check) -> None:
    found = check(named("one", "one"), named("two", "three", "one"), named("three", "two", "one"))
    assert len([f for f in found if "circle" in f.message]) == 2


def test_the_shipped_rules_reach_only_shipped_rules() -> None:
    rules = loader.load().rules
    ids = {r.id for r in rules}
    assert {e.rule for r in rules for e in r.explains if e.rule} <= ids
