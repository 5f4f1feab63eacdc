"""Every XID of NVIDIA's catalogue, as one line of a kernel log, ends in the catalogue's action or in its workflow's."""

from __future__ import annotations

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import parse_text
from knowledge.catalog.xid import all_xids
from rules.engine import Role
from rules.loader import load
from rules.model import Bucket
from tests.cases import each

# Codes whose action depends on what the line says or on what stands around it (NVIDIA's workflows).
WORKFLOW = {13, 31, 45, 48, 74, 108, 137, 144, 145, 146, 147, 148, 149, 150, 154}


def judge(*lines: str) -> Diagnosis:
    text = "".join(f"[{100 + i}.5] NVRM: Xid (PCI:0000:3b:00): {line}\n" for i, line in enumerate(lines))
    return diagnose(parse_text("kmsg", text), load())


def test_the_catalogue_of_rules_is_there() -> None:
    assert len(load().rules) >= 120
    assert len({rule.id for rule in load().rules}) == len(load().rules)


@pytest.mark.slow
@each("code", lambda: [entry.code for entry in all_xids()])
def test_one_line_gives_one_root_with_the_catalogues_action(code: int) -> None:
    roots = [f for f in judge(f"{code}, pid=77, name=python3, something happened").findings if f.role is Role.ROOT]
    assert [f.xid for f in roots] == [code]
    entry = next(e for e in all_xids() if e.code == code)
    if code not in WORKFLOW and entry.immediate:
        assert str(roots[0].advice.bucket) == str(entry.immediate)
    assert roots[0].advice.bucket in Bucket
    assert roots[0].advice.text.zh


def test_a_code_that_nobody_knows_is_said_and_nothing_is_advised() -> None:
    roots = judge("999, something new").roots
    assert [(f.rule.id, f.advice.bucket) for f in roots] == [("unknown-xid", Bucket.MONITOR)]


@each("code", [13, 31, 62, 69, 74, 79, 94, 95, 109, 119, 120])
def test_the_driver_s_own_word_outranks_the_catalogue(code: int) -> None:
    reboot = "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    d = judge(f"{code}, pid=77, name=python3, something happened", reboot)
    root = next(f for f in d.roots if f.xid == code)
    assert root.advice.bucket is Bucket.RESTART_BM
    assert [f.xid for f in d.roots] == [code]
