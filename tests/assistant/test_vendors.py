"""A node with GPUs of other vendors: never called healthy unseen, never silent, and told nothing that is NVIDIA's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from assistant.diagnosis import Diagnosis, State, diagnose
from assistant.exits import Exit
from knowledge.derive import derive
from knowledge.identity import resolve
from knowledge.observation import Observation, Scope, Source, Status, Subject, Value, gpu, node
from probes.base import Context, DocumentFormat, best, lines_of
from probes.parse import kernel_log
from probes.registry import formats
from rules.loader import load
from rules.model import Severity, Usable
from tests.cases import each
from tests.conftest import ROOT, Gpudiag
from tests.probes.amd_tree import machine, sicken

CAPTURES = ROOT / "tests/captures/vendor"
OF_ALL = {"core-near-slowdown", "hotter-than-peers", "gpu-idle-while-held"}  # rules that hold for a GPU of any vendor
HEALTHY = {
    "amd": ("lspci-mi300x.txt", "amd-smi-static.json", "amd-smi-metric-healthy.json"),
    "intel": ("xpu-smi-discovery.json", "xpu-smi-health-healthy.txt", "xpu-smi-stats-healthy.json"),
    "huawei": ("npu-smi-healthy.txt",),
    "habana": ("hl-smi-healthy.txt",),
}
SICK = {
    "amd": (
        ("lspci-mi300x.txt", "amd-smi-static.json", "amd-smi-metric-sick.json"),
        {"gpu-uncorrected-errors", "gpu-hotspot-at-slowdown", "amdgpu-held-down-by-heat", "xgmi-link-errors"},
    ),
    "intel": (("xpu-smi-discovery.json", "xpu-smi-health-sick.txt", "xpu-smi-stats-sick.json"), {"gpu-health-alarm"}),
    "huawei": (("npu-smi-sick.txt",), {"gpu-health-alarm", "gpu-health-warning", "npu-not-started"}),
    "habana": (("hl-smi-sick.txt",), {"gpu-uncorrected-errors"}),
}  # fmt: skip
UNJUDGED = {
    "the bus alone": ("lspci-mi300x.txt",),
    "rocm-smi": ("rocm-smi-all.json",),
    "mthreads-gmi": ("mthreads-gmi.txt",),
}
LOGS = {
    "amdgpu 0000:65:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block": "amdgpu-uncorrected-error-logged",
    "amdgpu 0000:65:00.0: amdgpu: device lost from bus!": "amdgpu-lost-from-bus",
    "amdgpu 0000:65:00.0: amdgpu: Fatal error during GPU init": "amdgpu-init-failed",
    "amdgpu 0000:65:00.0: amdgpu: RAS records:130 exceed threshold:128": "amdgpu-bad-page-limit",
    "amdgpu 0000:65:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3": "amdgpu-ring-timeout",
    "amdgpu 0000:65:00.0: amdgpu: GPU reset(2) failed": "amdgpu-reset-failed",
    "xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.": "intel-gpu-wedged",
    "xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported FATAL error 0x20000": "intel-gpu-hardware-error",
    "i915 0000:4d:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [1234]": "intel-gpu-hang",
}  # fmt: skip


@cache
def read(name: str) -> tuple[Observation, ...]:
    text = (CAPTURES / name).read_text()
    form = best(formats(), text[: 64 << 10])
    assert isinstance(form, DocumentFormat)
    return tuple(form.parse(text, Context(name, "n1")))


def judge(*names: str, more: Sequence[Observation] = ()) -> Diagnosis:
    found = [*chain.from_iterable(map(read, names)), *more]
    return diagnose(derive(resolve(found)), load())


def see(fact: str, value: Value, subject: Subject) -> Observation:
    return Observation(fact, subject, value, source=Source("test", "f"))


def commands(d: Diagnosis) -> list[str]:
    return [f.advice.command for f in d.findings if f.advice.command]


# --- never healthy unseen -------------------------------------------------------------------


@pytest.mark.parametrize("names", UNJUDGED.values(), ids=UNJUDGED)
def test_what_nothing_told_the_health_of_is_unknown(names: Sequence[str]) -> None:
    d = judge(*names)
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.UNKNOWN, Usable.UNKNOWN, Exit.UNDECIDED)
    assert [f.rule.id for f in d.findings] == ["gpu-health-not-judged"]
    assert "health" in d.verdict.text.en
    assert "健康" in d.verdict.text.zh


@each("status", [s for s in Status if not s.answered])
def test_a_tool_that_did_not_answer_makes_no_health(status: Status) -> None:
    detail = "" if status is Status.NONE_SEEN else "dcmi module initialize failed"
    asked = Observation("node.gpus.amd", node("n1"), None, status, Source("amd-smi", "amd-smi"), detail=detail)
    d = judge("lspci-mi300x.txt", more=[asked])
    assert (d.verdict.state, d.exit) == (State.UNKNOWN, Exit.UNDECIDED)
    assert detail in d.verdict.text.en


def test_a_whole_list_of_bad_pages_tells_what_it_tells() -> None:
    form = next(f for f in formats() if f.name == "amd-smi")
    assert isinstance(form, DocumentFormat)
    sections = [f"    {name}: No bad pages found.\n" for name in ("RETIRED", "PENDING", "UN_RES")]
    for given, state in ((sections, State.OK), (sections[:1], State.UNKNOWN)):
        text = "".join(f"GPU: {n}\n{''.join(given)}\n" for n in range(2))
        assert diagnose(form.parse(text, Context("x")), load()).verdict.state is state


def test_one_of_four_that_is_not_judged_is_enough() -> None:
    rest = [see("gpu.ras.uncorrected", 0, gpu(f"0000:{bus}:00.0", "n1")) for bus in ("05", "15", "65")]
    d = judge("lspci-mi300x.txt", more=rest)
    assert (d.verdict.state, d.exit) == (State.UNKNOWN, Exit.UNDECIDED)
    assert "1 GPU of AMD" in d.verdict.text.en
    last = see("gpu.ras.uncorrected", 0, gpu("0000:75:00.0", "n1"))
    assert judge("lspci-mi300x.txt", more=[*rest, last]).verdict.state is State.OK


def test_gpus_of_nvidia_in_order_do_not_speak_for_the_others() -> None:
    own = [see("node.pci.gpu_count", 1, node("n1")), see("gpu.row_remap.failure", False, gpu("0000:aa:00.0", "n1"))]
    amd = see("pci.accelerator", "amd", Subject(Scope.PCI, "0000:05:00.0", node("n1")))
    assert judge(more=own).verdict.state is State.OK
    assert judge(more=[*own, amd]).verdict.state is State.UNKNOWN


# --- healthy and sick -----------------------------------------------------------------------


@each("names", HEALTHY.values(), ids=HEALTHY)
def test_healthy_outputs_raise_no_alarm(names: Sequence[str]) -> None:
    d = judge(*names)
    assert (d.verdict.state, d.exit) == (State.OK, Exit.OK)
    assert [f.rule.id for f in d.findings if f.severity.rank >= Severity.WARNING.rank] == []


@each(("names", "expected"), SICK.values(), ids=SICK)
def test_sick_outputs_are_told(names: Sequence[str], expected: set[str]) -> None:
    d = judge(*names)
    assert (d.verdict.state, d.exit) == (State.UNHEALTHY, Exit.FINDING)
    assert {f.rule.id for f in d.findings} >= expected


@each("line", LOGS, ids=LOGS.values())
def test_logs_are_told(line: str) -> None:
    d = diagnose(derive(resolve(kernel_log.parse(lines_of(f"[9.0] {line}"), Context("log", "n1")))), load())
    assert LOGS[line] in {f.rule.id for f in d.findings}
    assert d.exit is Exit.FINDING
    assert not [c for c in commands(d) if "nvidia" in c]


# --- nothing that is NVIDIA's ---------------------------------------------------------------


@each("names", [*HEALTHY.values(), *(n for n, _ in SICK.values()), *UNJUDGED.values()], ids=" ".join)
def test_no_rule_and_no_command_of_nvidia(names: Sequence[str]) -> None:
    d = judge(*names)
    own = {r.id for r in load().rules if r.area in ("vendor", "amd", "intel", "ascend")}
    assert {f.rule.id for f in d.findings} <= own | OF_ALL
    assert not [c for c in commands(d) if "nvidia" in c or "dcgm" in c]
    for f in d.findings:
        assert "nvidia-smi" not in f.advice.text.en, f.rule.id


def test_the_rules_of_vendors_speak_of_no_tool_of_nvidia() -> None:
    for rule in load().rules:
        if rule.area in ("vendor", "amd", "intel", "ascend"):
            for text in (rule.title, rule.why):
                assert "nvidia-smi" not in text.en + text.zh, rule.id
                assert text.zh


def test_what_would_decide_a_question_is_the_vendors_tool(gpudiag: Gpudiag) -> None:
    answer = gpudiag("check", "--input", str(CAPTURES / "mthreads-gmi.txt"))
    assert answer.code == Exit.UNDECIDED
    assert "nvidia" not in answer.out.lower()


# --- a whole machine ------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "code", "state"), [("ok", 0, "ok"), ("sick", 1, "unhealthy"), ("bare", 1, "")])
def test_check_on_a_node_with_gpus_of_amd_only(
    tmp_path: Path, gpudiag: Gpudiag, kind: str, code: int, state: str
) -> None:
    node_ = machine(tmp_path / "root", driver=kind != "bare")
    if kind == "sick":
        sicken(node_)
    words = ("check", "--no-history", "--probe", "pci", "--probe", "amdgpu", "--format", "json")
    answer = gpudiag(*words, env={"GPUDIAG_HOST_ROOT": str(node_.root)})
    assert answer.code == code, answer.out
    out = json.loads(answer.out)
    assert not state or out["verdict"]["state"] == state
    assert {f["rule"] for f in out["findings"]} >= {
        "ok": set(), "sick": {"gpu-uncorrected-errors", "amdgpu-bad-pages-pending"}, "bare": {"accelerator-without-driver"},
    }[kind]  # fmt: skip
    assert "nvidia-smi" not in json.dumps([f["action"] for f in out["findings"]])
