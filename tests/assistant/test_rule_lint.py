"""`gpudiag rules lint` beside the shipped rules: what is laid over them is held against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.rulecheck import check
from tests.rules.files import changed, write

AGAIN = """\
id: page-faults-again
revision: 1
title: {en: Page faults again and again, zh: 缺页错误反复出现}
status: stable
severity: error
scope: gpu
when: {event: xid, where: {code: 31}, count: {at_least: 5}, within: 1h}
action: {bucket: DRAIN_AND_RESET, runbook: gpu-reset}
why:
  en: Five page faults of one GPU within an hour are more than one program does by itself. It is drained and reset.
  zh: 一小时内同一 GPU 出现五次缺页错误，超出单个程序所为。排空并复位。
false_positives: {en: None known., zh: 暂无已知误报。}
references: [https://docs.nvidia.com/deploy/xid-errors/]
tests:
  - {name: five, given: {}, expect: matched}
  - {name: four, given: {}, expect: not_matched}
  - {name: no log, given: {}, expect: unknown}
"""


@pytest.mark.slow
def test_a_new_rule_that_contradicts_a_shipped_one(tmp_path: Path) -> None:
    file = write(tmp_path, AGAIN, "page-faults-again")
    count, (fault,) = check([file])
    assert count == 1
    assert (fault.file, fault.line, fault.column) == (str(file), 7, 1)
    assert "rule gpu-mmu-fault (rules/catalog/xid/gpu-mmu-fault.yaml:11:1)" in fault.message
    assert "DRAIN_AND_RESET here contradicts RESTART_APP there" in fault.message
    write(tmp_path, AGAIN.replace("action:", "explains: [{rule: gpu-mmu-fault}]\naction:"), "page-faults-again")
    assert check([file]) == (1, [])


@pytest.mark.slow
def test_a_wider_rule_that_contradicts_shipped_ones_names_each(tmp_path: Path) -> None:
    text = AGAIN.replace(", count: {at_least: 5}, within: 1h", "").replace("DRAIN_AND_RESET", "IGNORE")
    _, faults = check([write(tmp_path, text, "page-faults-again")])
    assert [f.line for f in faults] == [7]
    assert "holds whenever" not in faults[0].message, "the shipped rule asks for implied codes as well"
    two = text.replace("{event: xid, where: {code: 31}}", "{event: nccl_error}").replace(
        "scope: gpu", "scope: document"
    )
    _, faults = check([write(tmp_path, two, "page-faults-again")])
    assert len(faults) > 10
    assert all("holds whenever rule nccl-" in f.message and f.file.endswith("page-faults-again.yaml") for f in faults)


def test_faults_of_all_files_and_of_the_graph_in_one_run(tmp_path: Path) -> None:
    """A file of which nothing can be read hides nothing of the others."""
    write(tmp_path / "a", "id: [", "broken")
    write(
        tmp_path / "b",
        changed(
            ("status: stable", "status: stabel"),
            ("references: [https://docs.nvidia.com/deploy/nvml-api/]", "references: []"),
        ),
    )
    write(tmp_path / "c", changed(("id: too-hot", "id: other"), ("$limit", "101"), ("params:\n  limit", "applies:\n  arhc"),
                                  ("why:", "explains: [{rule: broken}, {rule: too-hot}]\nwhy:")), "other")  # fmt: skip
    write(tmp_path / "d")
    count, faults = check([tmp_path])
    assert count == 4
    assert [(Path(f.file).parent.name, f.line) for f in faults] == [("a", 2), ("b", 4), ("b", 18), ("c", 8), ("d", 1)]
    assert "is already defined in" in faults[-1].message
