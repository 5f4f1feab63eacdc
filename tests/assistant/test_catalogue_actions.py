"""Every XID of NVIDIA's catalogue, as one line of a kernel log, ends in the catalogue's action or in its workflow's."""

from __future__ import annotations

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import parse_text
from knowledge.catalog.decode_firmware import recovery_action
from knowledge.catalog.xid import all_xids
from knowledge.facts import vocabulary
from knowledge.observation import Observation, gpu
from rules.engine import Role
from rules.loader import load
from rules.model import Bucket, Usable
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


@each("number", list(range(1, 9)))
def test_each_recovery_action_is_named_asks_for_what_it_says_and_reads_alike_from_every_tool(number: int) -> None:
    """The driver's own line, and the state that nvidia-smi reads: one name, one command, and no reset where none is asked for."""
    word = str(recovery_action(number))
    line = f"154, GPU recovery action changed from 0x0 (None) to 0x{number:x} (Some Words)"
    logged, read = judge(line), diagnose((Observation("gpu.recovery_action", gpu("0000:3b:00.0", "n1"), word),), load())
    wanted = {
        "gpu_reset": "nvidia-smi --gpu-reset", "drain_and_reset": "nvidia-smi --gpu-reset", "drain_p2p": "nvidia-smi -q", "unknown": "nvidia-smi -q",
        "recover_imex": "systemctl restart nvidia-imex",
    }.get(word, "systemctl reboot")  # fmt: skip
    named = vocabulary()["gpu.recovery_action"].labels[word]
    assert f"recovery action: {named.en}. Not usable until" in logged.verdict.text.en
    for got in (logged, read):
        first = got.findings[0].advice
        assert first.command.startswith(wanted)
        assert (first.usable, got.verdict.usable) == (Usable.NOT_YET, Usable.NOT_YET)
    if word != "unknown":  # of a line it may be cut off too
        assert logged.findings[0].advice.text == read.findings[0].advice.text
