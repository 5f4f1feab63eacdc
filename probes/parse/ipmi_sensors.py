"""``ipmitool sdr elist``, ``sdr list`` and ``sensor``: what the management controller measures.

Lines as the tool prints them (lib/ipmi_sdr.c, lib/ipmi_sensor.c). In ``sdr elist`` the fourth column is the entity:
10 is a power supply, 29 a fan. States of discrete sensors are words only there; ``sensor`` prints their bits, of which this says
in the same words what the name tells the kind of: power supplies, redundancy, processors (IPMI 2.0, tables 42-2 and 42-3).
"""

from __future__ import annotations

import re
from collections import Counter

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._sensor_parts import SUPPLY_ENTITY, battery_state, part_of

NAME, REVISION = "ipmi-sensors", 4
PROVIDES = (
    "sensor.kind", "sensor.part", "sensor.state", "sensor.temperature", "sensor.temperature.margin", "sensor.fan.speed",
    "sensor.fan.duty", "sensor.power", "sensor.voltage", "psu.state", "node.power.redundancy", "node.fan.redundancy",
    "node.power.draw", "node.inlet.temperature",
)  # fmt: skip
MOST = 2000  # sensors; the largest GPU chassis have some 500
# Inlet Temp       | 04h | ok  |  7.1 | 22 degrees C
# Power Supply 1   | 3Dh | ok  | 10.1 | 85 Watts, Presence detected
_ELIST = re.compile(r"([^|]{1,40})\| ?([0-9A-Fa-f]{2})h ?\| ?(\w{2,3}) {0,3}\| {0,3}(\d{1,3})\.(\d{1,3}) ?\|(.{0,300})")
# CPU1 Temp        | 45 degrees C      | ok
_LIST = re.compile(r"([^|]{1,40})\| ([^|]{1,60}?) {0,20}\| (ok|ns|nc|cr|nr|lnc|lcr|lnr|unc|ucr|unr)\s{0,4}")
# CPU1 Temp        | 45.000     | degrees C  | ok    | 0.000     | 0.000     | 0.000     | 85.000    | 90.000    | 95.000
_SENSOR = re.compile(r"([^|]{1,40})\| ([^|]{1,24})\| ([^|]{1,24})\| ([^|]{1,12})\|(?: [^|]{1,14}\|){5} [^|]{1,14}")
# PS2 Status       | 0x1        | discrete   | 0x0b00| na        | na        | na        | na        | na        | na
_BITS = re.compile(r"0x([0-9a-fA-F]{2})([0-9a-fA-F]{2})")  # states 0 to 7, then 8 to 14
_REDUNDANT = (
    "Fully Redundant",
    "Redundancy Lost",
    "Redundancy Degraded",
    *["Non-Redundant"] * 3,
    *["Redundancy Degraded"] * 2,
)
_SUPPLY = (
    "Presence detected", "Failure detected", "Predictive failure", "Power Supply AC lost", "AC lost or out-of-range",
    "AC out-of-range, but present", "Config Error", "Power Supply Inactive",
)  # fmt: skip
_PROCESSOR = (
    "IERR",
    "Thermal Trip",
    "FRB1/BIST failure",
    "FRB2/Hang in POST failure",
    "FRB3/Processor startup/init failure",
)
_NAMED_PROCESSOR = re.compile(r"(?:CPU|P|Processor)[ _-]?\d{1,2}[ _-](?:Status|State)", re.IGNORECASE)
_VALUE = re.compile(r"(-?\d{1,9}(?:\.\d{1,6})?) (degrees C|degrees F|RPM|Watts|Volts|Amps|percent)(?:,|\Z)")
_UNITS = {
    "degrees C": ("temperature", "sensor.temperature"), "RPM": ("fan", "sensor.fan.speed"), "Watts": ("power", "sensor.power"),
    "Volts": ("voltage", "sensor.voltage"), "Amps": ("current", ""),
}  # fmt: skip
_STATES = {
    "ok": "ok", "nc": "non_critical", "lnc": "non_critical", "unc": "non_critical", "cr": "critical", "lcr": "critical",
    "ucr": "critical", "nr": "non_recoverable", "lnr": "non_recoverable", "unr": "non_recoverable",
}  # fmt: skip
_BAD = ("critical", "non_recoverable")
_FAN = 29  # entity
_NAMED_SUPPLY = re.compile(r"(?:PS|PSU|Power Supply|Pwr Supply)[ _-]?\d{0,2}(?:[ _-]?(?:Status|State))?", re.IGNORECASE)
_STANDBY = re.compile(r"Power Supply Inactive", re.IGNORECASE)  # a spare: its readings are zero
# words of a power supply, worst first
_SUPPLY_STATES = (
    (re.compile(r"Failure detected", re.IGNORECASE), "failed"),
    (re.compile(r"\bAC lost|AC out-of-range", re.IGNORECASE), "input_lost"),
    (re.compile(r"Predictive failure", re.IGNORECASE), "failing"),
    (re.compile(r"Config Error", re.IGNORECASE), "misconfigured"),
    (re.compile(r"Presence detected|Power Supply Inactive", re.IGNORECASE), "ok"),  # inactive: in standby, a spare
)
_REDUNDANCY = (
    (re.compile(r"Redundancy Lost|Non-Redundant", re.IGNORECASE), "lost"),
    (re.compile(r"Redundancy Degraded", re.IGNORECASE), "degraded"),
    (re.compile(r"Fully Redundant", re.IGNORECASE), "full"),
)
_INLET = re.compile(r"\b(?:inlet|ambient|air[ _]?in)\b", re.IGNORECASE)
_NOT_INLET = re.compile(
    r"\bPSU?\d?\b|p/s|power|pwr|cpu|gpu|npu|nic|ocp|hba|drive|disk|hdd|ssd|nvme|dimm|hbm|m\.2|pch|riser|pcie?\b|zone|batt|outlet|exhaust",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(?:pwr consumption|power consumption|(?:sys(?:tem)?|total|node)[ _]?(?:total[ _]?)?(?:power|pwr)|(?:power|pwr)[ _]?(?:meter|total|in(?:put)?))",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Row:
    line: Line
    name: str
    state: str
    text: str
    entity: int = 0
    instance: int = 0
    limit: float | None = None  # upper critical threshold
    words: bool = False  # whether states of discrete sensors are printed as words
    idle: bool = False  # of a power supply whose words say why it reads zero


def sniff(head: str) -> int:
    """85 when most lines are sensors."""
    lines = [line for line in head.splitlines()[:80] if line.strip()]
    rows = sum(_row(Line(1, line)) is not None for line in lines)
    return 85 if rows >= 3 and rows * 4 >= len(lines) * 3 else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each sensor and power supply, and of the node."""
    rows = [row for line in lines_of(text) if (row := _row(Line(line.number, clean(line.text)))) is not None][:MOST]
    sheet = _Sheet(context)
    counts = Counter(row.name for row in rows)
    _mark_idle(rows)
    for row in rows:
        name = row.name if counts[row.name] == 1 or not row.words else f"{row.name} ({row.entity}.{row.instance})"
        _sensor(sheet, row, Subject(Scope.OBJECT, name, sheet.node))
    _node(sheet, rows)
    return sheet.out


class _Sheet:
    """Collects observations."""

    def __init__(self, context: Context) -> None:
        self.node = node(context.host)
        self.out: list[Observation] = []
        self._context = context

    def add(self, fact: str, subject: Subject, value: Value, row: _Row) -> None:
        """One value of a line."""
        source = self._context.at(NAME, REVISION, row.line.number)
        self.out.append(Observation(fact, subject, value, Status.OK, source, excerpt=excerpt(row.line.text, 300)))

    def missing(self, fact: str, subject: Subject, why: str, row: _Row) -> None:
        """Why a line tells no value."""
        source = self._context.at(NAME, REVISION, row.line.number)
        shown = excerpt(row.line.text, 300)
        self.out.append(
            Observation(fact, subject, None, Status.UNSUPPORTED, source, excerpt=shown, detail=excerpt(why))
        )


def _row(line: Line) -> _Row | None:
    text = line.text.rstrip()
    if found := _ELIST.fullmatch(text):
        name, _, state, entity, instance, rest = (part.strip() for part in found.groups())
        return _Row(line, name, state, rest, int(entity), int(instance), words=True)
    if found := _SENSOR.fullmatch(text):
        name, value, unit, state = (part.strip() for part in found.groups())
        last = text.split("|")[-2].strip()  # the columns end with unc, ucr, unr
        limit = float(last) if re.fullmatch(r"-?\d{1,9}\.\d{1,6}", last) else None
        if unit == "discrete" and (bits := _BITS.fullmatch(state)) and (told := _said(name, bits)):
            return _Row(line, name, "cr" if told[0] in _PROCESSOR else "ok", ", ".join(told))
        return _Row(line, name, state, f"{value} {unit}", limit=limit)
    if found := _LIST.fullmatch(text):
        name, rest, state = (part.strip() for part in found.groups())
        return _Row(line, name, state, rest)
    return None


def _said(name: str, bits: re.Match[str]) -> list[str]:
    """The states of a discrete sensor in the words of the other listing; empty where its name does not tell its kind, or none is set."""
    words = (
        _SUPPLY if _NAMED_SUPPLY.fullmatch(name) else _REDUNDANT if "redundan" in name.casefold()
        else _PROCESSOR if _NAMED_PROCESSOR.fullmatch(name) else ()
    )  # fmt: skip
    states = int(bits[1], 16) | (int(bits[2], 16) & 0x7F) << 8
    return [word for bit, word in enumerate(words) if states >> bit & 1]


def _mark_idle(rows: list[_Row]) -> None:
    """Power supplies in standby, without input or failed read zero: their words tell more than each of the readings."""
    told = {row.instance for row in rows if row.entity == SUPPLY_ENTITY and _tells_zero(row.text)}
    for row in rows:
        row.idle = row.entity == SUPPLY_ENTITY and row.instance in told


def _tells_zero(words: str) -> bool:
    return _supply_word(words) in ("failed", "input_lost") or _STANDBY.search(words) is not None


def _supply_word(words: str) -> str | None:
    return next((word for pattern, word in _SUPPLY_STATES if pattern.search(words)), None)


def _sensor(sheet: _Sheet, row: _Row, subject: Subject) -> None:
    found = _VALUE.match(row.text)
    if found:
        _reading(sheet, row, subject, float(found[1]), found[2])
    if row.entity == SUPPLY_ENTITY or _NAMED_SUPPLY.fullmatch(row.name):
        _supply(sheet, row, subject)
    if not found:
        _discrete(sheet, row, subject)


def _discrete(sheet: _Sheet, row: _Row, subject: Subject) -> None:
    """A sensor without a reading: what its word says, or how the tool marks it."""
    state = battery_state(row.name, row.text, row.entity) if row.words else ""
    marked = _STATES.get(row.state, "")
    if not state and marked in _BAD and _supply_word(row.text) in (None, "ok"):
        state = marked
    if state:
        sheet.add("sensor.kind", subject, "other", row)
        sheet.add("sensor.part", subject, part_of(row.name, "other", row.entity), row)
        sheet.add("sensor.state", subject, state, row)
    elif row.state == "ns" or row.text.lower().startswith(("no reading", "na ", "disabled")):
        sheet.missing("sensor.state", subject, f"the sensor gives no reading: {row.text or row.state}", row)


def _reading(sheet: _Sheet, row: _Row, subject: Subject, value: float, unit: str) -> None:
    if unit == "degrees F":
        value, unit = round((value - 32) / 1.8, 2), "degrees C"
        row.limit = round((row.limit - 32) / 1.8, 2) if row.limit is not None else None
    if unit == "percent":
        of_fan = row.entity == _FAN or re.search(r"fan", row.name, re.IGNORECASE)
        kind, fact = ("fan", "sensor.fan.duty") if of_fan else ("other", "")
    else:
        kind, fact = _UNITS[unit]
    part = part_of(row.name, kind, row.entity)
    sheet.add("sensor.kind", subject, kind, row)
    sheet.add("sensor.part", subject, part, row)
    if fact:
        sheet.add(fact, subject, value, row)
    if kind == "temperature" and row.limit is not None and row.limit > 0:
        sheet.add("sensor.temperature.margin", subject, round(row.limit - value, 3), row)
    state = _STATES.get(row.state)
    if row.idle and abs(value) < 1 and kind != "temperature" and state in _BAD:
        sheet.missing("sensor.state", subject, "a power supply without input reads zero: its own state tells more", row)
    elif state is not None:
        sheet.add("sensor.state", subject, state, row)


def _supply(sheet: _Sheet, row: _Row, subject: Subject) -> None:
    word = _supply_word(row.text)
    if word is not None:
        sheet.add("psu.state", subject, word, row)
    elif not row.words and row.text.startswith("0x") and _NAMED_SUPPLY.fullmatch(row.name):
        sheet.missing(
            "psu.state", subject, "this listing prints the state as a number: ipmitool sdr elist has the words", row
        )


def _redundancy(sheet: _Sheet, rows: list[_Row]) -> None:
    """The worst word of each kind: a machine may have several groups of fans."""
    words = [word for _, word in _REDUNDANCY]
    seen: dict[str, list[tuple[int, _Row]]] = {}
    for row in rows:
        word = next((word for pattern, word in _REDUNDANCY if pattern.search(row.text)), None)
        if word is None:
            continue
        if re.search(r"fan|cool", row.name, re.IGNORECASE) or row.entity == _FAN:
            seen.setdefault("node.fan.redundancy", []).append((words.index(word), row))
        elif re.search(r"\bPSU?\b|power|pwr|supply", row.name, re.IGNORECASE):
            seen.setdefault("node.power.redundancy", []).append((words.index(word), row))
    for fact, found in seen.items():
        rank, row = min(found, key=lambda pair: pair[0])
        sheet.add(fact, sheet.node, words[rank], row)


def _node(sheet: _Sheet, rows: list[_Row]) -> None:
    _redundancy(sheet, rows)
    inlets = [(float(m[1]), row) for row in rows if _INLET.search(row.name.replace("_", " ")) and not _NOT_INLET.search(row.name)
              and (m := _VALUE.match(row.text)) and m[2] == "degrees C"]  # fmt: skip
    if inlets:
        value, row = max(inlets, key=lambda pair: pair[0])
        sheet.add("node.inlet.temperature", sheet.node, value, row)
    totals = [(float(m[1]), row) for row in rows if _TOTAL.search(row.name) and row.entity != SUPPLY_ENTITY
              and not re.match(r"PSU?\d?[ _-]|cpu|gpu|mem|hdd|fan", row.name, re.IGNORECASE)
              and (m := _VALUE.match(row.text)) and m[2] == "Watts"]  # fmt: skip
    if totals:
        value, row = max(totals, key=lambda pair: pair[0])
        sheet.add("node.power.draw", sheet.node, value, row)


FORMAT = DocumentFormat(NAME, "ipmitool sdr elist", REVISION, PROVIDES, sniff, parse)
