"""``xpu-smi discovery|stats``, with ``-j`` or without, and ``xpu-smi health -l``: Intel's GPUs as Intel's own tool sees them.

Source of the fields: the user guide and the sources of intel/xpumanager (doc/smi_user_guide.md, metric names
``XPUM_STATS_*``, health states of ``xpum_health_status_enum``). Memory in use is MiB, frequency MHz, power W, errors are
counts since the driver was loaded. Of a GPU with tiles the errors are summed, the hottest tile counts. The health of the
components is read from the table only: no sample of its JSON was to be had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from knowledge.observation import Observation, Subject, gpu
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import clean_lines
from probes.parse._smi_values import Reading
from probes.parse._vendor_emit import (
    CELSIUS,
    MHZ,
    MIB,
    NONE_LISTED,
    PERCENT,
    PLAIN,
    WATTS,
    VendorEmitter,
    load,
    number,
    opens,
    table,
    tables,
    text_of,
    words,
)

NAME, REVISION, VENDOR = "xpu-smi", 2, "intel"
PROVIDES = (
    "node.gpus.intel", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.serial", "gpu.driver.version", "gpu.memory.total",
    "gpu.memory.used", "gpu.utilization.core", "gpu.power.draw", "gpu.clock.graphics", "gpu.temperature.core",
    "gpu.temperature.slowdown", "gpu.temperature.shutdown", "gpu.temperature.memory", "gpu.temperature.memory_slowdown",
    "gpu.ras.corrected", "gpu.ras.uncorrected", "gpu.ras.programming", "gpu.resets", "gpu.health.state", "gpu.health.parts",
)  # fmt: skip
_PREFIX = "XPUM_STATS_"
_METRICS: tuple[tuple[str, str, Mapping[str, float], bool, Callable[[list[float]], float]], ...] = (
    ("GPU_UTILIZATION", "gpu.utilization.core", PERCENT, True, max),
    ("POWER", "gpu.power.draw", WATTS, False, sum),
    ("GPU_FREQUENCY", "gpu.clock.graphics", MHZ, True, max),
    ("GPU_CORE_TEMPERATURE", "gpu.temperature.core", CELSIUS, True, max),
    ("MEMORY_TEMPERATURE", "gpu.temperature.memory", CELSIUS, True, max),
    ("MEMORY_USED", "gpu.memory.used", {"": 1.0}, True, sum),
    ("RAS_ERROR_CAT_RESET", "gpu.resets", PLAIN, True, sum),
    ("RAS_ERROR_CAT_PROGRAMMING_ERRORS", "gpu.ras.programming", PLAIN, True, sum),
)
_RAS = re.compile(r"RAS_ERROR_CAT_\w{1,40}_(CORRECTABLE|UNCORRECTABLE)")
# | Device ID                    | 0                                                                 |
# | 1. GPU Core Temperature      | Status: Ok                                                        |
# |                              | Throttle Threshold: 105 Celsius Degree                            |
_ROW = re.compile(r"\|\s{0,4}([^|]{0,40}?)\s{0,40}\|\s{0,4}([^|]{0,120}?)\s{0,120}\|")
_PART = re.compile(r"(?:\d{1,2}\. )?([A-Z][A-Za-z ]{2,30})")
_HEALTH = {"ok": "ok", "warning": "warning", "critical": "critical", "unknown": "unknown"}
_THRESHOLD = re.compile(r"(Throttle|Shutdown) Threshold: (\d{1,3})\s{1,4}Celsius")
_LIMITS = {
    ("gpu core temperature", "Throttle"): "gpu.temperature.slowdown",
    ("gpu core temperature", "Shutdown"): "gpu.temperature.shutdown",
    ("gpu temperature", "Throttle"): "gpu.temperature.slowdown",
    ("gpu temperature", "Shutdown"): "gpu.temperature.shutdown",
    ("gpu memory temperature", "Throttle"): "gpu.temperature.memory_slowdown",
}  # fmt: skip
# | Cache Errors Uncorrectable   | Tile 0: 3; Tile 1: 0; total: 3                                    |        of `stats`: label -> metric
_LABELS = {
    "GPU Utilization (%)": "GPU_UTILIZATION", "GPU Power (W)": "POWER", "GPU Frequency (MHz)": "GPU_FREQUENCY",
    "GPU Core Temperature (C)": "GPU_CORE_TEMPERATURE", "GPU Memory Temperature (C)": "MEMORY_TEMPERATURE", "GPU Memory Used (MiB)": "MEMORY_USED",
    "Reset": "RAS_ERROR_CAT_RESET", "Programming Errors": "RAS_ERROR_CAT_PROGRAMMING_ERRORS",
    "Cache Errors Correctable": "RAS_ERROR_CAT_CACHE_ERRORS_CORRECTABLE", "Cache Errors Uncorrectable": "RAS_ERROR_CAT_CACHE_ERRORS_UNCORRECTABLE",
    "Mem Errors Correctable": "RAS_ERROR_CAT_MEM_ERRORS_CORRECTABLE", "Mem Errors Uncorrectable": "RAS_ERROR_CAT_MEM_ERRORS_UNCORRECTABLE",
}  # fmt: skip
_TILE = re.compile(r"Tile (\d{1,2}): (\d{1,12}(?:\.\d{1,4})?|N/A)")
# | 0         | Device Name: Intel(R) Data Center GPU Max 1550                                       |        of `discovery`
_TOLD = re.compile(r"(Device Name|PCI BDF Address|Driver Version|Serial Number|Function Type): (\S.{0,118})")
_WORST = ("critical", "warning", "ok")
# "metrics_type": "XPUM_STATS_POWER"
_METRIC = re.compile(rf'"metrics_type"\s{{0,4}}:\s{{0,4}}"{_PREFIX}')
# "device_id": 0   "pci_bdf_address": "0000:29:00.0"   "vendor_name": "Intel(R) Corporation"; others use the first two keys as well
_DEVICE = tuple(
    re.compile(rf'"{key}"\s{{0,4}}:\s{{0,4}}{value}')
    for key, value in (
        ("device_id", r"\d"), ("pci_bdf_address", r'"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:'), ("(?:vendor|device)_name", r'"Intel\b'),
    )
)  # fmt: skip


def sniff(head: str) -> int:
    """95 for a document with metrics, devices that name Intel as the tool does, or the table of health."""
    start = opens(head)
    if start == "{" and (_METRIC.search(head) or all(key.search(head) for key in _DEVICE)):
        return 95
    if start not in "+|D" or "Device ID" not in head:
        return 0
    health = "GPU Power" in head and "Status: " in head
    return (
        95
        if health or "| Device Information " in head or all(f"| {label} " in head for label in (*_LABELS,)[:2])
        else 0
    )


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document or table."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    drawn = opens(text) != "{"
    if drawn and "Status: " in text:
        return _health(emit, clean_lines(text))
    document = _drawn(clean_lines(text)) if drawn else table(load(text))
    listed = "device_list" in document
    records = tables(document.get("device_list")) if listed else tables(document.get("shown")) or [document]
    records = [r for r in records if isinstance(r.get("device_id"), int)]
    if not records:
        return emit.failed(words(document.get("error")) or NONE_LISTED)
    if listed:
        emit.count(len([r for r in records if _physical(r)]))
    for record in records:
        if _physical(record):
            _device(emit, record)
    return emit.out


def _drawn(lines: Sequence[Line]) -> Mapping[str, Any]:
    """The document of a table of ``discovery`` or ``stats``: the same records by the same keys."""
    records: dict[str, dict[str, Any]] = {}
    listed, here = False, dict[str, Any]()
    for line in lines:
        if (row := _ROW.match(line.text.strip())) is None:
            continue
        label, said = row[1].strip(), row[2].strip()
        listed |= said == "Device Information"
        name = said if label == "Device ID" else label if listed else ""
        if name.isascii() and name.isdigit() and len(name) < 5:
            here = records.setdefault(name, {"device_id": int(name), "device_level": [], "tiles": {}})
        if told := _TOLD.fullmatch(said):
            here[told[1].lower().replace(" ", "_")] = told[2]
        elif (metric := _LABELS.get(label)) and "tiles" in here:
            tiles = _TILE.findall(said)
            for tile, value in tiles:
                here["tiles"].setdefault(tile, []).append({"metrics_type": _PREFIX + metric, "value": value})
            if not tiles and said:
                here["device_level"].append({"metrics_type": _PREFIX + metric, "value": said})
    found = [{**r, "tile_level": [{"data_list": values} for values in r["tiles"].values()]} for r in records.values()]
    return {"device_list" if listed else "shown": found}


def _physical(record: Mapping[str, Any]) -> bool:
    """A virtual function is a share of another device."""
    said = words(record.get("device_function_type")) or words(record.get("function_type"))
    return said.lower() in ("", "physical")


def _device(emit: VendorEmitter, record: Mapping[str, Any]) -> None:
    subject = emit.device(str(record["device_id"]), words(record.get("pci_bdf_address")))
    for key, fact in (
        ("device_name", "gpu.name"),
        ("driver_version", "gpu.driver.version"),
        ("serial_number", "gpu.serial"),
    ):
        if key in record:
            emit.put(fact, subject, text_of(record[key]), shown=f"{key}: {record[key]}")
    if "memory_physical_size_byte" in record:
        said = {"value": record["memory_physical_size_byte"], "unit": "B"}
        emit.put("gpu.memory.total", subject, number(said, MIB, whole=True), shown=f"{said['value']} bytes")
    levels = [_metrics(record.get("device_level"))]
    levels += [_metrics(tile.get("data_list")) for tile in tables(record.get("tile_level"))]
    if any(levels):
        _stats(emit, subject, levels[0], levels[1:])


def _metrics(value: object) -> dict[str, object]:
    """Values by the name of their metric, without the common prefix."""
    out = {}
    for item in tables(value) if isinstance(value, list) else []:
        name = words(item.get("metrics_type")).removeprefix(_PREFIX)
        if name and "value" in item:
            out[name] = item["value"]
    return out


def _stats(
    emit: VendorEmitter, subject: Subject, whole: Mapping[str, object], tiles: Sequence[Mapping[str, object]]
) -> None:
    for name, fact, units, integer, join in _METRICS:
        reading = _joined(name, whole, tiles, units, join)
        if reading is not None:
            rounded = reading.value
            if reading.ok and integer and isinstance(rounded, float):
                reading = Reading(round(rounded))
            emit.put(fact, subject, reading, shown=f"{_PREFIX}{name}: {reading.value}")
    names = {name for level in (whole, *tiles) for name in level if _RAS.fullmatch(name)}
    for kind, fact in (("CORRECTABLE", "gpu.ras.corrected"), ("UNCORRECTABLE", "gpu.ras.uncorrected")):
        mine = sorted(name for name in names if (found := _RAS.fullmatch(name)) and found[1] == kind)
        readings = [r for name in mine if (r := _joined(name, whole, tiles, PLAIN, sum)) is not None]
        if readings:
            bad = next((r for r in readings if not r.ok), None)
            total = round(sum(_figures(readings)))
            emit.put(
                fact,
                subject,
                bad or Reading(total),
                shown=f"{len(mine)} kinds of {kind.lower()} errors, {total} in all",
            )


def _joined(
    name: str, whole: Mapping[str, object], tiles: Iterable[Mapping[str, object]], units: Mapping[str, float],
    join: Callable[[list[float]], float],
) -> Reading | None:  # fmt: skip
    """Of the device where it is told there, else of its tiles; None when nothing tells it."""
    if name in whole:
        return number(whole[name], units)
    readings = [number(tile[name], units) for tile in tiles if name in tile]
    if not readings:
        return None
    return next((r for r in readings if not r.ok), None) or Reading(float(join(_figures(readings))))


def _figures(readings: Iterable[Reading]) -> list[float]:
    return [float(r.value) for r in readings if isinstance(r.value, int | float)]


# --- the table of health -------------------------------------------------------------------


def _health(emit: VendorEmitter, lines: Sequence[Line]) -> list[Observation]:
    device, part = "", ""
    states: dict[str, dict[str, tuple[str, Line]]] = {}
    for line in lines:
        row = _ROW.match(line.text.strip())
        if row is None:
            continue
        label, said = row[1].strip(), row[2].strip()
        if label == "Device ID":
            device, part = (said if said.isdigit() and len(said) < 5 else ""), ""
            if device:
                states.setdefault(device, {})
        elif label and (named := _PART.fullmatch(label)):
            part = named[1].lower()
        if not device or not part:
            continue
        if said.startswith("Status: "):
            states[device][part] = _HEALTH.get(said.removeprefix("Status: ").strip().lower(), "unknown"), line
        elif limit := _THRESHOLD.match(said):
            _limit(emit, device, part, limit, line)
    if not states:
        return emit.failed("the table is cut, or lists no GPU")
    for name, parts in states.items():
        _verdict(emit, name, parts)
    return emit.out


def _limit(emit: VendorEmitter, device: str, part: str, limit: re.Match[str], line: Line) -> None:
    fact = _LIMITS.get((part, limit[1]))
    if fact and int(limit[2]):  # a limit of 0 is none
        emit.fact(fact, _named(emit, device), int(limit[2]), line.number, line.text)


def _named(emit: VendorEmitter, device: str) -> Subject:
    return gpu(f"{VENDOR}:{device}", emit.context.host)


def _verdict(emit: VendorEmitter, name: str, parts: Mapping[str, tuple[str, Line]]) -> None:
    subject = emit.device(name)
    found = {state for state, _ in parts.values()}
    worst = next((word for word in _WORST if word in found), "unknown")
    first = next((line for state, line in parts.values() if state == worst), None)
    at, text = (first.number, first.text) if first else (None, "")
    emit.fact("gpu.health.state", subject, worst, at, text)
    bad = tuple(sorted(part for part, (state, _) in parts.items() if state in ("warning", "critical")))
    emit.fact("gpu.health.parts", subject, bad, at, text)


FORMAT = DocumentFormat(NAME, "xpu-smi", REVISION, PROVIDES, sniff, parse)
