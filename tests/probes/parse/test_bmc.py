"""What management controllers say: event logs, sensors, Redfish. `sel-simulator.txt` was printed by ipmitool itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import ANY_TIME, Clock, Observation, Status
from probes.base import DocumentFormat, best
from probes.parse import ipmi_chassis, ipmi_sel, ipmi_sensors, redfish
from probes.parse._ipmi_words import TYPES, meaning, split
from probes.parse._sensor_parts import part_of
from probes.registry import document_formats
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, capture, events, one, parse, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

SEL, SENSORS, REDFISH = ipmi_sel.FORMAT, ipmi_sensors.FORMAT, redfish.FORMAT
FILES = {
    SEL: ("sel-simulator.txt", "sel-healthy.txt", "sel-sick.txt"),
    SENSORS: ("sdr-healthy.txt", "sdr-sick.txt", "sensor-sick.txt", "sensor-healthy.txt", "sdr-list.txt"),
    REDFISH: ("redfish-healthy.json", "redfish-sick.json", "redfish-thermal.json"),
}


@each(("form", "name"), [(form, name) for form, names in FILES.items() for name in names])
def test_each_capture_is_recognised_as_what_it_is(form: DocumentFormat, name: str) -> None:
    assert best(document_formats(), capture(f"bmc/{name}")[:65536]) is form
    assert parse(form, f"bmc/{name}")


@pytest.mark.parametrize("form", FILES)
def test_other_texts_are_not_taken(form: DocumentFormat) -> None:
    for text in (
        "",
        "a | b | c\n",
        "{}",
        '{"@odata": 1}',
        "CPU | GPU | NIC\nx | y | ok\n",
        capture("network/ip-link.txt"),
    ):
        assert form.sniff(text) == 0
        assert form.parse(text, CONTEXT) == []


def told(observations: list[Observation]) -> list[tuple[object, ...]]:
    return [(e.get("kind"), e.get("sensor"), e.get("state")) for e in events(observations, "bmc_event")]


def test_the_log_that_the_tool_printed() -> None:
    got = parse(SEL, "bmc/sel-simulator.txt")
    assert told(got) == [
        ("psu_failed", "Power Supply #0x62", "asserted"), ("psu_input_lost", "Power Supply #0x62", "cleared"), ("memory_uncorrected", "Memory #0x02", "asserted"),
        ("memory_corrected_limit", "Memory #0x02", "asserted"), ("memory_corrected", "Memory #0x02", "asserted"), ("bus_error", "Critical Interrupt #0x05", "asserted"),
        ("bus_error", "Critical Interrupt #0x05", "asserted"), ("fan_failed", "Fan #0x30", "asserted"), ("temperature_critical", "Temperature #0x04", "asserted"),
        ("power_redundancy_lost", "Power Unit #0x77", "cleared"), ("watchdog_reset", "Watchdog2 #0x08", "asserted"), ("log_full", "Event Logging Disabled #0x09", "asserted"),
        ("processor_error", "Processor #0x50", "asserted"), ("drive_fault", "Drive Slot / Bay #0x51", "asserted"), ("slot_fault", "Slot / Connector #0x52", "asserted"),
    ]  # fmt: skip
    assert (value(got, "node.bmc.log.entries"), value(got, "node.bmc.log.used")) == (19, 1.0)
    found = all_of(got, "bmc_event")
    found = [o for o in found if o.status is Status.OK]
    assert {(o.at, o.window) for o in found} == {(None, ANY_TIME)}, "before the controller knew the time"
    assert {e.get("date") for e in events(got, "bmc_event")} == {"not known"}


def test_what_is_in_order_again_is_cleared_and_what_has_no_date_lies_between_its_neighbours() -> None:
    got = parse(SEL, "bmc/sel-healthy.txt")
    found = [(e.get("kind"), e.get("state")) for e in events(got, "bmc_event")]
    assert found == [
        ("psu_input_lost", "cleared"), ("psu_input_lost", "cleared"), ("power_redundancy_lost", "cleared"), ("temperature_high", "cleared"),
    ]  # fmt: skip
    first = all_of(got, "bmc_event")[0]
    assert (first.at, first.clock) == (None, Clock.REALTIME)
    assert first.window == (0, 1762071124 * 10**9), "not later than the next entry, which has a date"
    dates = [e.get("date") for e in events(got, "bmc_event")]
    assert dates == ["not known", "known", "known", "known"]


def test_dates_that_contradict_each_other_bound_nothing() -> None:
    line = "{} | {} | Memory DIMM A3 | Uncorrectable ECC | Asserted\n"
    undated = line.format(2, " Pre-Init  |0000000041")
    before, after = (f"{day} | 08:00:00 UTC" for day in ("03/02/26", "03/01/26"))
    got = SEL.parse(line.format(1, before) + undated + line.format(3, after), CONTEXT)
    assert [o.window for o in all_of(got, "bmc_event") if o.status is Status.OK] == [None, ANY_TIME, None]
    day = 1772323200 + 8 * 3600  # 2026-03-01 08:00 UTC
    got = SEL.parse(line.format(1, after) + undated + line.format(3, before), CONTEXT)
    windows = [o.window for o in all_of(got, "bmc_event") if o.status is Status.OK]
    assert windows == [None, (day * 10**9, (day + 86400) * 10**9), None]


@each(
    ("created", "at", "window"),
    [
        ("2026-03-01T08:00:00Z", 1772352000, None),
        ("2026-03-01T16:00:00+08:00", 1772352000, None),
        ("2026-03-01T08:00:00", None, (1772352000 - 14 * 3600, 1772352000 + 12 * 3600)),
        ("1970-01-01T00:00:09Z", None, ANY_TIME),
        ("yesterday", None, ANY_TIME),
        (None, None, ANY_TIME),
    ],
)
def test_an_entry_of_redfish_without_a_date_says_so(
    created: str | None, at: int | None, window: tuple[int, int] | None
) -> None:
    entry = {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Severity": "Critical", "Message": "Uncorrectable ECC",
             "SensorType": "Memory", "Created": created}  # fmt: skip
    (found,) = all_of(REDFISH.parse(json.dumps(entry), CONTEXT), "bmc_event")
    scaled = window if window in (None, ANY_TIME) else tuple(t * 10**9 for t in window)
    assert (found.at, found.window) == (None if at is None else at * 10**9, scaled)
    (event,) = events([found], "bmc_event")
    assert event.get("date") == ("not known" if at is None else "known")


def test_a_bar_within_an_event_and_a_clock_of_twelve_hours() -> None:
    memory, bus, supply, redundancy, fan, _ = events(parse(SEL, "bmc/sel-sick.txt"), "bmc_event")
    assert memory.get("event") == "Uncorrectable ECC (UnCorrectable ECC | DIMMD7)"
    assert (bus.get("kind"), supply.get("state"), redundancy.get("kind")) == (
        "bus_error",
        "asserted",
        "power_redundancy_lost",
    )
    assert fan.get("reading") == "Reading 0 < Threshold 600 RPM"
    times = [o.at for o in all_of(parse(SEL, "bmc/sel-sick.txt"), "bmc_event") if o.at is not None]
    assert times[2] == 1784037460 * 10**9  # 13:57:40, printed as 01:57:40 PM


def test_an_empty_log_is_an_answer_and_a_closed_device_is_none() -> None:
    got = SEL.parse("SEL has no entries\n", CONTEXT)
    assert (value(got, "node.bmc.log.entries"), status(got, "bmc_event")) == (0, Status.NONE_SEEN)
    summary = "SEL Information\nVersion          : 1.5\nEntries          : 12\nPercent Used     : 97%\n"
    assert [o.fact for o in SEL.parse(summary, CONTEXT)] == ["node.bmc.log.used", "node.bmc.log.entries"]
    closed = "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"
    assert status(SEL.parse(closed, CONTEXT), "bmc_event") is Status.FAILED


@each("name", TYPES)
def test_a_sensor_name_is_split_at_its_type(name: str) -> None:
    assert split(f"{name} X1") == (name, "X1")
    assert split(name) == (name, name)
    assert meaning(name, "Presence detected") is None


def test_words_that_look_alike() -> None:
    assert meaning("Memory", "Uncorrectable ECC") != meaning("Memory", "Correctable ECC")
    assert meaning("Temperature", "Lower Non-critical going low") is None
    assert meaning("Power Supply", "Predictive Failure Deasserted") is None
    assert split("Powerful X") == ("", "Powerful X")


@each(
    ("event", "kind", "severity"),
    [
        ("Drive Fault", "drive_fault", "error"), ("Rebuild Aborted", "drive_fault", "error"),
        ("Predictive Failure", "drive_failing", "warning"), ("In Critical Array", "drive_failing", "warning"),
        ("In Failed Array", "drive_array_failed", "error"),
    ],
)  # fmt: skip
def test_a_drive_that_predicts_its_failure_has_not_failed(event: str, kind: str, severity: str) -> None:
    assert meaning("Drive Slot / Bay", event) == (kind, severity)


def test_a_spare_is_routine() -> None:
    assert [meaning("Drive Slot", word) for word in ("Hot Spare", "Drive Present", "Parity Check In Progress")] == [
        None
    ] * 3


@each(
    ("name", "kind", "entity", "context", "part"),
    [
        ("CPU1 Temp", "temperature", 3, "", "processor"), ("Temp", "temperature", 3, "", "processor"),
        ("CPU0_TEMP", "temperature", 7, "", "processor"), ("Temp_CPU1", "temperature", 0, "", "processor"),
        ("k10temp 0000:00:18.3 Tctl", "temperature", 0, "", "processor"), ("Temp 1", "temperature", 0, "CPU", "processor"),
        ("CPU1 VR Temp", "temperature", 3, "", "other"), ("P1_VCCIN", "temperature", 3, "", "other"),
        ("CPU1 DIMMA1", "temperature", 0, "", "other"), ("CPU1 Temp", "temperature", 0, "VoltageRegulator", "other"),
        ("GPU1 Temp", "temperature", 0, "", "other"), ("Inlet Temp", "temperature", 7, "", "other"),
        ("CPU1 VCORE", "voltage", 3, "", "other"), ("P12V", "voltage", 7, "", "other"),
        ("VBAT", "voltage", 7, "", "battery"), ("P_VBAT", "voltage", 0, "", "battery"), ("MB/V_VBAT", "voltage", 0, "", "battery"),
        ("CMOS Battery", "other", 7, "", "battery"), ("Voltage 9", "voltage", 40, "", "battery"),
        ("BBU Battery Temp", "temperature", 40, "", "other"), ("Combat", "voltage", 0, "", "other"),
        ("PSU2 Input", "power", 0, "", "power_supply"), ("VIN_PSU0", "voltage", 0, "", "power_supply"), ("Status", "other", 10, "", "power_supply"),
        ("Inlet", "temperature", 0, "PowerSupplyBay", "power_supply"), ("Pwr Consumption", "power", 0, "", "other"),
    ],
)  # fmt: skip
def test_the_part_that_a_sensor_sits_on(name: str, kind: str, entity: int, context: str, part: str) -> None:
    assert part_of(name, kind, entity, context) == part


def test_a_battery_in_words() -> None:
    row = "CMOS Battery     | 10h | ok  |  7.1 | {}\n"
    rest = "P12V             | 20h | ok  |  7.1 | 12.02 Volts\nFan1A            | 30h | ok  | 29.1 | 16800 RPM\n"
    for word, state in (("Low", "non_critical"), ("Failed", "critical"), ("Presence Detected", "ok")):
        got = SENSORS.parse(row.format(word) + rest, CONTEXT)
        assert (value(got, "sensor.part", "CMOS Battery"), value(got, "sensor.state", "CMOS Battery")) == (
            "battery",
            state,
        )
    got = SENSORS.parse(row.format("") + rest, CONTEXT)
    assert "CMOS Battery" not in {o.subject.id for o in got}, "no word is no state"


def test_sensors_of_a_healthy_chassis() -> None:
    got = parse(SENSORS, "bmc/sdr-healthy.txt")
    assert value(got, "node.inlet.temperature") == 23.0, "not the inlet of a GPU board"
    assert value(got, "node.power.draw") == 2940.0
    assert (value(got, "node.power.redundancy"), value(got, "node.fan.redundancy")) == ("full", "full")
    assert value(got, "sensor.fan.speed", "Fan1A") == 9840.0
    assert [(o.subject.id, o.value) for o in all_of(got, "psu.state")] == [
        ("Status (10.1)", "ok"), ("Status (10.2)", "ok"), ("Power Supply 3", "ok"),
    ]  # fmt: skip
    assert status(got, "sensor.state", "DIMM Temp") is Status.UNSUPPORTED
    assert {o.value for o in all_of(got, "sensor.state") if o.status is Status.OK} == {"ok"}


def test_sensors_of_a_sick_chassis() -> None:
    got = parse(SENSORS, "bmc/sdr-sick.txt")
    states = {o.subject.id: o.value for o in all_of(got, "sensor.state") if o.status is Status.OK}
    assert (states["Inlet Temp"], states["CPU1 Temp"], states["FAN3"]) == ("non_critical", "critical", "critical")
    assert {o.subject.id: o.value for o in all_of(got, "psu.state")} == {
        "PSU1 Status": "ok", "PSU2 Status": "input_lost", "PSU3 Status": "failed",
    }  # fmt: skip
    assert (value(got, "node.power.redundancy"), value(got, "node.fan.redundancy")) == ("lost", "lost")


def test_sensor_tables_with_thresholds() -> None:
    got = parse(SENSORS, "bmc/sensor-sick.txt")
    assert value(got, "sensor.temperature.margin", "CPU1 Temp") == -2.0
    assert value(got, "sensor.state", "CPU1 Temp") == "critical"
    assert value(got, "psu.state") == "ok"
    assert status(parse(SENSORS, "bmc/sdr-list.txt"), "sensor.state", "DIMM Temp") is Status.UNSUPPORTED


@each(
    ("sensor", "bits", "fact", "told"),
    [
        ("PS2 Status", "0x0b80", "psu.state", "failed"), ("PS2 Status", "0x0980", "psu.state", "input_lost"),
        ("PSU1", "0x8180", "psu.state", "ok"), ("PS2 Status", "0x0080", "psu.state", None),
        ("PS Redundancy", "0x0280", "node.power.redundancy", "lost"), ("Fan Redundancy", "0x0180", "node.fan.redundancy", "full"),
        ("CPU2 Status", "0x8280", "sensor.state", "critical"), ("CPU2 Status", "0x8080", "sensor.state", None),
        ("OEM thing", "0x0280", "sensor.state", None),
    ],
)  # fmt: skip
def test_bits_of_a_discrete_sensor(sensor: str, bits: str, fact: str, told: str | None) -> None:
    row = f"{sensor:<16} | 0x1        | discrete   | {bits}| na        | na        | na        | na        | na        | na        "
    found = [o.value for o in SENSORS.parse(row, CONTEXT) if o.fact == fact and o.status is Status.OK]
    assert found == ([told] if told else [])


def test_redfish_of_a_healthy_and_a_sick_machine() -> None:
    well, ill = parse(REDFISH, "bmc/redfish-healthy.json"), parse(REDFISH, "bmc/redfish-sick.json")
    assert (value(well, "node.bmc.health"), value(ill, "node.bmc.health")) == ("ok", "critical")
    assert value(well, "node.power.draw") == 2875.0
    assert value(well, "node.inlet.temperature") == 24.0
    assert value(well, "node.bmc.firmware") == "2.14.0"
    assert {o.subject.id: o.value for o in all_of(well, "psu.state")} == {
        "PSU1": "ok", "PSU2": "ok", "PSU3": "absent", "PDB PSU 0": "ok",
    }  # fmt: skip
    assert {o.subject.id: o.value for o in all_of(ill, "psu.state")} == {
        "PSU1": "ok", "PSU2": "input_lost", "PSU3": "absent", "PDB PSU 0": "input_lost",
    }  # fmt: skip
    assert [o.subject.id for o in all_of(well, "part.health") if o.subject.id.startswith("DIMM")] == ["DIMM A1"]
    assert value(ill, "part.health", "DIMM A3") == "critical"
    assert value(ill, "sensor.temperature.margin", "CPU1 Temp") == -4.0
    assert value(well, "sensor.fan.duty", "FAN_5_PWM") == 42.0
    assert (value(ill, "node.power.redundancy"), value(ill, "node.fan.redundancy")) == ("degraded", "lost")
    assert (value(ill, "drive.healthy"), value(ill, "drive.wear")) == (False, 97.0)
    assert told(well) == [("psu_input_lost", "Power Supply / Converter", "cleared")]
    assert told(ill) == [("memory_uncorrected", "Memory", "logged"), ("other", "Leak.1.0.LeakDetected", "logged")]


def test_a_cut_document_says_so() -> None:
    text = capture("bmc/redfish-healthy.json")
    assert status(REDFISH.parse(text[: len(text) // 2], CONTEXT), "node.bmc.health") is Status.FAILED


@given(
    st.sampled_from([name for names in FILES.values() for name in names]), st.integers(0, 20000), st.binary(max_size=8)
)
def test_no_damage_makes_a_parser_raise(name: str, at: int, junk: bytes) -> None:
    data = capture(f"bmc/{name}").encode()
    text = (data[: at % len(data)] + junk + data[at % len(data) + len(junk) :]).decode("utf-8", "replace")
    for form in FILES:
        assert_in_vocabulary(form.parse(text, CONTEXT), form)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["@odata.type", "Status", "Health", "State", "Temperatures", "Fans", "PowerSupplies", "Members", "Name", "Reading",
         "ReadingCelsius", "Severity", "Created", "Thresholds", "UpperCritical", "PowerControl"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(
    json_values,
    st.sampled_from(["Thermal", "Power", "Sensor", "Fan", "PowerSupply", "LogEntry", "Drive", "Manager", "Memory"]),
)
def test_no_resource_makes_the_parser_raise(item: object, kind: str) -> None:
    fields = item if isinstance(item, dict) else {"Members": item}
    text = json.dumps({"@odata.id": "/redfish/v1/x", **fields, "@odata.type": f"#{kind}.v1_0_0.{kind}"})
    assert_in_vocabulary(REDFISH.parse(text, CONTEXT), REDFISH)


def test_one_value_for_the_node_from_several_groups() -> None:
    text = "Fan1 Redundancy | 75h | ok  |  7.1 | Fully Redundant\nFan2 Redundancy | 76h | ok  |  7.1 | Redundancy Lost\nF1 | 30h | ok  | 29.1 | 90 RPM\n"
    assert value(SENSORS.parse(text, CONTEXT), "node.fan.redundancy") == "lost"
    assert one(SENSORS.parse(text, CONTEXT), "sensor.fan.speed").value == 90.0


def test_a_supply_in_standby_or_without_a_cable_is_no_fault_of_the_board() -> None:
    text = (
        "01-Inlet Ambient | 01h | ok  | 55.1 | 22 degrees C\n"
        "32-P/S 1 Inlet   | 20h | ok  | 10.1 | 41 degrees C\n"
        "PSU2 VIN         | 30h | cr  | 10.2 | 0 Volts\n"
        "PSU2 Fan         | 31h | nr  | 10.2 | 0 RPM\n"
        "PSU1 VIN         | 32h | cr  | 10.1 | 290 Volts\n"
        "PS2 Status       | 34h | ok  | 10.2 | Presence detected, Power Supply Inactive\n"
    )
    got = SENSORS.parse(text, CONTEXT)
    assert (value(got, "node.inlet.temperature"), value(got, "psu.state")) == (22.0, "ok")
    states = {o.subject.id: o.value or o.status for o in all_of(got, "sensor.state")}
    assert states["PSU1 VIN"] == "critical"
    assert states["PSU2 VIN"] == states["PSU2 Fan"] == Status.UNSUPPORTED
    assert meaning("Power Supply", "Power Supply Inactive") is None
    assert meaning("Memory", "Critical Overtemperature") == ("temperature_critical", "error")


def test_a_supply_that_reads_zero_and_has_no_word_for_it_is_critical() -> None:
    row = "PSU 2 Power | 32h | lcr | 10.2 | 0 Watts\nPSU 2 Status | 33h | ok | 10.2 | {}\nTemp | 04h | ok | 7.1 | 22 degrees C\n"
    lost = SENSORS.parse(row.format("Presence detected, Power Supply AC lost"), CONTEXT)
    assert status(lost, "sensor.state", "PSU 2 Power") is Status.UNSUPPORTED
    assert value(SENSORS.parse(row.format("Presence detected"), CONTEXT), "sensor.state", "PSU 2 Power") == "critical"


def test_a_limit_in_fahrenheit_is_converted_like_its_reading() -> None:
    na = " na | na | na |"
    text = f"CPU1 Temp | 113.000 | degrees F | ok |{na} 185.000 | 194.000 | 203.000\n"
    assert value(SENSORS.parse(text, CONTEXT), "sensor.temperature.margin") == 45.0


def test_half_a_log_does_not_say_that_nothing_else_is_in_it() -> None:
    entry = "   1 | 06/14/2023 | 10:01:17 | Button #0x01 | Power Button pressed | Asserted\n"
    assert status(SEL.parse(entry, CONTEXT), "bmc_event") is Status.NONE_SEEN
    assert not all_of(SEL.parse(f"SEL Information\nEntries          : 62\n{entry}", CONTEXT), "bmc_event")
    log = {"@odata.type": "#LogEntry.v1_4_0.LogEntry", "Name": "Log", "Severity": "OK", "Message": "boot"}
    whole = {"@odata.type": "#LogEntryCollection.LogEntryCollection", "Members@odata.count": 1, "Members": [log]}
    assert status(REDFISH.parse(json.dumps(whole), CONTEXT), "bmc_event") is Status.NONE_SEEN
    for part in (log, whole | {"Members@odata.count": 900}, whole | {"Members@odata.nextLink": "/redfish/v1/x"}):
        assert not all_of(REDFISH.parse(json.dumps(part), CONTEXT), "bmc_event")


def test_an_unfed_supply_in_redfish_and_another_service_of_odata() -> None:
    volts = {"Name": "PSU2 VIN", "ReadingVolts": 0, "PhysicalContext": "PowerSupply", "Status": {"State": "Enabled", "Health": "Critical"}}  # fmt: skip
    power = {"@odata.type": "#Power.v1_5_0.Power", "Voltages": [volts]}
    assert status(REDFISH.parse(json.dumps(power), CONTEXT), "sensor.state") is Status.UNSUPPORTED
    assert REDFISH.sniff(json.dumps(power)) == 90
    assert REDFISH.sniff('{"@odata.type": "#microsoft.graph.user", "value": []}') == 0


RECORD = """SEL Record ID          : {number}
 Record Type           : 02
 Timestamp             : {time}
 Sensor Type           : {type}
 Sensor Number         : 34
 Event Type            : Sensor-specific Discrete
 Event Direction       : {way} Event
 Event Data            : 05ff00
 Description           : {said}
"""


def record(
    number: str, said: str, type: str = "Critical Interrupt", way: str = "Assertion", time: str = "11/26/2026 08:00:00"
) -> str:
    return RECORD.format(number=number, said=said, type=type, way=way, time=time)


@each(
    ("text", "expected", "others"),
    [
        (record("0012", "Bus Uncorrectable Error"), [("Bus Uncorrectable Error", "asserted")], False),
        (record("0012", "Bus Uncorrectable Error", way="Deassertion"), [], False),
        (record("0012", "Log area reset/cleared", "Event Logging Disabled"), [], False),
        (record("0001", "Log area reset/cleared", "Event Logging Disabled") + record("0002", "Power Supply AC lost", "Power Supply", time="11/26/26 08:00:00 UTC"),
         [("Power Supply AC lost", "asserted")], True),
        (record("0012", "Bus Uncorrectable Error").rpartition(" Description")[0], [], False),
    ],
)  # fmt: skip
def test_records_are_read_as_lines_are_and_one_says_nothing_of_the_others(
    text: str, expected: list[tuple[str, str]], others: bool
) -> None:
    assert ipmi_sel.FORMAT.sniff(text) > 0
    got = ipmi_sel.FORMAT.parse(text, CONTEXT)
    assert [(e.fields["event"], e.fields["state"]) for e in events(got, "bmc_event")] == expected
    assert all(o.at is not None for o in got if o.status is Status.OK and o.fact == "bmc_event")
    assert any(o.status is Status.NONE_SEEN for o in got) is others
    assert bool(all_of(got, "node.bmc.log.entries")) is others


CHASSIS = "System Power         : off\nPower Overload       : true\nMain Power Fault     : true\nPower Restore Policy : always-off\nDrive Fault          : false\n"


def test_power_and_faults_of_the_chassis() -> None:
    def told(text: str) -> dict[str, object]:
        found = ipmi_chassis.FORMAT.parse(text, CONTEXT)
        assert_in_vocabulary(found, ipmi_chassis.FORMAT)
        return {o.fact: o.value for o in found}

    assert best(document_formats(), CHASSIS) is ipmi_chassis.FORMAT
    assert told(CHASSIS) == {"node.powered": False, "node.chassis.faults": ("main power", "power overload")}
    assert told(CHASSIS.replace("true", "false").replace("off\n", "on\n", 1)) == {
        "node.powered": True,
        "node.chassis.faults": (),
    }
    assert told("$ ipmitool power status\nChassis Power is off\n") == {"node.powered": False}
    assert not ipmi_chassis.FORMAT.sniff("Drive Fault          : true\n")
