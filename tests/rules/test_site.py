"""Site files: what a site may change, with a reason, an owner and an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.errors import FaultsError
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Source, gpu
from rules import loader
from rules.engine import run
from rules.factbase import FactBase
from rules.loader import RuleSet
from rules.model import Severity
from tests.cases import each
from tests.rules.files import write

WHO = "reason: agreed with facilities, owner: ops, expires: '2030-01-31'"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    write(tmp_path / "pack")
    return tmp_path / "pack"


def load(pack: Path, text: str, today: str = "2026-01-01") -> RuleSet:
    site = pack.parent / "site.yaml"
    site.write_text(text, encoding="utf-8")
    return loader.load([pack], site, today)


def faults(pack: Path, text: str) -> list[tuple[int, int, str, str]]:
    with pytest.raises(FaultsError) as caught:
        load(pack, text)
    return [(f.line, f.column, f.message, f.hint) for f in caught.value.faults]


def matches(rules: RuleSet, degrees: int) -> bool:
    seen = Observation("gpu.temperature.core", gpu("0000:01:00.0", "n1"), degrees, source=Source("p"))
    return bool(run([rules["too-hot"]], FactBase([seen], vocabulary())).findings)


def test_a_parameter_really_moves_the_threshold(pack: Path) -> None:
    strict = load(pack, f"- {{rule: too-hot, params: {{limit: 70}}, {WHO}}}\n")
    plain = loader.load([pack])
    assert [matches(plain, d) for d in (69, 70, 84, 85)] == [False, False, False, True]
    assert [matches(strict, d) for d in (69, 70, 84, 85)] == [False, True, True, True]
    assert strict.notes == ("rule too-hot uses limit=70: agreed with facilities (ops, until 2030-01-31)",)
    assert strict.fingerprint != plain.fingerprint


def test_nobody_changes_a_rule_without_answering_for_it(pack: Path) -> None:
    keys = ("reason", "owner", "expires")
    kept = [", ".join(part for part in WHO.split(", ") if not part.startswith(key)) for key in keys]
    found = faults(pack, "".join(f"- {{rule: too-hot, disable: true, {who}}}\n" for who in (WHO, *kept)))
    assert [(line, message) for line, _, message, _ in found] == [
        (number, f"key {key!r} is missing") for number, key in enumerate(keys, 2)
    ]


def test_what_a_site_may_not_write(pack: Path) -> None:
    """Each entry has its fault at its own line, all of them at once."""
    wrong = (
        ("rule: too-hott, disable: true", "no rule 'too-hott'"),
        ("rule: too-hot, params: {limt: 70}", "has no parameter 'limt'"),
        ("rule: too-hot, params: {limit: 59}", "59 is outside 60 .. 100"),
        ("rule: too-hot, params: {limit: 101}", "101 is outside"),
        ("rule: too-hot, params: {limit: 70.5}", "not a int"),
        ("rule: too-hot, params: {limit: true}", "not a int"),
        ("rule: too-hot, params: {limit: '70'}", "not a int"),
        ("rule: too-hot, severity: bad", "severity"),
        ("rule: too-hot, disable: yes", "disable"),
        ("rule: too-hot, when: {known: xid}", "unknown key 'when'"),
        ("rule: too-hot, suppress_hosts: n1", "suppress_hosts"),
    )
    found = faults(pack, "# ours\n" + "".join(f"- {{{entry}, {WHO}}}\n" for entry, _ in wrong))
    assert all(2 <= line < 2 + len(wrong) and column > 1 for line, column, _, _ in found)
    for number, (entry, words) in enumerate(wrong, 2):
        assert [m for line, _, m, _ in found if line == number and words in m], (entry, found)


def test_the_nearest_names_are_told(pack: Path) -> None:
    found = faults(pack, f"- {{rule: too-hott, {WHO}}}\n- {{rule: too-hot, params: {{limt: 70}}, {WHO}}}\n")
    assert "too-hot" in found[0][3]
    assert "limit" in found[1][3]


def test_a_day_that_does_not_exist(pack: Path) -> None:
    days = ("2030-02-30", "2030-13-01", "0000-01-01")
    entries = (f"- {{rule: too-hot, disable: true, reason: long, owner: me, expires: '{day}'}}\n" for day in days)
    assert [m for _, _, m, _ in faults(pack, "".join(entries))] == [f"there is no day {day!r}" for day in days]


@each("text", ["a: 1\n", "words\n", "- 5\n", "- [a]\n", "- {rule: [\n", "\x00"])
def test_a_site_file_of_another_shape_is_an_error(pack: Path, text: str) -> None:
    assert faults(pack, text)


def test_a_site_file_that_is_not_there_is_an_error(pack: Path) -> None:
    with pytest.raises(FaultsError, match="cannot be read"):
        loader.load([pack], pack / "absent.yaml")


def test_an_empty_site_file_changes_nothing(pack: Path) -> None:
    assert load(pack, "# nothing yet\n").rules == loader.load([pack]).rules


@pytest.mark.slow
@each(("today", "in_force"), [("2030-01-30", True), ("2030-01-31", True), ("2030-02-01", False), ("", True)])
def test_an_entry_ends_with_its_day(pack: Path, today: str, in_force: bool) -> None:
    rules = load(pack, f"- {{rule: too-hot, params: {{limit: 70}}, severity: critical, {WHO}}}\n", today)
    assert matches(rules, 75) is in_force
    assert (rules["too-hot"].severity is Severity.CRITICAL) is in_force
    assert any("uses limit=70" in note for note in rules.notes) is in_force
    assert any("expired on 2030-01-31" in note for note in rules.notes) is not in_force, "it does not vanish unseen"


def test_a_disabled_rule_is_gone_and_told(pack: Path) -> None:
    rules = load(pack, f"- {{rule: too-hot, disable: true, {WHO}}}\n- {{rule: too-hot, severity: error, {WHO}}}\n")
    assert "too-hot" not in {r.id for r in rules.rules}
    assert [n for n in rules.notes if "switched off" in n]


def test_hosts_are_suppressed_one_by_one(pack: Path) -> None:
    rules = load(
        pack,
        f"- {{rule: too-hot, suppress_hosts: [n2, n1], {WHO}}}\n- {{rule: too-hot, suppress_hosts: [n2, n3], {WHO}}}\n",
    )
    assert rules.suppressed == {"too-hot": ("n1", "n2", "n3")}
    assert rules["too-hot"].severity is Severity.WARNING


def test_the_last_entry_about_a_thing_counts(pack: Path) -> None:
    rules = load(
        pack,
        f"- {{rule: too-hot, params: {{limit: 70}}, severity: error, {WHO}}}\n"
        f"- {{rule: too-hot, params: {{limit: 95}}, severity: info, {WHO}}}\n",
    )
    assert rules["too-hot"].severity is Severity.INFO
    assert not matches(rules, 94)
