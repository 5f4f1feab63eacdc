"""What entries of a management controller's event log mean: sensor types and event words as ipmitool prints them.

The words are those of ipmitool 1.8.19 (lib/ipmi_sel.c, include/ipmitool/ipmi_sel.h: table 42-3 of the IPMI 2.0
specification). Redfish uses the same sensor types in ``SensorType`` of a LogEntry. What stands in no row here is a
routine message: buttons, boots, drives that were put in.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Meaning(NamedTuple):
    """What an entry is about: `kind` of the fact bmc_event, and how bad it is."""

    kind: str
    severity: str  # error, warning, info


# The longest first: "Power Supply" before "Power".
TYPES = tuple(
    sorted(
        (
            "Temperature", "Voltage", "Current", "Fan", "Physical Security", "Platform Security", "Processor", "Power Supply",
            "Power Unit", "Cooling Device", "Other", "Memory", "Drive Slot / Bay", "Drive Slot", "POST Memory Resize",
            "System Firmwares", "System Firmware Error", "System Firmware Progress", "Event Logging Disabled", "Watchdog1",
            "System Event", "Critical Interrupt", "Button", "Module / Board", "Microcontroller", "Add-in Card", "Chassis",
            "Chip Set", "Other FRU", "Cable / Interconnect", "Cable/Interconnect", "Terminator", "System Boot Initiated",
            "Boot Error", "OS Boot", "OS Critical Stop", "Slot / Connector", "Slot/Connector", "System ACPI Power State",
            "Watchdog2", "Platform Alert", "Entity Presence", "Monitor ASIC", "LAN", "Management Subsys Health", "Battery",
            "Session Audit", "Version Change", "FRU State",
            "Power Supply / Converter",  # Redfish
        ),
        key=lambda word: -len(word),
    )
)  # fmt: skip
_ANY = r""
_LOST = r"redundancy lost|redundancy degraded|non-redundant: sufficient|non-redundant: insufficient"
_SUPPLY, _UNIT, _COOLING = r"Power Supply.*", r"Power Unit.*", r"(?:Fan|Cooling Device)"
# sensor type, words of the event (searched, without case), what it is. The first row that fits counts.
_ROWS = tuple(
    (re.compile(f"(?:{type_ or '.*'})\\Z"), re.compile(words, re.IGNORECASE), Meaning(kind, severity))
    for type_, words, kind, severity in (
        (r"(?:Power Supply|Power Unit).*", _LOST, "power_redundancy_lost", "warning"),
        (_ANY, _LOST, "redundancy_lost", "warning"),
        (_SUPPLY, r"\bac lost|ac out-of-range|loss of input|input lost", "psu_input_lost", "warning"),
        (_SUPPLY, r"failure detected|transition to (?:critical|non-recoverable)", "psu_failed", "error"),
        (_SUPPLY, r"predictive failure(?! deasserted)", "psu_failing", "warning"),
        (_SUPPLY, r"config error", "psu_misconfigured", "warning"),
        (_UNIT, r"240va power down|interlock|\bac lost|soft-power control failure|failure detected|predictive failure", "power_fault", "error"),
        (_COOLING, r"(?:lower|upper) (?:critical|non-recoverable) going|transition to (?:critical|non-recoverable)|predictive failure asserted|"
                   r"limit exceeded", "fan_failed", "error"),
        ("Temperature", r"upper (?:critical|non-recoverable) going high|transition to (?:critical|non-recoverable)|limit exceeded", "temperature_critical", "error"),
        ("Temperature", r"upper non-critical going high", "temperature_high", "info"),
        ("(?:Voltage|Current)", r"(?:lower|upper) (?:critical|non-recoverable) going|transition to (?:critical|non-recoverable)|limit exceeded",
         "voltage_critical", "error"),
        ("Memory", r"uncorrectable|\bparity|device disabled|scrub failed|transition to (?:critical|non-recoverable)",
         "memory_uncorrected", "error"),
        ("Memory", r"critical overtemperature", "temperature_critical", "error"),
        ("Memory", r"logging limit", "memory_corrected_limit", "warning"),
        ("Memory", r"correctable", "memory_corrected", "info"),
        ("Event Logging Disabled", r"correctable memory error logging", "memory_corrected_limit", "warning"),
        ("Processor", r"\bierr\b|thermal trip|frb[123]|initialization failure|uncorrectable|machine check|transition to (?:critical|non-recoverable)",
         "processor_error", "error"),
        ("Processor", r"throttled", "processor_throttled", "info"),
        ("Critical Interrupt", r"pci perr|pci serr|bus uncorrectable|bus fatal|bus timeout|bus degraded|channel check|fatal nmi", "bus_error", "error"),
        ("Critical Interrupt", r"bus correctable", "bus_corrected", "info"),
        (r"Slot ?/ ?Connector", r"fault", "slot_fault", "error"),
        (r"Cable ?/ ?Interconnect", r"config|fault", "slot_fault", "error"),
        (r"Watchdog ?[12]", r"hard reset|power down|power cycle|os (?:shut down|power)", "watchdog_reset", "error"),
        (r"Drive Slot.*", r"in failed array", "drive_array_failed", "error"),
        (r"Drive Slot.*", r"drive fault|rebuild aborted|remap aborted", "drive_fault", "error"),
        (r"Drive Slot.*", r"predictive failure|in critical array", "drive_failing", "warning"),
        ("Event Logging Disabled", r"log full|log almost full", "log_full", "info"),
        ("OS Critical Stop", r"critical stop|panic|oem", "os_stopped", "error"),
        ("System Firmware.*", r"no usable system memory|no system memory|bios corruption|unrecoverable|voltage mismatch|speed mismatch", "firmware_error", "error"),
    )
)  # fmt: skip
_BACK = re.compile(r"fully redundant|redundancy regained|\btransition to ok\b", re.IGNORECASE)


def split(sensor: str) -> tuple[str, str]:
    """Type and name of a sensor: "Power Supply PS2 Status" is ("Power Supply", "PS2 Status"). An unknown type is empty."""
    for type_ in TYPES:
        if sensor.lower().startswith(type_.lower()):
            rest = sensor[len(type_) :]
            if not rest or rest[0] in " #":
                return type_, rest.strip() or type_
    return "", sensor


def meaning(type_: str, event: str) -> Meaning | None:
    """What an event of a sensor of this type is; None for a routine message."""
    for types, words, found in _ROWS:
        if types.match(type_) and words.search(event):
            return found
    return None


def restores(event: str) -> bool:
    """Whether the words say that all is well again with the sensor."""
    return _BACK.search(event) is not None
