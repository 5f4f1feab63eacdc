"""All faults of a rule file in one run of the lint, each told once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowledge import yamlfile
from rules import loader
from rules.lint import lint
from rules.model import Rule
from rules.schema import RuleFile
from tests.cases import each
from tests.rules.files import GOOD, changed, write

FACTS = frozenset({"gpu.temperature.core", "gpu.on_bus", "gpu.power.draw", "xid"})
BOOKS = frozenset({"gpu-off-bus", "gpu-reset"})

LOST = """\
id: too-hot
revision: 1
title: {en: Something is hot}
stauts: stable
severity: error
scope: gpu
params:
  often: {type: int, default: five, min: 2, max: 20}
when:
  all:
    - {event: xidd, where: {code: 31}, count: {at_least: $often}, within: 1hour5}
    - {fact: gpu.temperature.core, op: abov, value: 90}
    - {fact: gpu.temperature.core, op: above, value: 90}
    - {fact: gpu.temperature.core, op: below, value: 80}
confirms:
  - {fact: gpu.on_bus, op: is, valeu: false}
explains:
  - {rule: no-such-rule, within: soon}
action: {bucket: RESET_GPUS, then: [{en: look again}]}
why:
  en: Too short.
references: []
tests:
  - {name: hot, given: {}, expect: matched}
"""
FAULTS = [
    (1, 1, "false_positives is missing"),
    (3, 1, "title has no Chinese"),
    (4, 1, "unknown key 'stauts' (did you mean status?)"),
    (8, 22, "'five' is not a int"),
    (11, 8, "no fact 'xidd' in the vocabulary (did you mean xid"),
    (11, 67, "'1hour5' is not a duration"),
    (12, 36, "'abov' cannot stand here (did you mean above?)"),
    (14, 7, "never true together with the other condition on gpu.temperature.core"),
    (16, 32, "unknown key 'valeu' (did you mean value?)"),
    (18, 6, "explains 'no-such-rule', which is no rule"),
    (18, 26, "explains.0.within: 'soon' is not a duration"),
    (19, 10, "action.bucket: Input should be"),
    (19, 37, "a step has no Chinese"),
    (20, 1, "the page is too short to help"),
    (20, 1, "why has no Chinese"),
    (22, 1, "no reference"),
    (23, 1, "the tests lack a case that stays unknown"),
    (23, 1, "the tests lack a near miss"),
]


def told(folder: Path, *texts: str) -> list[tuple[int, int, str]]:
    """What one run of the lint says of rule files."""
    rules: list[Rule] = []
    faults, faulty, named = [], {}, set()
    for i, text in enumerate(texts):
        name = text.split("\n", 1)[0].removeprefix("id: ")
        document, rule = loader.read_partly(write(folder / str(i), text, name))
        faults += document.faults
        if rule is None:
            named.add(name)
        else:
            rules.append(rule)
            faulty[rule.file] = document.faulty
    faults += lint(rules, FACTS, BOOKS, faulty, named)
    said = [(f.line, f.column, f"{f.message} ({f.hint})" if f.hint else f.message) for f in sorted(set(faults))]
    assert len(said) == len(faults), "no two faults are the same"
    return said


def test_a_file_with_a_fault_of_every_kind(tmp_path: Path) -> None:
    found = told(tmp_path, LOST)
    assert [(line, column) for line, column, _ in found] == [(line, column) for line, column, _ in FAULTS], found
    for (_, _, said), (_, _, words) in zip(found, FAULTS, strict=True):
        assert said.startswith(words)


# Mistakes in lines of GOOD that do not depend on each other, each with how many faults it is.
MISTAKES: dict[tuple[str, str], int] = {
    ("revision: 1", "revision: one"): 1,
    ("title: {en: The GPU is too hot, zh: GPU 过热}", "title: {en: The GPU is too hot}"): 1,
    ("status: stable", "status: stabel"): 1,
    ("scope: gpu\n", "scope: gpux\n"): 1,
    ("min: 60, max: 100", "min: 90, max: 100"): 1,
    ("  op: at_least", "  op: at_leest"): 1,
    ("action: {bucket: MONITOR}", "action: {bucket: MONITORS, then: [{en: wait}]}"): 2,
    (
        "  zh: 核心温度已达到本站点的上限；这是芯片自身的传感器，不是显存的传感器。\n",
        "  zhh: 核心温度已达到本站点的上限\n",
    ): 1,
    ("; it is the die's own sensor, not the one of the memory", ""): 1,
    ("false_positives: {en: None known., zh: 暂无已知误报。}", "false_positives: {en: None known.}"): 1,
    ("references: [https://docs.nvidia.com/deploy/nvml-api/]", "references: []"): 1,
    ("status: denied}]}, expect: unknown}", "status: denied}]}, expect: matched}"): 1,
    ("value: 50}]}, expect: not_matched}", "value: 50}]}, expect: matched}"): 1,
    ("fact: gpu.temperature.core\n", "fact: gpu.temperature.cor\n"): 1,
}


@each("swap", MISTAKES)
def test_a_mistake_alone_is_told_once(tmp_path: Path, swap: tuple[str, str]) -> None:
    found = told(tmp_path, changed(swap))
    assert len(found) == MISTAKES[swap], found


@cache
def alone(swap: tuple[str, str]) -> frozenset[tuple[int, int, str]]:
    with TemporaryDirectory() as folder:
        return frozenset(told(Path(folder), changed(swap)))


@pytest.mark.slow
@given(st.lists(st.sampled_from(sorted(MISTAKES)), min_size=2, unique=True))
@example(sorted(MISTAKES))
def test_mistakes_hide_nothing_of_each_other(swaps: list[tuple[str, str]]) -> None:
    """What is told of several is what is told of each: at the same places, in the same words."""
    with TemporaryDirectory() as folder:
        assert set(told(Path(folder), changed(*swaps))) == {fault for swap in swaps for fault in alone(swap)}


# A mistake that makes other things look wrong: those are not told. Where it stands, and what is said.
FOLLOWED: list[tuple[str, str, int, str]] = [
    ("tests:", "testss:", 19, "unknown key 'testss'"),
    ("title:", "titel:", 3, "unknown key 'titel'"),
    ("why:", "whyy:", 14, "unknown key 'whyy'"),
    ("references:", "refrences:", 18, "unknown key 'refrences'"),
    ("params:", "parmas:", 7, "unknown key 'parmas'"),
    ("expect: unknown", "expect: unkown", 22, "expect"),
    ("{bucket: MONITOR}", "{bukcet: MONITOR}", 13, "unknown key 'bukcet'"),
    ("{bucket: MONITOR}", "{bucket: MONITOR, risk: disruptive, runbok: gpu-reset}", 13, "unknown key 'runbok'"),
    ("severity: warning", "severity: eror", 5, "severity"),
    ("default: 85", "default: 85.5", 8, "is not a int"),
    ("default: 85, ", "", 8, "'default' is missing"),
    ("type: int", "type: intt", 8, "type"),
    ("limit: {type: int, default: 85, min: 60, max: 100, unit: C}", "limit: 85", 8, "params.limit"),
    ("default: 85", "default: true", 8, "params.limit.default: Input should be a valid integer or a valid number or a valid string"),
    ("value: $limit", "value: $limti", 12, "no parameter 'limti'"),
    ("  op: at_least\n", "  opp: at_least\n", 11, "unknown key 'opp'"),
    ("  value: $limit\n", "  valeu: $limit\n", 12, "unknown key 'valeu'"),
    ("  value: $limit\n", "  value: $limit\n  take: increse\n  within: 10m\n", 13, "'increse' cannot stand here"),
    ("  value: $limit\n", "  value: $limit\n  taek: increase\n  within: 10m\n", 13, "unknown key 'taek'"),
    ("  value: $limit\n", "  value: $limit\n  take: increase\n  wihtin: 10m\n", 14, "unknown key 'wihtin'"),
    ("  value: $limit\n", "  value: $limit\n  on: node\n  eahc: any\n", 14, "unknown key 'eahc'"),
    ("  value: $limit\n", "  value: {fact: gpu.power.draw, tims: 2, plus: $limit}\n", 12, "unknown key 'tims'"),
    ("why:", "confirms: [5]\nwhy:", 14, "confirms.0"),
    ("why:", "confirms: [{event: xid, after: {event: xid, within: sooon}}]\nwhy:", 14, "'sooon' is not a duration"),
    ("why:", "confirms: [{event: xid, after: {event: xid, wihtin: 1m}}]\nwhy:", 14, "unknown key 'wihtin'"),
    ("why:", "confirms: [{event: xidd, where: {any: {at_least: 1}}, same: [place]}]\nwhy:", 14, "no fact 'xidd'"),
    ("why:", "explains: [{rulee: too-hot}]\nwhy:", 14, "unknown key 'rulee'"),
    ("when:\n  fact: gpu.temperature.core\n  op: at_least\n  value: $limit\n",
     "split_by: gpc\nwhen: {event: xidd, where: {gpc: $limit}}\n", 10, "no fact 'xidd'"),
    ("why:", "names: {en: 'in {gpu.temperature.core}', zhh: '{gpu.temperature.core} 内'}\nwhy:", 14, "unknown key 'zhh'"),
    ("why:", "shows: [gpu.temperature.cor]\nwhy:", 14, "unknown fact 'gpu.temperature.cor'"),
    ("why:", "impact: {shaer: gpu.power.draw, of: {en: a, zh: 甲}}\nwhy:", 14, "unknown key 'shaer'"),
]  # fmt: skip


@each("old, new, line, words", FOLLOWED)
def test_a_fault_is_not_told_again_as_what_follows_from_it(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    found = told(tmp_path, changed((old, new)))
    assert [(at, words in said) for at, _, said in found] == [(line, True)], found


def test_a_rule_with_faults_is_a_rule_that_others_may_explain(tmp_path: Path) -> None:
    other = changed(
        ("id: too-hot", "id: other"), ("$limit", "88"), ("params:\n", ""), ("why:", "explains: [{rule: too-hot}]\nwhy:")
    )
    other = other.replace("  limit: {type: int, default: 85, min: 60, max: 100, unit: C}\n", "")
    assert told(tmp_path / "a", GOOD, other) == []
    assert len(told(tmp_path / "b", changed(("revision: 1", "revision: 0")), other)) == 1
    assert len(told(tmp_path / "c", GOOD.replace("[https", "https"), other)) == 1, "nothing could be read of it"
    assert len(told(tmp_path / "d", other)) == 1, "and without it there is none"


def test_what_contradicts_another_rule_is_found_beside_faults_of_the_page(tmp_path: Path) -> None:
    """But not where the condition, or what is advised, could not be read."""

    def pair(*swaps: tuple[str, str]) -> list[str]:
        hotter = changed(("id: too-hot", "id: hotter"), ("default: 85", "default: 95"),
                         ("{bucket: MONITOR}", "{bucket: RESET_GPU, runbook: gpu-reset}"), *swaps)  # fmt: skip
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        return [
            said
            for _, _, said in told(
                folder, changed(("{bucket: MONITOR}", "{bucket: TUNE_JOB, text: {en: a, zh: 甲}}")), hotter
            )
        ]

    assert len(pair()) == 1
    assert "RESET_GPU here contradicts TUNE_JOB there" in pair()[0]
    assert (
        len(
            pair(
                ("references: [https://docs.nvidia.com/deploy/nvml-api/]", "references: []"),
                ("revision: 1", "revision: x"),
            )
        )
        == 3
    )
    assert len(pair(("  op: at_least", "  op: at_leest"))) == 1
    assert len(pair(("bucket: RESET_GPU", "bucket: RESET_GPUS"))) == 1


_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.sampled_from(("", "$limit", "$x", "xid", "5m", "gpu", "matched")),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(("en", "fact", "event", "rule", "expect", "type", "all", "after")), inner, max_size=2
        )
    ),
    max_leaves=5,
)
_KEYS = sorted(RuleFile.model_fields)


@given(st.dictionaries(st.sampled_from(_KEYS), _JUNK, min_size=1), st.sets(st.sampled_from(_KEYS), max_size=3))
def test_no_shape_of_a_file_stops_the_lint(junk: dict[str, Any], lost: set[str]) -> None:
    data = yamlfile.parse(GOOD, "a.yaml").data | junk
    document = yamlfile.parse(json.dumps({k: v for k, v in data.items() if k not in lost}), "a.yaml")
    rule = loader.check(document, "too-hot")
    assert rule is not None, "a mapping can always be brought into shape"
    found = lint([rule], FACTS, BOOKS, {rule.file: document.faulty})
    assert (
        document.faults
        or not {"id", "revision", "title", "status", "severity", "scope", "when", "action", "why"} & lost
    )
    assert all(f.file == "a.yaml" and f.message for f in (*found, *document.faults))
