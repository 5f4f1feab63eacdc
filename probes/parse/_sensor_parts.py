"""Which part of the server a sensor sits on, as far as it decides how bad a reading is: a processor, a battery, a power supply,
or another.

In ``ipmitool sdr elist`` the entity tells (IPMI 2.0 table 43-13: 3 is a processor, 10 a power supply, 40 a battery); boards put other sensors
under 3 as well, so the name must not speak against it. Elsewhere the name alone tells. Sensors of type Battery (table 42-3,
29h) have states for words: low, which is a predicted failure, failed, and present.
"""

from __future__ import annotations

import re

PROCESSOR, BATTERY, SUPPLY, OTHER = "processor", "battery", "power_supply", "other"
SUPPLY_ENTITY = 10
_PROCESSOR_ENTITY, _BATTERY_ENTITY = 3, 40
_MAY_BE = ("", "CPU", "CPUSubsystem", "SystemBoard")  # values of Redfish's PhysicalContext under which a name counts
# CPU1 Temp   CPU0_TEMP   Temp_CPU1   Processor 2 Temp   coretemp Package id 0   k10temp Tctl   CPU Temp
_PROCESSOR = re.compile(r"\b(?:cpu|proc(?:essor)?) ?\d{0,2}\b|^(?:coretemp|k10temp|zenpower)\b", re.IGNORECASE)
# What stands beside a processor or is named after it: regulators, memory, the air. CPU1 VR Temp   CPU1 DIMM   P1 VRMs
_BESIDE = re.compile(
    r"\b(?:p?vr(?:m|ms|in)?\d?|vcc\w{0,8}|vdd\w{0,8}|dimm\w{0,4}|mem\w{0,4}|hbm\d{0,2}|mos(?:fet)?|inlet|outlet|ambient|area|zone|pch)\b",
    re.IGNORECASE,
)
# CMOS Battery   VBAT   P_VBAT   +VBATT   RTC Battery   BAT   CR2032   MB/V_VBAT
_BATTERY = re.compile(r"\b(?:v?batt?|battery|cmos|cr2032|rtc)\b", re.IGNORECASE)
# PSU2 Input   PS1 Status   P/S 2 Inlet   Power Supply 1   PWS2 Temp   VIN_PSU0   PSU_1_PIN
_SUPPLY = re.compile(r"\b(?:psu|ps|pws|p s|power ?supply|pwr ?supply)(?= ?\d| ?[a-d]?\b)", re.IGNORECASE)
# Low: ipmitool's word for "battery low (predictive failure)"
_BATTERY_STATES = (
    (re.compile(r"\bfailed\b", re.IGNORECASE), "critical"),
    (re.compile(r"\blow\b", re.IGNORECASE), "non_critical"),
    (re.compile(r"\bpresence detected\b", re.IGNORECASE), "ok"),
)


def part_of(name: str, kind: str, entity: int = 0, context: str = "") -> str:
    """The word of the fact ``sensor.part``.

    `kind` is that of the fact ``sensor.kind``, `entity` the number of IPMI (0: not told), `context` Redfish's
    PhysicalContext. A battery's temperature is no word on its charge: it counts as another part's.
    """
    plain = re.sub(r"[_/.+-]", " ", name)
    if entity == SUPPLY_ENTITY or context.startswith("PowerSupply") or _SUPPLY.search(plain):
        return SUPPLY
    if kind == "temperature":
        named = context in _MAY_BE and _PROCESSOR.search(plain) is not None
        at_it = entity == _PROCESSOR_ENTITY or context == "CPU" or named
        return PROCESSOR if at_it and not _BESIDE.search(plain) else OTHER
    if kind in ("voltage", "other") and (entity == _BATTERY_ENTITY or _BATTERY.search(plain)):
        return BATTERY
    return OTHER


def battery_state(name: str, words: str, entity: int = 0) -> str:
    """The word of ``sensor.state`` for a battery whose states are words; empty for another sensor, or other words."""
    if part_of(name, "other", entity) != BATTERY:
        return ""
    return next((word for pattern, word in _BATTERY_STATES if pattern.search(words)), "")
