"""Diagnoses of the hardware around the GPUs: nothing above info on a healthy machine, the right causes on a sick one."""

from __future__ import annotations

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import parse_text
from knowledge.observation import Observation
from rules.engine import Role
from rules.loader import load
from rules.model import Severity
from tests.probes.parse.smi_case import capture

RULES = load()
HEALTHY = (
    "bmc/sel-healthy.txt", "bmc/sdr-healthy.txt", "bmc/sensor-healthy.txt", "bmc/redfish-healthy.json", "bmc/redfish-thermal.json",
    "drives/nvme-healthy.json", "drives/nvme-text.txt", "drives/smartctl-sata-healthy.json", "drives/smartctl-nvme-healthy.json",
    "board/platform-healthy.json", "board/dmidecode-healthy.txt", "board/chronyc-healthy.txt", "board/chronyc-local.txt",
    "board/timesync.txt", "board/pmc.txt",
)  # fmt: skip
SICK = {
    "bmc/sel-sick.txt": {"memory-fault-logged", "bus-fault-logged", "power-fault-logged", "watchdog-reset-logged"},
    "bmc/sdr-sick.txt": {"psu-without-input", "psu-failed", "power-redundancy-lost", "chassis-fan-failed", "fan-redundancy-lost",
                         "board-sensor-critical", "inlet-air-hot"},
    "bmc/sensor-sick.txt": {"board-sensor-critical"},
    "bmc/redfish-sick.json": {"psu-without-input", "part-reported-critical", "machine-reported-unhealthy", "memory-fault-logged",
                              "chassis-fan-failed", "drive-predicts-failure", "event-log-critical"},
    "drives/nvme-sick.json": {"drive-predicts-failure", "drive-spare-blocks-low", "drive-life-used-up", "drive-too-hot", "drive-lost-data"},
    "drives/smartctl-sata-sick.json": {"drive-predicts-failure", "drive-unreadable-sectors"},
    "board/platform-sick.json": {"memory-module-uncorrected-errors", "memory-module-corrected-errors", "cpus-run-different-microcode",
                                 "drive-gone-from-driver", "raid-degraded", "board-sensor-critical"},
    "board/dmidecode-sick.txt": {"memory-sockets-uneven"},
    "board/chronyc-far-off.txt": {"clock-offset-large"},
}  # fmt: skip


def seen(*names: str) -> list[Observation]:
    return [o for name in names for o in parse_text("input", capture(name))]


def found(diagnosis: Diagnosis, at_least: Severity) -> dict[str, Role]:
    return {f.rule.id: f.role for f in diagnosis.findings if f.severity.rank >= at_least.rank}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_above_info_on_a_healthy_machine(name: str) -> None:
    assert found(diagnose(seen(name), RULES), Severity.WARNING) == {}


def test_nor_on_all_that_is_known_of_it() -> None:
    assert found(diagnose(seen(*HEALTHY), RULES), Severity.WARNING) == {}


@pytest.mark.parametrize(("name", "wanted"), SICK.items())
def test_what_is_wrong_is_found(name: str, wanted: set[str]) -> None:
    assert set(found(diagnose(seen(name), RULES), Severity.WARNING)) >= wanted


def test_causes_stand_before_their_effects() -> None:
    chassis = found(diagnose(seen("bmc/sdr-sick.txt"), RULES), Severity.WARNING)
    assert chassis["psu-without-input"] is Role.ROOT
    assert chassis["power-redundancy-lost"] is Role.SYMPTOM
    assert chassis["chassis-fan-failed"] is Role.ROOT
    assert chassis["fan-redundancy-lost"] is Role.SYMPTOM
    drive = found(diagnose(seen("drives/nvme-sick.json"), RULES), Severity.WARNING)
    assert drive["drive-life-used-up"] is Role.ROOT
    assert drive["drive-spare-blocks-low"] is Role.SYMPTOM


def test_old_entries_of_the_log_are_history() -> None:
    later = 1784037841 * 10**9 + 30 * 86400 * 10**9
    assert found(diagnose(seen("bmc/sel-sick.txt"), RULES, as_of=later), Severity.WARNING) == {}


def test_a_supply_without_input_stands_above_the_gpus_that_brake() -> None:
    text = capture("smi/hopper-590-sick.txt")
    plain = "HW Power Brake Slowdown                    : Not Active"
    assert plain in text
    braked = parse_text("input", text.replace(plain, plain.replace("Not Active", "Active")))
    together = {f.rule.id: f for f in diagnose([*seen("bmc/sdr-sick.txt"), *braked], RULES).findings}
    supply, brake = together["psu-without-input"], together["power-brake-active"]
    assert (supply.role, brake.role) == (Role.ROOT, Role.SYMPTOM)
    assert brake.id in supply.explains
    assert supply.id in brake.explained_by
