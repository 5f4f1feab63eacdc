"""Redfish resources as JSON: one resource, a collection with its members, or a tree of them.

Resources are known by ``@odata.type`` (``#Thermal.v1_7_0.Thermal``). Properties are those of DMTF's schemas (DSP0268):
Thermal and Power, their successors Sensor, Fan, PowerSupply, ThermalSubsystem and PowerSubsystem, ComputerSystem,
Chassis, Manager, Memory, Processor, Drive, StorageController, PCIeDevice, and LogEntry. Nothing is fetched: files that
somebody saved are read. A part whose state is Absent says nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from knowledge.observation import ANY_TIME, Clock, Event, Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat
from probes.parse import _ipmi_words
from probes.parse._json import loaded
from probes.parse._sensor_parts import SUPPLY, part_of

NAME, REVISION = "redfish", 2
PROVIDES = (
    "bmc_event", "node.bmc.firmware", "node.bmc.health", "part.health", "part.kind", "node.power.draw",
    "node.power.redundancy", "node.fan.redundancy", "node.inlet.temperature", "psu.state", "sensor.kind", "sensor.part", "sensor.state",
    "sensor.temperature", "sensor.temperature.margin", "sensor.fan.speed", "sensor.fan.duty", "sensor.power",
    "sensor.voltage", "drive.healthy", "drive.wear", "drive.model", "drive.firmware",
)  # fmt: skip
MOST, DEEP = 20000, 40  # resources, and how deep they stand
_HEALTH = {"OK": "ok", "Warning": "warning", "Critical": "critical"}
_TYPE = re.compile(r"#(\w{1,60})\.")
# "@odata.type": "#Thermal.v1_7_0.Thermal"; other services of OData name types of their own
_NAMED = re.compile(r'"@odata\.type"\s{0,4}:\s{0,4}"#(\w{1,60})\.(?:v\d{1,3}_\d{1,3}_\d{1,3}\.)?\1"')
_PARTS = ("Memory", "Processor", "Drive", "StorageController", "PCIeDevice", "NetworkAdapter", "Battery", "Assembly")
_REDUNDANT = {"OK": "full", "Warning": "degraded", "Critical": "lost"}
_KINDS = {"Temperature": ("temperature", "sensor.temperature"), "Rotational": ("fan", "sensor.fan.speed"),
          "Power": ("power", "sensor.power"), "Voltage": ("voltage", "sensor.voltage"), "Current": ("current", "")}  # fmt: skip


def sniff(head: str) -> int:
    """90 for JSON that names a Redfish resource."""
    if not head.lstrip("\ufeff \r\n\t").startswith(("{", "[")):
        return 0
    named = _NAMED.search(head) is not None
    return 90 if named or ('"@odata.type"' in head and "/redfish/v1" in head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of all resources in the document."""
    try:
        document = loaded(text)
    except (ValueError, RecursionError):
        if sniff(text[:65536]):
            source = context.at(NAME, REVISION)
            why = "the JSON document is cut or not well formed"
            return [Observation("node.bmc.health", node(context.host), None, Status.FAILED, source, detail=why)]
        return []
    sheet = _Sheet(context)
    entries = 0
    promised: list[int] = []
    for kind, resource in _resources(document):
        reader = _READERS.get(kind)
        if reader is not None:
            reader(sheet, resource)
        elif kind in _PARTS:
            _part(sheet, kind, resource)
        entries += kind == "LogEntry"
        if kind == "LogEntryCollection":
            promised.append(_promised(resource))
    sheet.finish()
    if promised and entries >= sum(promised):  # the whole log is here, not one page or entry of it
        sheet.put(
            "bmc_event", sheet.node, None, "", Status.NONE_SEEN, "the log holds no other entry that is no routine"
        )
    return sheet.out


class _Sheet:
    """Collects observations; what may be told several times for the node is kept at its worst."""

    def __init__(self, context: Context) -> None:
        self.node = node(context.host)
        self.out: list[Observation] = []
        self._context = context
        self._worst: dict[str, tuple[int, Value, str]] = {}

    def thing(self, name: str) -> Subject:
        """A part or sensor by its name."""
        return Subject(Scope.OBJECT, " ".join(clean(name).split())[:120] or "-", self.node)

    def put(self, fact: str, subject: Subject, value: Value, shown: str, status: Status = Status.OK, detail: str = "",
            at: int | None = None, between: tuple[int, int] | None = None) -> None:  # fmt: skip
        """One observation. `at` is when it happened, `between` in which time it did where nothing tells when."""
        source = self._context.at(NAME, REVISION)
        clock = Clock.NONE if at is None and between is None else Clock.REALTIME
        if not any(o.fact == fact and o.subject == subject and fact != "bmc_event" for o in self.out[-30:]):
            self.out.append(
                Observation(
                    fact, subject, value, status, source, at, clock, between, excerpt=excerpt(shown, 300), detail=detail
                )
            )

    def worst(self, fact: str, rank: int, value: Value, shown: str) -> None:
        """Notes a value for the node; the one of the highest rank is told."""
        if fact not in self._worst or rank > self._worst[fact][0]:
            self._worst[fact] = (rank, value, shown)

    def finish(self) -> None:
        """What was noted for the node."""
        for fact, (_, value, shown) in self._worst.items():
            self.put(fact, self.node, value, shown)


def _resources(document: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of the document with its type, outermost first."""
    queue: deque[tuple[object, int]] = deque([(document, 0)])
    seen = 0
    while queue and seen < MOST:
        item, depth = queue.popleft()
        if isinstance(item, dict):
            named = item.get("@odata.type")
            found = _TYPE.match(named) if isinstance(named, str) else None
            if found:
                seen += 1
                yield found[1], item
        if depth < DEEP:
            inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
            queue += [(x, depth + 1) for x in inner if isinstance(x, dict | list)]


def _promised(log: Mapping[str, Any]) -> int:
    """How many entries a log has, at least: one more than are here where it goes on elsewhere."""
    count, members = log.get("Members@odata.count"), log.get("Members")
    here = len(members) if isinstance(members, list) else 0
    told = count if isinstance(count, int) else 0
    return max(told, here) + ("Members@odata.nextLink" in log)


def _text(value: object) -> str:
    return " ".join(clean(value).split()) if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 < value < 1e9:
        return None
    return float(value)


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _status(resource: Mapping[str, Any]) -> tuple[str, str]:
    """State and health; both empty when they are not told."""
    status = resource.get("Status")
    found = status if isinstance(status, dict) else {}
    return _text(found.get("State")), _text(found.get("Health") or found.get("HealthRollup"))


def _name(resource: Mapping[str, Any]) -> str:
    keys = ("DeviceLocator", "Name", "FanName", "MemberId", "Id")
    return next((t for key in keys if (t := _text(resource.get(key)))), "-")


def _health(sheet: _Sheet, kind: str, resource: Mapping[str, Any], name: str = "") -> None:
    state, health = _status(resource)
    word = _HEALTH.get(health)
    if state != "Absent" and word is not None:
        subject = sheet.thing(name or _name(resource))
        sheet.put("part.kind", subject, kind, f"{kind} {subject.id}")
        sheet.put("part.health", subject, word, f"{subject.id}: State {state or '-'}, Health {health}")


def _part(sheet: _Sheet, kind: str, resource: Mapping[str, Any]) -> None:
    name = _name(resource)
    if kind == "Drive" and _text(resource.get("Id")):
        name = f"{name} ({_text(resource['Id'])})" if name != _text(resource["Id"]) else name
    _health(sheet, kind, resource, name)
    if kind != "Drive" or _status(resource)[0] == "Absent":
        return
    subject = sheet.thing(name)
    if isinstance(predicted := resource.get("FailurePredicted"), bool):
        sheet.put("drive.healthy", subject, not predicted, f"FailurePredicted: {predicted}")
    left = _number(resource.get("PredictedMediaLifeLeftPercent"))
    if left is not None and 0 <= left <= 100:
        sheet.put("drive.wear", subject, 100 - left, f"PredictedMediaLifeLeftPercent: {left:g}")
    for fact, key in (("drive.model", "Model"), ("drive.firmware", "Revision")):
        if text := _text(resource.get(key)):
            sheet.put(fact, subject, text, f"{key}: {text}")


def _thermal(sheet: _Sheet, resource: Mapping[str, Any]) -> None:
    for item in _maps(resource.get("Temperatures")):
        _temperature(sheet, item, _number(item.get("ReadingCelsius")), _number(item.get("UpperThresholdCritical")))
    for item in _maps(resource.get("Fans")):
        units = "sensor.fan.duty" if _text(item.get("ReadingUnits")) == "Percent" else "sensor.fan.speed"
        _measured(sheet, item, "fan", units, _number(item.get("Reading")))
        _health(sheet, "Fan", item)
    _redundancy(sheet, "node.fan.redundancy", resource.get("Redundancy"))


def _redundancy(sheet: _Sheet, fact: str, groups: object) -> None:
    for item in _maps(groups):
        state, health = _status(item)
        word = _REDUNDANT.get(health)
        if state in ("Enabled", "") and word is not None:
            sheet.worst(fact, list(_REDUNDANT.values()).index(word), word, f"{_name(item)}: {health}")


def _measured(sheet: _Sheet, item: Mapping[str, Any], kind: str, fact: str, value: float | None) -> None:
    """A reading with where it lies; a part that is absent or off has none."""
    state, health = _status(item)
    subject = sheet.thing(_name(item))
    if state == "Absent" or (value is None and state != "Enabled"):
        return
    sheet.put("sensor.kind", subject, kind, _name(item))
    context = _text(item.get("PhysicalContext"))
    part = part_of(_name(item), kind, context=context)
    sheet.put("sensor.part", subject, part, f"{_name(item)} {context}".strip())
    if fact and value is not None:
        sheet.put(fact, subject, value, f"{_name(item)}: {value:g}")
    elif fact:
        sheet.put(fact, subject, None, _name(item), Status.UNSUPPORTED, "the resource tells no reading")
    word = {"OK": "ok", "Warning": "non_critical", "Critical": "critical"}.get(health)
    if part == SUPPLY and word == "critical" and value is not None and abs(value) < 1 and kind != "temperature":
        why = "a power supply without input reads zero: its own state tells more"
        sheet.put("sensor.state", subject, None, _name(item), Status.UNSUPPORTED, why)
    elif word is not None:
        sheet.put("sensor.state", subject, word, f"{_name(item)}: Health {health}")


def _temperature(sheet: _Sheet, item: Mapping[str, Any], value: float | None, limit: float | None) -> None:
    _measured(sheet, item, "temperature", "sensor.temperature", value)
    if value is None or _status(item)[0] == "Absent":
        return
    if limit is not None and limit > 0:
        subject = sheet.thing(_name(item))
        sheet.put("sensor.temperature.margin", subject, round(limit - value, 3), f"{value:g} of {limit:g} °C")
    if _text(item.get("PhysicalContext")) in ("Intake", "Room") and not re.search(r"PSU?\d?\b|P/S|GPU", _name(item)):
        sheet.worst("node.inlet.temperature", int(value * 1000), value, f"{_name(item)}: {value:g} °C")


def _power(sheet: _Sheet, resource: Mapping[str, Any]) -> None:
    for item in _maps(resource.get("PowerSupplies")):
        _supply(sheet, item)
    drawn = [
        w for item in _maps(resource.get("PowerControl")) if (w := _number(item.get("PowerConsumedWatts"))) is not None
    ]
    if drawn:
        sheet.worst("node.power.draw", int(max(drawn)), max(drawn), f"PowerConsumedWatts: {max(drawn):g}")
    for item in _maps(resource.get("Voltages")):
        _measured(sheet, item, "voltage", "sensor.voltage", _number(item.get("ReadingVolts")))
    _redundancy(sheet, "node.power.redundancy", resource.get("Redundancy"))


def _supply(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    """Loss of input beats the health, which it spoils."""
    state, health = _status(item)
    line = _text(item.get("LineInputStatus"))
    word = {"OK": "ok", "Warning": "failing", "Critical": "failed"}.get(health)
    if state == "Absent":
        word = "absent"
    elif line in ("LossOfInput", "OutOfRange") or (word == "failed" and item.get("LineInputVoltage") == 0):
        word = "input_lost"
    if word is not None:
        shown = f"{_name(item)}: State {state or '-'}, Health {health or '-'}" + (
            f", LineInputStatus {line}" if line else ""
        )
        sheet.put("psu.state", sheet.thing(_name(item)), word, shown)


def _sensor(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    kind, fact = _KINDS.get(_text(item.get("ReadingType")), ("other", ""))
    value = _number(item.get("Reading"))
    if kind == "fan" and _text(item.get("ReadingUnits")) == "%":
        fact = "sensor.fan.duty"
    if kind == "temperature":
        limits = item.get("Thresholds")
        upper = limits.get("UpperCritical") if isinstance(limits, dict) else None
        _temperature(sheet, item, value, _number(upper.get("Reading")) if isinstance(upper, dict) else None)
    else:
        _measured(sheet, item, kind, fact, value)


def _fan(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    speed = item.get("SpeedPercent")
    turns = _number(speed.get("SpeedRPM")) if isinstance(speed, dict) else None
    duty = _number(speed.get("Reading")) if isinstance(speed, dict) else None
    fact, value = ("sensor.fan.speed", turns) if turns is not None else ("sensor.fan.duty", duty)
    _measured(sheet, item, "fan", fact if value is not None else "", value)
    _health(sheet, "Fan", item)


def _machine(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    status = item.get("Status")
    found = status if isinstance(status, dict) else {}
    rollup = _text(found.get("HealthRollup") or found.get("Health"))
    word = _HEALTH.get(rollup)
    if word is not None:
        sheet.worst(
            "node.bmc.health", list(_HEALTH.values()).index(word), word, f"{_name(item)}: HealthRollup {rollup}"
        )


def _manager(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    if version := _text(item.get("FirmwareVersion")):
        sheet.put("node.bmc.firmware", sheet.node, version, f"FirmwareVersion: {version}")


def _log(sheet: _Sheet, item: Mapping[str, Any]) -> None:
    """An entry of a log service. What the words of IPMI do not tell is as bad as the entry says."""
    message, code, severity = (_text(item.get(key)) for key in ("Message", "EntryCode", "Severity"))
    type_ = next((t for t in _ipmi_words.TYPES if t == _text(item.get("SensorType"))), "")
    if severity not in ("Warning", "Critical") or "Deassert" in code:
        return
    known = _ipmi_words.meaning("Power Supply" if type_.startswith("Power Supply") else type_, f"{code} {message}")
    kind, bad = known or ("other", "error" if severity == "Critical" else "warning")
    state = "cleared" if item.get("Resolved") is True else "logged"
    at, between = _when(item.get("Created"))
    sensor = _text(item.get("SensorType")) or _text(item.get("MessageId")) or _name(item)
    fields = {"kind": kind, "sensor": excerpt(sensor, 60), "event": excerpt(message or code, 120), "state": state,
              "severity": bad, "reading": "", "date": "known" if at is not None else "not known"}  # fmt: skip
    shown = f"{_text(item.get('Created'))} {severity}: {message}"
    sheet.put("bmc_event", sheet.node, Event(None, fields), shown, at=at, between=between)


def _when(value: object) -> tuple[int | None, tuple[int, int] | None]:
    """When an entry was made, ns UTC; else between which times: of a wall clock the zone may be any, from UTC-12 to UTC+14."""
    try:
        found = datetime.fromisoformat(_text(value)) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or not 1980 <= found.year < 2100:
        return None, ANY_TIME
    if found.tzinfo is not None:
        return int(found.timestamp()) * 10**9, None
    local = int(found.replace(tzinfo=UTC).timestamp())
    return None, ((local - 14 * 3600) * 10**9, (local + 12 * 3600) * 10**9)


_READERS: Mapping[str, Callable[[_Sheet, Mapping[str, Any]], None]] = {
    "Thermal": _thermal, "Power": _power, "PowerSupply": _supply, "Sensor": _sensor, "Fan": _fan,
    "ComputerSystem": _machine, "Chassis": _machine, "Manager": _manager, "LogEntry": _log,
    "ThermalSubsystem": lambda sheet, item: _redundancy(sheet, "node.fan.redundancy", item.get("FanRedundancy")),
    "PowerSubsystem": lambda sheet, item: _redundancy(sheet, "node.power.redundancy", item.get("PowerSupplyRedundancy")),
}  # fmt: skip
FORMAT = DocumentFormat(NAME, "Redfish resources", REVISION, PROVIDES, sniff, parse)
