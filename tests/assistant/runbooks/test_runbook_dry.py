"""A walk on paper, over recorded machines."""

from __future__ import annotations

import json

import pytest

from assistant import machine
from assistant.diagnosis import Diagnosis, diagnose
from assistant.render.sheet import Paragraph
from assistant.runbooks import dry, pages
from assistant.runbooks.judging import Judge
from knowledge.facts import vocabulary
from knowledge.runbook import runbook
from rules.factbase import FactBase
from rules.loader import load
from rules.proof import Truth
from tests.conftest import ROOT, Gpudiag

DEMOS = ROOT / "assistant" / "demos"


def diagnosed(name: str) -> tuple[Diagnosis, str]:
    _, look = machine.bundle(str(DEMOS / name / "bundle"))
    return diagnose(look.observations, load(), as_of=look.as_of, whole=look.whole), look.host


def planned(demo: str, book: str) -> dry.Plan:
    diagnosis, host = diagnosed(demo)
    subjects, values = dry.of_diagnosis(runbook(book), diagnosis, host)
    return dry.plan(runbook(book), Judge(diagnosis.facts, subjects), values)


def test_what_the_facts_say_is_taken_and_left_out() -> None:
    plan = planned("row-remap-pending", "row-remap-pending")
    fate = {p.taken.step.id: p for p in plan.steps}
    reset = fate["reset"]
    assert reset.gate is not None
    assert reset.gate.truth is Truth.TRUE
    assert reset.command.startswith("nvidia-smi --gpu-reset -i 0000:")
    assert plan.subjects[0].id in reset.command
    assert not fate["cordon-kubernetes"].taken.rounds  # no kubelet there
    assert fate["drain-slurm"].command.startswith(f"scontrol update nodename={plan.values['node']} ")
    done = fate["done"].verified
    assert done is not None
    assert done.truth is Truth.FALSE  # the repair is still to come


def test_a_healthy_machine_needs_no_reset() -> None:
    plan = planned("healthy", "row-remap-pending")
    reset = next(p for p in plan.steps if p.taken.step.id == "reset")
    assert reset.taken.rounds == 0
    assert reset.gate is not None
    assert "does not hold" in pages.why(reset.gate, "en")
    assert "不成立" in pages.why(reset.gate, "zh")


def test_what_is_not_known_is_asked_and_says_which_probe_would_tell() -> None:
    facts = FactBase((), vocabulary())
    plan = dry.plan(runbook("row-remap-pending"), Judge(facts), {})
    reset = next(p for p in plan.steps if p.taken.step.id == "reset")
    assert reset.taken.asked
    assert reset.taken.rounds == 1
    assert reset.gate is not None
    assert reset.gate.probes == ("nvml",)
    for lang, word in (("en", "would tell: probe nvml"), ("zh", "可由探针 nvml 得知")):
        assert word in pages.why(reset.gate, lang)
    lead = pages.sheet(plan, "en").parts[0]
    assert isinstance(lead, Paragraph)
    assert "Not known whether they apply: drain-slurm" in lead.text


@pytest.mark.parametrize("demo", ["off-the-bus", "fabric-manager-down", "overheating", "left-behind"])
def test_every_demo_can_be_planned_in_both_languages(demo: str) -> None:
    diagnosis, host = diagnosed(demo)
    for name in {f.advice.runbook for f in diagnosis.findings if f.advice.runbook}:
        subjects, values = dry.of_diagnosis(runbook(name), diagnosis, host)
        plan = dry.plan(runbook(name), Judge(diagnosis.facts, subjects), values)
        assert plan.steps
        assert subjects
        for lang in ("en", "zh"):
            assert pages.sheet(plan, lang).parts


def test_on_the_command_line(gpudiag: Gpudiag) -> None:
    bundle = str(DEMOS / "row-remap-pending" / "bundle")
    answer = gpudiag("runbook", "run", "row-remap-pending", "--dry-run", "--bundle", bundle, "--format", "json")
    assert answer.code == 0
    plan = json.loads(answer.out)["plan"]
    assert {s["fate"] for s in plan["steps"]} >= {"taken", "left_out"}
    told = gpudiag("runbook", "run", "thermal")
    assert told.code == 2
    assert "gpudiag incident run" in told.err
