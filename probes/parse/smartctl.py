"""``smartctl -j -x`` (or ``-a``): what a SATA, SAS or NVMe drive says of its health, as JSON.

Keys are those that smartctl 7.0 and later print (atacmds/scsiprint/nvmeprint.cpp of smartmontools; ``json_format_version``
1.0). Attribute numbers: 5 reallocated, 197 pending, 198 uncorrectable, 199 transfer errors. Bits of the exit status:
0 and 1 mean that the drive did not answer, 2 that some command failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.observation import Observation, Status, Subject
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse._drive_facts import LOG_FACTS, Sheet, count, health_log
from probes.parse._json import loaded

NAME, REVISION = "smartctl", 1
_ATTRIBUTES = {5: "drive.sectors.reallocated", 197: "drive.sectors.pending", 198: "drive.sectors.uncorrectable",
               199: "drive.cable_errors"}  # fmt: skip
PROVIDES = (
    *LOG_FACTS,
    *_ATTRIBUTES.values(),
    "drive.healthy",
    "drive.model",
    "drive.firmware",
    "drive.attributes.failing",
)
# what the number means on this drive: controllers of some vendors count other things under it
_MEANS = {5: "realloc|retired|bad.?bl", 197: "pending", 198: "uncorrect", 199: "crc"}
_NVME = {
    "available_spare": "avail_spare",
    "available_spare_threshold": "spare_thresh",
    "percentage_used": "percent_used",
}


def sniff(head: str) -> int:
    """95 for the JSON of smartctl about a device."""
    if not head.lstrip("\ufeff \r\n\t").startswith("{"):
        return 0
    return 95 if '"json_format_version"' in head and '"smartctl"' in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the drive, or why it did not tell them."""
    try:
        found = loaded(text)
    except (ValueError, RecursionError):
        found = None
    sheet = Sheet(context, NAME, REVISION)
    if not isinstance(found, dict) or "smartctl" not in found:
        if sniff(text[:65536]):
            why = "the JSON document is cut or not well formed"
            sheet.put("drive.healthy", sheet.drive("-"), None, "", Status.FAILED, why)
        return sheet.out
    device = _map(found.get("device"))
    name = device.get("name")
    if isinstance(name, str) and name:
        _drive(sheet, sheet.drive(name), found)
    return sheet.out


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return " ".join(clean(value).split())[:120] if isinstance(value, str) else ""


def _drive(sheet: Sheet, subject: Subject, found: Mapping[str, Any]) -> None:
    for fact, keys in (
        ("drive.model", ("model_name", "scsi_model_name")),
        ("drive.firmware", ("firmware_version", "scsi_revision")),
    ):
        if text := next((t for key in keys if (t := _text(found.get(key)))), ""):
            sheet.put(fact, subject, text, f"{keys[0]}: {text}")
    passed = _map(found.get("smart_status")).get("passed")
    if isinstance(passed, bool):
        sheet.put("drive.healthy", subject, passed, f"smart_status.passed: {str(passed).lower()}")
    else:
        sheet.put("drive.healthy", subject, None, "", *_why(found))
    log = found.get("nvme_smart_health_information_log")
    degrees = count(_map(found.get("temperature")).get("current"))
    if isinstance(log, dict):
        celsius = count(log.get("temperature"))
        celsius = degrees if celsius is None else celsius
        plain: dict[str, object] = {_NVME.get(str(key), str(key)): value for key, value in log.items()}
        health_log(sheet, subject, {**plain, "celsius": float(celsius) if celsius is not None else None})
        return
    if degrees is not None and degrees < 200:
        sheet.put("drive.temperature", subject, float(degrees), f"temperature.current: {degrees}")
    hours = count(_map(found.get("power_on_time")).get("hours"))
    if hours is not None:
        sheet.put("drive.power_on", subject, float(hours), f"power_on_time.hours: {hours}")
    _attributes(sheet, subject, found)
    _scsi(sheet, subject, found)


def _why(found: Mapping[str, Any]) -> tuple[Status, str]:
    """Why there is no verdict: what smartctl says of it."""
    program = _map(found.get("smartctl"))
    listed = program.get("messages")
    messages = [_text(m.get("string")) for m in (listed if isinstance(listed, list) else []) if isinstance(m, dict)]
    said = next((m for m in messages if m), "")
    if "Permission denied" in said or "Operation not permitted" in said:
        return Status.DENIED, said
    code = count(program.get("exit_status")) or 0
    return (Status.FAILED if code & 3 else Status.UNSUPPORTED), said or "the drive gives no overall verdict"


def _attributes(sheet: Sheet, subject: Subject, found: Mapping[str, Any]) -> None:
    table = _map(found.get("ata_smart_attributes")).get("table")
    rows = [row for row in table if isinstance(row, dict)][:256] if isinstance(table, list) else []
    failing = []
    for row in rows:
        number, raw = count(row.get("id")), count(_map(row.get("raw")).get("value"))
        name = _text(row.get("name")).replace("_", " ")
        if number in _ATTRIBUTES and raw is not None and re.search(_MEANS[number], name, re.IGNORECASE):
            shown = _text(_map(row["raw"]).get("string"))
            # some drives keep other figures in the upper bytes of these four: "8 (0 3)"
            first = re.match(r"\d{1,10}(?= \()", shown)
            value = int(first[0]) if first else raw & 0xFFFFFFFF
            sheet.put(_ATTRIBUTES[number], subject, value, f"{number} {name}: {shown or raw}")
        # an attribute of old age below its threshold predicts no failure: a warm drive has one for its temperature
        if row.get("when_failed") == "now" and _map(row.get("flags")).get("prefailure") is not False:
            failing.append(name or str(number))
    if rows:
        sheet.put("drive.attributes.failing", subject, tuple(sorted(failing)), f"{len(rows)} attributes")


def _scsi(sheet: Sheet, subject: Subject, found: Mapping[str, Any]) -> None:
    """SAS: grown defects, errors that were not corrected, and the endurance of SSDs."""
    grown = count(found.get("scsi_grown_defect_list"))
    if grown is not None:
        sheet.put("drive.sectors.reallocated", subject, grown, f"scsi_grown_defect_list: {grown}")
    log = _map(found.get("scsi_error_counter_log"))
    lost = [count(_map(log.get(way)).get("total_uncorrected_errors")) for way in ("read", "write", "verify")]
    told = [n for n in lost if n is not None]
    if told:
        sheet.put("drive.media_errors", subject, sum(told), f"total_uncorrected_errors: {' '.join(map(str, told))}")
    used = count(found.get("scsi_percentage_used_endurance_indicator"))
    if used is not None:
        sheet.put("drive.wear", subject, float(used), f"scsi_percentage_used_endurance_indicator: {used}")


FORMAT = DocumentFormat(NAME, "smartctl -j", REVISION, PROVIDES, sniff, parse)
