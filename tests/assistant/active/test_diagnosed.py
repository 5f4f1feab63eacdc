"""What follows from the results of tests: nothing above info on sound hardware, the sick part by its name otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from knowledge.observation import Observation, Scope, Source, Status, Subject, Value, gpu, node
from probes.base import Context
from probes.parse import active_run
from rules.loader import load
from rules.model import Severity
from tests.active_lab import BUSES, CAPTURES, NAME
from tests.probes.parse.test_active_run import document
from tests.probes.parse.test_active_run import gpu as row

PCI = [f"0000:{bus:02x}:00.0" for bus in BUSES]
PASSED = json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [
    {"name": "software", "results": [{"entity_group": "GPU", "entity_id": n, "status": "Pass"} for n in range(8)]}]}]}})  # fmt: skip


def known(fact: str, value: Value, on: Subject) -> Observation:
    return Observation(fact, on, value, Status.OK, Source("nvml-snapshot", "nvml"))


def machine() -> list[Observation]:
    """What NVML and sysfs tell of a node with eight H100 and two ports."""
    out = []
    for n, pci in enumerate(PCI):
        g = gpu(pci, "n1")
        out += [
            known("gpu.name", NAME, g),
            known("gpu.index", n, g),
            known("gpu.pcie.gen.max", 5, g),
            known("gpu.pcie.width.max", 16, g),
        ]
    ports = [Subject(Scope.PORT, f"mlx5_{n}/1", node("n1")) for n in range(2)]
    return [*out, *(known("port.rate", 400.0, port) for port in ports)]


def ran(argv: list[str], name: str, **more: Any) -> list[Observation]:
    """A test on all GPUs; `name` is a capture, or its text."""
    text = (CAPTURES / name).read_text() if name.endswith(".txt") else name
    return active_run.FORMAT.parse(
        json.dumps(document(argv, text, [row(n) for n in range(8)], **more)), Context("test", "n1")
    )


def found(*batches: list[Observation]) -> Diagnosis:
    return diagnose([*machine(), *(o for batch in batches for o in batch)], load())


def rules(d: Diagnosis) -> set[tuple[str, str]]:
    return {(f.rule.id, f.subject.id) for f in d.findings if f.severity is not Severity.INFO}


COOL = [
    {"at": 1, "gpus": [row(n, temp="66", power="690.0", sm="1700", reasons="0x0000000000000004") for n in range(8)]}
] * 20


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["nvbandwidth"], "nvbandwidth.healthy8.txt"), (["all_reduce_perf"], "nccl-tests.healthy8.txt"),
        (["gpu_burn", "300"], "gpu-burn.healthy8.txt"), (["ib_write_bw"], "ib-write-bw.healthy400.txt"),
        (["dcgmi", "diag"], PASSED),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else "",
)  # fmt: skip
def test_nothing_above_info_on_sound_hardware(argv: list[str], name: str) -> None:
    """Power caps are normal under full load, and so is what idle looks at first."""
    assert rules(found(ran(argv, name, looks=COOL))) == set()


@pytest.mark.parametrize("outcome", [o for o in active_run.OUTCOMES if o != "ended"])
def test_a_test_that_came_to_no_result_says_nothing_of_the_hardware(outcome: str) -> None:
    batch = ran(["gpu_burn", "300"], "", outcome=outcome, why="because", exit_code=None, looks=COOL)
    assert rules(found(batch)) == set()


def test_one_narrow_link_and_one_slow_nvlink() -> None:
    assert {("host-copy-below-link", PCI[4]), ("peer-copy-below-nvlink", PCI[6])} <= rules(
        found(ran(["nvbandwidth"], "nvbandwidth.sick8.txt"))
    )


def test_a_slow_collective_is_explained_by_the_gpu_that_slows_it() -> None:
    d = found(ran(["nvbandwidth"], "nvbandwidth.sick8.txt"), ran(["all_reduce_perf"], "nccl-tests.slow8.txt"))
    slow = next(f for f in d.findings if f.rule.id == "collective-below-node")
    by = {f.rule.id for f in d.findings if slow.id in f.explains}
    assert by == {"peer-copy-below-nvlink"}


def test_rings_without_the_switch_are_worth_a_word_and_no_more() -> None:
    d = found(ran(["all_reduce_perf"], "nccl-tests.no-nvls8.txt"))
    assert [(f.rule.id, f.severity) for f in d.findings] == [("collective-without-nvls-speed", Severity.INFO)]


def test_half_of_a_port() -> None:
    assert {name for name, _ in rules(found(ran(["ib_write_bw"], "ib-write-bw.half400.txt")))} == {
        "rdma-write-below-port"
    }


def test_heat_and_power_brake_under_load() -> None:
    looks = [{"at": 1, "gpus": [row(2, reasons="0x0000000000000060"), row(5, reasons="0x0000000000000080")]}] * 10
    assert {("test-slowed-by-heat", PCI[2]), ("test-slowed-by-power-brake", PCI[5])} <= rules(
        found(ran(["gpu_burn", "300"], "gpu-burn.healthy8.txt", looks=looks))
    )
