"""`gpudiag rules` and `gpudiag runbook`: list, show, lint, test, export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assistant.stories import DBE
from tests.conftest import Gpudiag

GOOD = """\
id: site-hot-gpu
revision: 1
title: {en: The GPU is hotter than this site allows, zh: GPU 温度超过本站点允许值}
status: stable
severity: warning
scope: gpu
params:
  limit: {type: float, default: 80, min: 60, max: 95, unit: C}
when: {fact: gpu.temperature.core, op: above, value: $limit}
action: {bucket: MONITOR}
why:
  en: This site runs its GPUs in a warm room and wants to hear of every GPU above eighty degrees, whatever the vendor allows.
  zh: 本站点机房温度较高，希望获知每一块超过八十度的 GPU，无论厂商是否允许。
false_positives: {en: A short burst of load., zh: 短时间的高负载。}
references: [https://example.org/site-thermal-policy]
tests:
  - {name: hot, given: {facts: [{fact: gpu.temperature.core, value: 81}]}, expect: matched}
  - {name: warm, given: {facts: [{fact: gpu.temperature.core, value: 80}]}, expect: not_matched}
  - {name: unsupported, given: {facts: [{fact: gpu.temperature.core, status: unsupported}]}, expect: unknown}
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "site-hot-gpu.yaml").write_text(GOOD, encoding="utf-8")
    return folder


def test_list_and_show(gpudiag: Gpudiag) -> None:
    every = json.loads(gpudiag("rules", "list", "--format", "json").out)
    ids = [r["id"] for r in every["rules"]]
    assert ids == sorted(ids)
    assert len(ids) > 50
    text = gpudiag("rules", "list").out
    assert all(i in text for i in ids)
    assert gpudiag("rules", "show", ids[0]).code == 0
    some = json.loads(gpudiag("rules", "list", "--area", "xid", "--format", "json").out)
    assert {r["area"] for r in some["rules"]} == {"xid"}
    wrong = gpudiag("rules", "list", "--area", "xidd")
    assert wrong.code == 2
    assert "did you mean xid" in wrong.err


def test_the_shipped_catalogue_is_sound(gpudiag: Gpudiag) -> None:
    answer = gpudiag("rules", "lint")
    assert answer.out.endswith(" 0 faults, 0 warnings\n"), answer.out
    assert answer.code == 0


def test_the_shipped_rules_pass_their_tests(gpudiag: Gpudiag) -> None:
    answer = gpudiag("rules", "test", timeout=300)
    assert answer.out.splitlines()[-1].endswith(" passed, 0 failed"), answer.out
    assert answer.code == 0


def test_a_good_pack(gpudiag: Gpudiag, pack: Path) -> None:
    assert gpudiag("rules", "lint", str(pack)).out == "1 files, 0 faults, 0 warnings\n"
    tested = gpudiag("rules", "test", "site-hot-gpu", "--rules", str(pack), "--mutate")
    assert (tested.code, tested.out) == (0, "0 mutants survived\n1 rules\n3 passed, 0 failed\n")
    assert "site-hot-gpu" in gpudiag("rules", "list", "--rules", str(pack)).out
    shown = gpudiag("rules", "show", "site-hot-gpu", "--rules", str(pack))
    assert "gpu.temperature.core is above 80" in shown.out


def test_a_failing_case_fails(gpudiag: Gpudiag, pack: Path) -> None:
    file = pack / "site-hot-gpu.yaml"
    file.write_text(GOOD.replace("value: 81", "value: 79"), encoding="utf-8")
    answer = gpudiag("rules", "test", "site-hot-gpu", "--rules", str(pack))
    assert answer.code == 2
    assert "site-hot-gpu: hot: expected matched, got not_matched" in answer.out
    assert answer.out.endswith("2 passed, 1 failed\n")


def test_a_clause_that_no_test_notices_fails(gpudiag: Gpudiag, pack: Path) -> None:
    file = pack / "site-hot-gpu.yaml"
    text = GOOD.replace(
        "when: {fact", "when:\n  any:\n    - {fact: gpu.power.draw, op: above, value: 10000}\n    - {fact"
    )
    file.write_text(text, encoding="utf-8")
    answer = gpudiag("rules", "test", "site-hot-gpu", "--rules", str(pack), "--mutate")
    assert answer.code == 2


def test_nothing_to_test_or_to_lint_is_a_failure(gpudiag: Gpudiag, pack: Path, tmp_path: Path) -> None:
    file = pack / "site-hot-gpu.yaml"
    file.write_text(GOOD[: GOOD.index("tests:")], encoding="utf-8")
    untested = gpudiag("rules", "test", "site-hot-gpu", "--rules", str(pack))
    assert untested.code == 2
    assert "no cases were found" in untested.out
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = gpudiag("rules", "lint", str(empty))
    assert nothing.code == 2
    assert "holds no rule files" in nothing.out


def test_faults_of_style_in_a_configured_pack_are_warnings(gpudiag: Gpudiag, pack: Path) -> None:
    file = pack / "site-hot-gpu.yaml"
    file.write_text(GOOD.replace("references: [https://example.org/site-thermal-policy]\n", ""), encoding="utf-8")
    named = gpudiag("rules", "lint", str(file))
    assert named.code == 2
    assert "no reference" in named.out
    configured = gpudiag("rules", "lint", env={"GPUDIAG_RULE_PACKS": str(pack)})
    assert configured.code == 0
    assert "no reference [warning: site pack]" in configured.out


def test_a_lint_of_a_missing_file(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("rules", "lint", str(tmp_path / "absent.yaml"))
    assert answer.code == 2
    assert "does not exist" in answer.err


SITE = """\
- rule: {rule}
  disable: true
  reason: being replaced this week
  owner: ops@example.org
  expires: "{date}"
"""


def test_site_files(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(DBE, encoding="utf-8")
    before = json.loads(gpudiag("check", "--log", str(log), "--format", "json").out)
    rule = before["findings"][0]["rule"]
    site = tmp_path / "site.yaml"
    site.write_text(SITE.format(rule=rule, date="2999-01-01"), encoding="utf-8")
    assert gpudiag("rules", "lint", str(site)).code == 0
    after = json.loads(gpudiag("check", "--log", str(log), "--site", str(site), "--format", "json").out)
    assert rule not in [f["rule"] for f in after["findings"]]
    assert any(f"rule {rule} is switched off: being replaced this week" in n for n in after["notes"])
    site.write_text(SITE.format(rule=rule, date="2001-01-01"), encoding="utf-8")  # it has ended
    expired = json.loads(gpudiag("check", "--log", str(log), "--site", str(site), "--format", "json").out)
    assert rule in [f["rule"] for f in expired["findings"]]
    site.write_text(SITE.format(rule="no-such-rule", date="2999-01-01"), encoding="utf-8")
    for words in (("rules", "lint", str(site)), ("check", "--log", str(log), "--site", str(site))):
        wrong = gpudiag(*words)
        assert wrong.code == 2
        assert "no rule 'no-such-rule'" in wrong.out + wrong.err


def test_export(gpudiag: Gpudiag) -> None:
    data = json.loads(gpudiag("rules", "export").out)
    assert data["schema"] == "gpudiag/rules/1"
    listed = json.loads(gpudiag("rules", "list", "--format", "json").out)
    assert [r["id"] for r in data["rules"]] == [r["id"] for r in listed["rules"]]
    assert all({"when", "why", "tests", "file"} <= set(r) for r in data["rules"])


def test_runbooks(gpudiag: Gpudiag, tmp_path: Path) -> None:
    books = json.loads(gpudiag("runbook", "list", "--format", "json").out)["runbooks"]
    assert books
    for lang in ("en", "zh"):
        shown = gpudiag("runbook", "show", books[0]["id"], "--lang", lang)
        assert shown.code == 0
        assert "\n1. " in shown.out
    sound = gpudiag("runbook", "lint")
    assert sound.code == 0, sound.out
    assert gpudiag("runbook", "lint", str(tmp_path)).code == 2
