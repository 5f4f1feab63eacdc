"""Diagnoses of the hardware around the GPUs: nothing above info on a healthy machine, the right causes on a sick one."""

from __future__ import annotations

from assistant.diagnosis import Diagnosis, State, diagnose
from assistant.exits import Exit
from assistant.sources import parse_text
from knowledge.observation import Observation, Scope, Source, Subject, node
from rules.engine import Role
from rules.loader import load
from rules.model import Severity, Usable
from tests.cases import each
from tests.probes.parse.smi_case import capture

HEALTHY = (
    "bmc/sel-healthy.txt", "bmc/sdr-healthy.txt", "bmc/sensor-healthy.txt", "bmc/redfish-healthy.json", "bmc/redfish-thermal.json",
    "drives/nvme-healthy.json", "drives/nvme-text.txt", "drives/smartctl-sata-healthy.json", "drives/smartctl-nvme-healthy.json",
    "board/platform-healthy.json", "board/dmidecode-healthy.txt", "board/chronyc-healthy.txt", "board/chronyc-local.txt",
    "board/timesync.txt", "board/pmc.txt",
)  # fmt: skip
SICK = {
    "bmc/sel-sick.txt": {"memory-fault-logged", "bus-fault-logged", "power-fault-logged", "watchdog-reset-logged"},
    "bmc/sdr-sick.txt": {"psu-without-input", "psu-failed", "power-redundancy-lost", "chassis-fan-failed", "fan-redundancy-lost",
                         "cpu-at-temperature-limit", "inlet-air-hot"},
    "bmc/sensor-sick.txt": {"cpu-at-temperature-limit"},
    "bmc/redfish-sick.json": {"psu-without-input", "part-reported-critical", "machine-reported-unhealthy", "memory-fault-logged",
                              "chassis-fan-failed", "drive-predicts-failure", "event-log-critical"},
    "drives/nvme-sick.json": {"drive-predicts-failure", "drive-spare-blocks-low", "drive-life-used-up", "drive-too-hot", "drive-lost-data"},
    "drives/smartctl-sata-sick.json": {"drive-predicts-failure", "drive-unreadable-sectors"},
    "board/platform-sick.json": {"memory-module-uncorrected-errors", "memory-module-corrected-errors", "cpus-run-different-microcode",
                                 "drive-gone-from-driver", "raid-degraded", "cpu-at-temperature-limit"},
    "board/dmidecode-sick.txt": {"memory-sockets-uneven"},
    "board/chronyc-far-off.txt": {"clock-offset-large"},
}  # fmt: skip


def seen(*names: str) -> list[Observation]:
    return [o for name in names for o in parse_text("input", capture(name))]


def found(diagnosis: Diagnosis, at_least: Severity) -> dict[str, Role]:
    return {f.rule.id: f.role for f in diagnosis.findings if f.severity.rank >= at_least.rank}


@each("name", HEALTHY)
def test_nothing_above_info_on_a_healthy_machine(name: str) -> None:
    assert found(diagnose(seen(name), load()), Severity.WARNING) == {}


def test_nor_on_all_that_is_known_of_it() -> None:
    assert found(diagnose(seen(*HEALTHY), load()), Severity.WARNING) == {}


@each(("name", "wanted"), SICK.items())
def test_what_is_wrong_is_found(name: str, wanted: set[str]) -> None:
    assert set(found(diagnose(seen(name), load()), Severity.WARNING)) >= wanted


def test_causes_stand_before_their_effects() -> None:
    chassis = found(diagnose(seen("bmc/sdr-sick.txt"), load()), Severity.WARNING)
    assert chassis["psu-without-input"] is Role.ROOT
    assert chassis["power-redundancy-lost"] is Role.SYMPTOM
    assert chassis["chassis-fan-failed"] is Role.ROOT
    assert chassis["fan-redundancy-lost"] is Role.SYMPTOM
    drive = found(diagnose(seen("drives/nvme-sick.json"), load()), Severity.WARNING)
    assert drive["drive-life-used-up"] is Role.ROOT
    assert drive["drive-spare-blocks-low"] is Role.SYMPTOM


def test_old_entries_of_the_log_are_history() -> None:
    later = 1784037841 * 10**9 + 30 * 86400 * 10**9
    assert found(diagnose(seen("bmc/sel-sick.txt"), load(), as_of=later), Severity.WARNING) == {}


def test_a_supply_without_input_stands_above_the_gpus_that_brake() -> None:
    text = capture("smi/hopper-590-sick.txt")
    plain = "HW Power Brake Slowdown                    : Not Active"
    assert plain in text
    braked = parse_text("input", text.replace(plain, plain.replace("Not Active", "Active")))
    together = {f.rule.id: f for f in diagnose([*seen("bmc/sdr-sick.txt"), *braked], load()).findings}
    supply, brake = together["psu-without-input"], together["power-brake-active"]
    assert (supply.role, brake.role) == (Role.ROOT, Role.SYMPTOM)
    assert brake.id in supply.explains
    assert supply.id in brake.explained_by


def diagnosed(text: str) -> Diagnosis:
    return diagnose(parse_text("input", text), load())


def test_an_entry_without_a_date_is_no_fault_of_today_and_is_not_kept_back() -> None:
    undated = capture("bmc/sel-simulator.txt")
    for dated in (False, True):  # a date elsewhere in the log tells nothing of these
        text = undated + (
            " 14 | 03/09/26 | 17:59:40 UTC | System Event #0x12 | Timestamp Clock Sync | Asserted\n" if dated else ""
        )
        d = diagnosed(text)
        assert found(d, Severity.WARNING) == {}
        assert {f.rule.id for f in d.findings} == {"event-log-entry-undated"}
        assert "date not known" in d.findings[0].title.en
        assert "日期未知" in d.findings[0].title.zh
        assert (d.verdict.state, d.verdict.usable, d.exit) == (State.UNKNOWN, Usable.UNKNOWN, Exit.UNDECIDED)
        assert "date is not known" in d.verdict.text.en
        assert "日期未知" in d.verdict.text.zh


def test_faults_without_a_date_are_no_reason_where_the_node_itself_was_asked_or_they_are_old() -> None:
    log = parse_text("input", capture("bmc/sel-simulator.txt"))
    asked = [Observation("node.gpu.count", node(), 8, source=Source("t", "t"))]
    assert diagnose([*log, *asked], load()).verdict.state is State.OK
    healthy = parse_text("input", capture("bmc/sel-healthy.txt"))  # one fault without a date, before 2025-11-02
    assert diagnose(healthy, load()).verdict.state is State.OK


def test_between_two_dated_entries_of_today_it_is_of_today() -> None:
    routine, fault = "Button #0x53 | Power Button pressed", "Memory DIMM A3 | Uncorrectable ECC"
    begins = f"  1 | 03/09/26 | 17:51:40 UTC | {routine} | Asserted\n  2 |  Pre-Init  |0000000041| {fault} | Asserted\n"
    ends = f"  3 | 03/09/26 | 17:59:40 UTC | {routine} | Asserted\n"
    noon = 1773057600 * 10**9  # 2026-03-09
    for text, days, known in (
        (begins + ends, 1, True),
        (begins + ends, 30, False),
        (begins, 1, True),
        (begins, 30, False),
    ):
        d = diagnose(parse_text("input", text), load(), as_of=noon + days * 86400 * 10**9)
        assert ("memory-fault-logged" in found(d, Severity.WARNING)) is known
    text = begins.replace("  1 | 03/09/26", "  1 | 03/09/25") + ends
    d = diagnose(parse_text("input", text), load(), as_of=noon + 86400 * 10**9)
    assert found(d, Severity.WARNING) == {}, "within a year, some day"


SLOT = "   1 | 03/09/26 | 17:57:40 UTC | Drive Slot / Bay Disk 3 | {} | Asserted\n   2 | 03/09/26 | 17:59:40 UTC | Button #0x53 | Power Button pressed | Asserted\n"


@each(
    ("event", "usable"),
    [
        ("Predictive Failure", Usable.UNKNOWN), ("In Critical Array", Usable.UNKNOWN), ("Drive Fault", Usable.UNKNOWN),
        ("In Failed Array", Usable.NOT_YET), ("Hot Spare", Usable.UNKNOWN),
    ],
)  # fmt: skip
def test_one_drive_alone_does_not_take_a_node_away(event: str, usable: Usable) -> None:
    """What leaves the node usable says no more than that it does: of the node itself nothing was read."""
    assert diagnosed(SLOT.format(event)).verdict.usable is usable


def test_a_drive_that_predicts_its_failure_still_works_and_gets_nothing_new() -> None:
    d = diagnose(seen("drives/smartctl-sata-sick.json"), load())
    (predicted,) = (f for f in d.findings if f.rule.id == "drive-predicts-failure")
    assert predicted.advice.usable is Usable.IMPAIRED
    for text in (predicted.advice.text.en, predicted.rule.why.en):
        assert "when convenient" in text or "mdstat" in text


BOARD = "{}P12V             | 20h | ok  |  7.1 | 12.02 Volts\nFan1A            | 30h | ok  | 29.1 | 16800 RPM\n"


@each(
    ("row", "rule", "severity"),
    [
        ("VBAT             | 0Eh | lcr |  7.1 | 2.36 Volts\n", "board-battery-low", Severity.WARNING),
        ("CMOS Battery     | 10h | ok  |  7.1 | Failed\n", "board-battery-low", Severity.WARNING),
        ("CPU1 Temp        | 0Eh | ucr |  3.1 | 101 degrees C\n", "cpu-at-temperature-limit", Severity.WARNING),
        ("CPU1 Temp        | 0Eh | unr |  3.1 | 109 degrees C\n", "board-sensor-critical", Severity.ERROR),
        ("DIMM Temp        | 0Eh | ucr | 32.1 | 95 degrees C\n", "board-sensor-critical", Severity.ERROR),
        ("P5V              | 0Eh | lcr |  7.1 | 4.11 Volts\n", "voltage-beyond-limit", Severity.ERROR),
    ],
)
def test_a_sensor_is_judged_by_what_it_sits_on(row: str, rule: str, severity: Severity) -> None:
    d = diagnosed(BOARD.format(row))
    assert [(f.rule.id, f.severity) for f in d.findings] == [(rule, severity)]


def test_what_the_controller_marks_critical_is_told_supplies_before_fans() -> None:
    d = diagnosed(
        "FAN2_F           | 0 RPM             | cr\n"
        "PSU1 Input       | 1440 Watts        | ok\n"
        "PSU2 Input       | 0 Watts           | cr\n"
        "PSU2 Status      | 0x08              | nr\n"
        "CPU1 Status      | 0x0080            | cr\n"
        "PSU3 Input       | no reading        | ns\n"
        "P5V              | 4.11 Volts        | lnr\n"
    )
    assert [(f.rule.id, f.subject.id) for f in d.findings] == [
        ("psu-sensor-critical", "PSU2 Input"), ("psu-sensor-critical", "PSU2 Status"), ("voltage-beyond-limit", "P5V"),
        ("chassis-fan-failed", "FAN2_F"), ("sensor-marked-critical", "CPU1 Status"),
    ]  # fmt: skip


def test_a_busy_disk_and_slow_writes_are_not_said_to_cause_each_other() -> None:
    here, data = node("n1"), Subject(Scope.OBJECT, "/data", node("n1"))
    told = [
        ("fs.write.wait", 800.0, data), ("fs.device.busy", 99.0, data), ("node.disk.busiest.busy", 100.0, here),
        ("node.disk.busiest.await", 310.0, here), ("node.pressure.io.some.avg60", 55.0, here),
    ]  # fmt: skip
    d = diagnose([Observation(fact, on, value, source=Source("t", "t")) for fact, value, on in told], load())
    by_rule = {f.rule.id: f for f in d.findings}
    writes, disk = by_rule["disk-writes-slow"], by_rule["disk-saturated"]
    assert writes.id not in disk.explained_by
    assert disk.id not in writes.explained_by
