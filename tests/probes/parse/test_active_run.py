"""The document of an active test: how it went, what the GPUs did, and whose the figures are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.observation import Clock, Observation, Scope, Status
from probes.base import Context
from probes.parse._active_facts import OWN
from probes.parse.active_run import FORMAT, OUTCOMES
from probes.registry import sniff
from tests.active_lab import CAPTURES, Lab
from tests.cases import each
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

BEGAN, ENDED = 1_790_000_000_000_000_000, 1_790_000_030_000_000_000
KEYS = ("index", "uuid", "pci.bus_id", "name", "utilization.gpu", "memory.used", "memory.total", "mig.mode.current",
        "temperature.gpu", "power.draw", "clocks.sm", "clocks_event_reasons.active")  # fmt: skip


def gpu(index: int, **other: str) -> dict[str, str]:
    row = Lab.row(None, index, **other)  # type: ignore[arg-type]
    return dict(zip(KEYS, row.values(), strict=True))


def document(argv: list[str], stdout: str, gpus: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    said = {
        "schema": "gpudiag/active/1", "test": "x", "argv": argv, "began": BEGAN, "started": BEGAN, "ended": ENDED,
        "outcome": "ended", "why": "", "exit_code": 0, "stdout": stdout, "stderr": "", "left": [],
        "before": {"at": BEGAN, "gpus": gpus, "apps": []}, "looks": [],
    }  # fmt: skip
    return said | more


def read(said: dict[str, Any]) -> list[Observation]:
    got = FORMAT.parse(json.dumps(said), Context("run.json", "n1"))
    assert_in_vocabulary(got, FORMAT)
    return got


def values(got: list[Observation], fact: str) -> dict[str, Any]:
    return {o.subject.id: o.value for o in got if o.fact == fact and o.status is Status.OK}


def text(name: str) -> str:
    return (CAPTURES / name).read_text()


def test_it_is_recognised_by_its_schema() -> None:
    found = sniff(json.dumps(document(["nvbandwidth"], "", [])))
    assert found is not None
    assert found.name == "active-run"


def test_a_healthy_run() -> None:
    got = read(document(["nvbandwidth", "-t", "x"], text("nvbandwidth.healthy8.txt"), [gpu(n) for n in range(8)]))
    assert values(got, "active.outcome") == {"run.json": "ended"}
    assert values(got, "active.seconds") == {"run.json": 30.0}
    assert values(got, "active.left_running") == {"run.json": 0}
    assert len(values(got, "benchmark.h2d")) == 8
    assert {(o.at, o.clock) for o in got} == {
        (ENDED, Clock.REALTIME)
    }  # so the history can hold them against each other


def test_figures_of_a_part_of_the_gpus_are_theirs() -> None:
    """CUDA numbers the GPUs that it may see from 0; gpu-burn lists all that there are ahead of them."""
    got = read(document(["gpu_burn", "300"], text("gpu-burn.faulty-second.txt"), [gpu(2), gpu(5)]))
    assert values(got, "benchmark.burn.verdict") == {"0000:4c:00.0": "ok", "0000:ba:00.0": "faulty"}
    assert values(got, "benchmark.burn.errors") == {"0000:4c:00.0": 0, "0000:ba:00.0": 70}


def test_dcgm_keeps_the_numbers_of_the_machine() -> None:
    diag = json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [
        {"name": "memory", "results": [{"entity_group": "GPU", "entity_id": 5, "status": "Fail",
                                        "warnings": [{"warning": "row remap pending", "error_id": 84}]}]}]}]}})  # fmt: skip
    got = read(document(["dcgmi", "diag", "-r", "2"], diag, [gpu(2), gpu(5)], exit_code=226))
    assert [o.subject.id for o in got if o.fact == "dcgm_diag"] == ["0000:ba:00.0"]
    assert values(got, "node.dcgm.diag.result") == {"n1": "fail"}


def test_what_the_gpus_did_meanwhile() -> None:
    looks = [{"at": BEGAN + n, "gpus": [gpu(0, temp=str(60 + n), power="650.5", sm="1755", reasons="0x0000000000000004"),
                                        gpu(1, temp="[N/A]", power="[N/A]", sm="900", reasons="0x00000000000000E0" if n < 5 else "0x0")]}
             for n in range(10)]  # fmt: skip
    got = read(document(["gpu_burn", "300"], "", [gpu(0), gpu(1)], looks=looks))
    hot, slow = "0000:1a:00.0", "0000:3b:00.0"
    assert values(got, "gpu.active.temperature.max") == {hot: 69}
    assert values(got, "gpu.active.power.max") == {hot: 650.5}
    assert values(got, "gpu.active.clock.sm.median") == {hot: 1755, slow: 900}
    assert values(got, "gpu.active.slowed.thermal.share") == {hot: 0.0, slow: 50.0}
    assert values(got, "gpu.active.slowed.power_brake.share") == {hot: 0.0, slow: 50.0}


@each("outcome", [o for o in OUTCOMES if o not in ("ended", "timeout", "cancelled")])
def test_nothing_is_drawn_from_what_measured_something_else(outcome: str) -> None:
    said = document(
        ["nvbandwidth"], text("nvbandwidth.healthy8.txt"), [gpu(0)], outcome=outcome, why="because", exit_code=None
    )
    got = read(said)
    assert {o.fact for o in got} <= set(OWN)
    assert values(got, "active.why") == {"run.json": "because"}


def test_an_error_of_the_tool_is_the_reason() -> None:
    got = read(document(["nvbandwidth"], "", [gpu(0)], exit_code=3, stderr="\nCUDA_ERROR_NO_DEVICE\nmore\n"))
    assert values(got, "active.why") == {"run.json": "x ended with exit code 3: CUDA_ERROR_NO_DEVICE"}


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
                    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3), max_leaves=8)  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(document([], "", []))), JSON))
def test_no_document_breaks_it(changed: dict[str, Any]) -> None:
    said = document(["all_reduce_perf"], text("nccl-tests.healthy8.txt")[:2000], [gpu(0)]) | changed
    got = FORMAT.parse(json.dumps(said), Context("x"))
    derive(got)
    assert all(o.detail for o in got if o.status is not Status.OK)


@given(st.text(max_size=200))
def test_other_text_says_nothing(text: str) -> None:
    assert FORMAT.parse(text, Context("x")) == []
    assert not FORMAT.sniff(text)


@pytest.mark.parametrize("at", [40, 400, 1500])
def test_half_a_document_says_nothing(at: int) -> None:
    whole = json.dumps(document(["nvbandwidth"], text("nvbandwidth.healthy8.txt"), [gpu(0)]))
    assert FORMAT.parse(whole[:at], Context("x")) == []


def test_every_gpu_of_a_sick_machine_is_named_once() -> None:
    got = derive(read(document(["nvbandwidth"], text("nvbandwidth.sick8.txt"), [gpu(n) for n in range(8)])))
    median = {o.subject.id: o.value for o in got if o.fact == "benchmark.d2d.median" and isinstance(o.value, float)}
    assert [pci for pci, value in median.items() if value < 335] == ["0000:ca:00.0"]
    assert all(o.subject.scope is Scope.GPU for o in got if o.fact == "benchmark.d2d.median")
