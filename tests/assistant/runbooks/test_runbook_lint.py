"""Faults of what is walked: each at its line and column, with the nearest name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assistant.runbooks.judging import checks
from knowledge import runbook
from knowledge.errors import Fault
from tests.cases import each
from tests.conftest import Answer

GOOD = """\
---
id: walked
title: {en: A walk, zh: 流程}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - id: look
    title: {en: Look, zh: 查看}
    do: {en: Read the sensors., zh: 读取传感器。}
    command: ipmitool sdr
    timeout: 20s
    risk: safe
    consent: none
    if: {fact: gpu.row_remap.pending, op: is, value: true}
    next: swap
  - id: wait
    title: {en: Wait, zh: 等待}
    do: {en: Wait for it., zh: 等待。}
    risk: safe
    consent: none
    repeat:
      until: {fact: gpu.processes, op: at_most, value: 0}
      at_most: 4
      every: 30s
  - id: swap
    title: {en: Swap, zh: 更换}
    do: {en: Swap the fan., zh: 更换风扇。}
    command: systemctl stop app@{node}
    risk: disruptive
    consent: operator
    verify_if:
      all:
        - {fact: gpu.nvml.reachable, op: is, value: true}
    verify_with: [nvml]
    next: end
references: [https://example.org/fans]
---

## English

It is quiet.

## 中文

太安静了。
"""


def lint(folder: Path, text: str) -> list[Fault]:
    (folder / "walked.md").write_text(text, encoding="utf-8")
    return runbook.lint(folder, checks())


def test_the_good_one_is_good(tmp_path: Path) -> None:
    assert lint(tmp_path, GOOD) == []


def test_the_shipped_ones_are_good() -> None:
    assert [str(f) for f in runbook.lint(checks=checks())] == []
    walked = {b.id for b in runbook.all_runbooks() if any(s.only_if or s.verify_if for s in b.steps)}
    assert walked >= {
        "row-remap-pending",
        "gpu-off-bus",
        "fabric-manager",
        "thermal",
        "zombie-memory",
        "uncorrectable-ecc",
    }


VERIFY = (
    "    verify_if:\n      all:\n        - {fact: gpu.nvml.reachable, op: is, value: true}\n    verify_with: [nvml]\n"
)
FAULTS = [
    ("fact", "fact: gpu.row_remap.pending", "fact: gpu.row_remap.pendin", "fact: gpu.row_remap.pendin,", "did you mean gpu.row_remap.pending"),
    ("value", "op: is, value: true}\n    next", "op: is, value: 3}\n    next", "value: 3}", "3 is not a bool"),
    ("operator", "op: at_most", "op: at_mots", "op: at_mots", "did you mean at_most"),
    ("nested", "{fact: gpu.nvml.reachable", "{fact: gpu.nvml.reachabel", "fact: gpu.nvml.reachabel", "did you mean gpu.nvml.reachable"),
    ("condition", "if: {fact: gpu.row_remap.pending, op: is, value: true}", "if: {fakt: 1}", "if: {fakt", "exactly one of"),
    ("probe", "[nvml]", "[nvlm]", "nvlm]", "did you mean nvml"),
    ("no probe", "fact: gpu.processes, op: at_most, value: 0", "fact: benchmark.burn.errors, op: at_most, value: 0", "until: {fact", "no probe tells benchmark.burn.errors"),
    ("nowhere", "next: swap", "next: swop", "next: swop", "did you mean swap"),
    ("back", "next: end", "next: look", "next: look", "a loop is written repeat"),
    ("to a runbook", "next: end", "next: thermal", "next: thermal", "leads nowhere"),
    ("no bound", "      at_most: 4\n", "", None, "a loop without a bound"),
    ("too many", "at_most: 4", "at_most: 100000", "at_most: 100000", "less than or equal to 1000"),
    ("no duration", "every: 30s", "every: soon", "every: soon", "is not a duration"),
    ("days", "timeout: 20s", "timeout: 3d", "timeout: 3d", "a day at most"),
    ("nothing to time", "    command: ipmitool sdr\n", "", "timeout: 20s", "timeout without command"),
    ("unreachable", "    if: {fact: gpu.row_remap.pending, op: is, value: true}\n", "", "id: wait", "step 'wait' is never reached"),
    ("no verify", VERIFY, "", None, "a disruptive step without verify"),
    ("with alone", VERIFY, "    verify: {en: It turns., zh: 转动。}\n    verify_with: [nvml]\n", "verify_with: [nvml]", "verify_with without verify_if"),
    ("end", "- id: wait", "- id: end", "id: end", "no step is called end"),
    ("shell", "ipmitool sdr\n", "ipmitool sdr | less\n", "command: ipmitool", "| needs a shell"),
    ("placeholder", "app@{node}", "app@{nod}", "command: systemctl", "did you mean node"),
]  # fmt: skip


@each(("old", "new", "at", "says"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_each_fault_is_seen_at_its_place(tmp_path: Path, old: str, new: str, at: str | None, says: str) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    faults = [f for f in lint(tmp_path, text) if says in str(f)]
    assert len(faults) == 1, lint(tmp_path, text)
    if at is not None:
        assert text.count(at) == 1
        before = text[: text.index(at)]
        assert (faults[0].line, faults[0].column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


def test_a_site_takes_the_place_of_a_shipped_one_and_says_so(tmp_path: Path, gpudiag: Callable[..., Answer]) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "thermal.md").write_text(GOOD.replace("id: walked", "id: thermal"), encoding="utf-8")
    (site / "walked.md").write_text(GOOD, encoding="utf-8")
    (site / "broken.md").write_text(
        GOOD.replace("id: walked", "id: broken").replace("risk: safe", "risk: none", 1), encoding="utf-8"
    )
    env = {"GPUDIAG_RUNBOOK_DIRS": str(site)}
    listed = gpudiag("runbook", "list", env=env)
    assert "in place of the shipped one" in " ".join(listed.out.split())
    assert "walked" in listed.out
    assert "broken.md:12:5" in listed.err
    assert "this runbook does not count" in listed.err
    linted = gpudiag("runbook", "lint", env=env)
    assert linted.code == 2
    assert "broken.md:12:5" in linted.out
    gone = gpudiag("runbook", "list", env={"GPUDIAG_RUNBOOK_DIRS": str(tmp_path / "none")})
    assert "the folder of runbooks cannot be read" in gone.err
    assert gone.code == 0


def test_runbooks_that_send_each_other_round_are_seen_at_the_branch(tmp_path: Path) -> None:
    for name, other in (("walked", "second"), ("second", "third"), ("third", "walked")):
        text = GOOD.replace("id: walked", f"id: {name}").replace("    next: end\n", f"    on_failure: {other}\n")
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    faults = runbook.lint(tmp_path, checks())
    assert len(faults) == 3
    assert faults[-1].file.endswith("walked.md")
    assert faults[-1].message.endswith("walked -> second -> third -> walked")
    lines = (tmp_path / "walked.md").read_text(encoding="utf-8").splitlines()
    assert lines[faults[-1].line - 1] == "    on_failure: second"
