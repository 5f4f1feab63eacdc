"""Rule files: every fault of a file at once, each with its place and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.errors import FaultsError, UnknownNameError
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Source, gpu
from rules import loader
from rules.condition import FactLeaf
from rules.engine import run
from rules.factbase import FactBase
from rules.model import Bucket, Severity
from tests.cases import each
from tests.rules.files import GOOD, changed, write

TEN = """\
id: another-name
revision: 1
title: {en: a, zh: 甲}
titel: {en: a}
status: stabel
severity: warning
scope: gpu
params:
  limit: {type: int, default: 200, min: 60, max: 100}
  idle: {type: duration, default: 5m}
when:
  all:
    - {fact: gpu.temperature.cor, op: above, value: 5}
    - {fact: gpu.on_bus, op: above, value: true}
    - {event: xid, where: {cod: 79}}
    - {fact: node.driver.version, op: matches, value: "(?=x)"}
    - {fact: gpu.temperature.core, op: above, value: $limt}
    - {fact: gpu.temperature.core, op: above, value: $limit}
    - {fact: gpu.temperature.core, op: above, value: {fact: gpu.power.draw}}
    - {fact: gpu.temperature.core, op: abov, value: 3, op: below}
action: {bucket: MONITOR}
why: {en: a, zh: 甲}
"""


def faults(text: str, tmp_path: Path, name: str = "too-hot") -> list[tuple[int, int, str, str]]:
    document, rule = loader.read_file(write(tmp_path, text, name))
    assert (rule is None) or not document.faults
    return sorted((f.line, f.column, f.message, f.hint) for f in document.faults)


def test_a_good_file_is_a_rule(tmp_path: Path) -> None:
    document, rule = loader.read_file(write(tmp_path))
    assert document.faults == []
    assert rule is not None
    assert (rule.id, rule.severity, rule.action.bucket) == ("too-hot", Severity.WARNING, Bucket.MONITOR)
    assert isinstance(rule.when, FactLeaf)
    assert rule.when.value == 85
    assert len(rule.tests) == 3


def test_all_faults_of_one_file_at_once(tmp_path: Path) -> None:
    found = faults(TEN, tmp_path)
    assert len(found) >= 10
    expected = {
        1: "'another-name' is not the file name 'too-hot'",
        4: "unknown key 'titel'",
        5: "status",
        9: "200 is outside 60 .. 100",
        10: "'idle' is never used",
        13: "no fact 'gpu.temperature.cor'",
        14: "'above' cannot stand here",
        15: "event xid has no field 'cod'",
        16: "not an RE2 pattern",
        17: "no parameter 'limt'",
        19: "is in W",
        20: "'op' stands twice",
    }
    for line, words in expected.items():
        assert any(words in message for at, _, message, _ in found if at == line), (line, words, found)
    hints = {line: hint for line, _, _, hint in found if hint}
    for line, name in {4: "title", 13: "gpu.temperature.core", 15: "code", 17: "limit", 19: "times"}.items():
        assert name in hints[line], (line, hints)


def test_the_error_names_file_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path, TEN)
    with pytest.raises(FaultsError) as caught:
        loader.read_pack(tmp_path)
    assert f"{path}:13:8: no fact 'gpu.temperature.cor'" in str(caught.value)


@each(
    ("old", "new", "line", "words"),
    [
        ("revision: 1", "revision: 0", 2, "revision"),
        ("revision: 1", "revision: '1'", 2, "revision"),
        ("severity: warning", "severity: bad", 5, "severity"),
        ("scope: gpu", "scope: gpus", 6, "scope"),
        ("type: int", "type: integer", 8, "type"),
        ("default: 85", "default: 85.5", 8, "not a int"),
        ("default: 85", "default: true", 8, "default"),
        ("default: 85", "default: 59", 8, "outside"),
        ("bucket: MONITOR", "bucket: WAIT", 13, "bucket"),
        ("bucket: MONITOR", "bucket: MONITOR, resolve: [oracle]", 13, "resolve"),
        ("expect: matched", "expect: match", 20, "expect"),
        ("revision: 1\n", "", 1, "'revision' is missing"),
        ("value: $limit", "value: $limits", 12, "no parameter 'limits'"),
        ("value: $limit", "value: hot", 12, "is not a int"),
        ("value: $limit", "value: {fact: gpu.power.draw}", 12, "is in W"),
        ("op: at_least", "op: contains", 11, "cannot stand here"),
        ("why:", "explains: [{rule: x, within: soon}]\nwhy:", 14, "not a duration"),
        ("why:", "explains: [{rule: x, via: [proces]}]\nwhy:", 14, "proces"),
        ("why:", "confirms: [{fact: gpu.on_buss, op: is, value: true}]\nwhy:", 14, "no fact 'gpu.on_buss'"),
        ("why:", "excludes: [{}]\nwhy:", 14, "exactly one of"),
    ],
)  # fmt: skip
def test_one_fault_is_told_at_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    found = faults(changed((old, new)), tmp_path)
    assert any(at == line and words in message for at, _, message, _ in found), found


@each("text", ["", "# nothing\n", "- a list\n", "just words\n", "5\n", "id: [\n", "\x00", "a: &a [*a]\n",
                                  "when: 5\nparams: 5\nconfirms: 5\ntests: 5\nexplains: 5\n",
                                  "when: {all: 5}\nparams: {a: 5, b: {type: int}}\nconfirms: [5, {any: []}]\n",
                                  "[" * 5000, "id: 5\nwhen: {fact: 5, op: [], value: {}}\n"])  # fmt: skip
def test_no_text_is_quietly_no_rule(tmp_path: Path, text: str) -> None:
    assert faults(text, tmp_path)


def test_a_bad_pattern_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = changed(("fact: gpu.temperature.core\n  op: at_least\n  value: $limit",
                    "fact: node.driver.version\n  op: matches\n  value: '(a'"))  # fmt: skip
    assert any("not an RE2 pattern" in message for _, _, message, _ in faults(text, tmp_path))
    assert capfd.readouterr().err == "", "the library writes nothing of its own"


def test_a_file_is_named_as_its_rule(tmp_path: Path) -> None:
    assert "is not the file name" in faults(GOOD, tmp_path, "other")[0][2]


# --- packs --------------------------------------------------------------------------------


def test_a_pack_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    for text in ("id: [\n", changed(("op: at_least", "op: at_leest"))):
        write(tmp_path, text)
        with pytest.raises(FaultsError):
            loader.load([tmp_path])
    with pytest.raises(FaultsError, match="cannot be read"):
        loader.load([tmp_path / "absent.yaml"])


def test_the_same_rule_twice_in_one_pack(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b")
    with pytest.raises(FaultsError, match="already defined in"):
        loader.read_pack(tmp_path)


def test_files_that_begin_with_an_underscore_are_no_rules(tmp_path: Path) -> None:
    write(tmp_path, "nonsense: [", "_draft")
    assert loader.read_pack(tmp_path) == {}


@pytest.mark.slow
def test_a_later_pack_lies_over_an_earlier_one(tmp_path: Path) -> None:
    base = loader.load()
    write(tmp_path / "vendor")
    write(tmp_path / "own", changed(("severity: warning", "severity: critical")))
    one = loader.load([tmp_path / "vendor"])
    two = loader.load([tmp_path / "vendor", tmp_path / "own"])
    assert len(two.rules) == len(one.rules) == len(base.rules) + 1
    assert one["too-hot"].severity is Severity.WARNING
    assert two["too-hot"].severity is Severity.CRITICAL
    assert len({base.fingerprint, one.fingerprint, two.fingerprint}) == 3
    assert loader.load([tmp_path / "vendor"]).fingerprint == one.fingerprint


def test_an_unknown_rule_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(UnknownNameError) as caught:
        loader.load([tmp_path])["too-hott"]
    assert "too-hot" in caught.value.hint


@pytest.mark.parametrize(("degrees", "found"), [(84, 0), (85, 1)])
def test_the_default_of_a_parameter_is_the_threshold(tmp_path: Path, degrees: int, found: int) -> None:
    _, rule = loader.read_file(write(tmp_path))
    assert rule is not None
    seen = Observation("gpu.temperature.core", gpu("0000:01:00.0", "n1"), degrees, source=Source("p"))
    assert len(run([rule], FactBase([seen], vocabulary())).findings) == found
