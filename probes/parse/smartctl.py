"""``smartctl -x`` (or ``-a``, ``-H``), with ``-j`` or without: what a SATA, SAS or NVMe drive says of its health.

Keys are those that smartctl 7.0 and later print (atacmds/scsiprint/nvmeprint.cpp of smartmontools; ``json_format_version``
1.0); the text is read into the same keys. Attribute numbers: 5 reallocated, 197 pending, 198 uncorrectable, 199 transfer errors. Bits of the exit status:
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

NAME, REVISION = "smartctl", 2
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


# smartctl 7.2 2020-12-30 r5155 [x86_64-linux-5.15.0-119-generic] (local build)
_BANNER = re.compile(r"(?m)^smartctl (?:pre-)?\d{1,2}\.\d{1,3} \d{4}-\d\d-\d\d .{0,200}$")
# Percentage Used:                    3%            SMART overall-health self-assessment test result: FAILED!
_LINE = re.compile(r"([A-Z][\w ./-]{2,60}):\s{1,40}(\S.{0,200}?)\s{0,20}")
#   5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0
#   5 Reallocated_Sector_Ct   PO--CK   100   100   010    -    0                      of -x
_ATTRIBUTE = re.compile(
    r"\s{0,4}(\d{1,3}) ([\w/-]{3,60})\s{1,30}(0x[0-9a-f]{4}|[PO.SRCK-]{6,7})\s{1,8}(?:\d{3}\s{1,8}){2}(?:\d{3}|---)\s{1,8}"
    r"(?:(Pre-fail|Old_age)\s{1,8}\w{4,12}\s{1,12})?(-|FAILING_NOW|In_the_past|NOW|Past)\s{1,12}((\d{1,20}).{0,60})"
)
_HEALTH = ("SMART overall-health self-assessment test result", "SMART Health Status")
_DEVICE = re.compile(r"\bsmartctl(?: [\w=,.-]{1,40}){0,8} (/dev/[\w/.-]{1,60})")
_NAMED = re.compile(r"(?<![A-Za-z0-9])(sd[a-z]{1,2}|nvme\d{1,3}(?:n\d{1,3})?)(?![A-Za-z0-9])")
_LOG = {
    "Available Spare": "available_spare",
    "Available Spare Threshold": "available_spare_threshold",
    "Percentage Used": "percentage_used",
    "Media and Data Integrity Errors": "media_errors",
    "Error Information Log Entries": "num_err_log_entries",
    "Unsafe Shutdowns": "unsafe_shutdowns",
    "Power On Hours": "power_on_hours",
    "Temperature": "temperature",
    "Warning  Comp. Temperature Time": "warning_temp_time",
    "Critical Comp. Temperature Time": "critical_comp_time",
}


def sniff(head: str) -> int:
    """95 for the JSON of smartctl about a device, or for its banner with a word of the drive's health."""
    if not head.lstrip("\ufeff \r\n\t").startswith("{"):
        return 95 if _BANNER.search(head) and any(f"{word}:" in head for word in (*_HEALTH, "Critical Warning")) else 0
    return 95 if '"json_format_version"' in head and '"smartctl"' in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the drive, or why it did not tell them."""
    if _BANNER.search(text):
        return _printed(text, Sheet(context, NAME, REVISION), context)
    try:
        found = loaded(text)
    except (ValueError, RecursionError):
        found = None
    sheet = Sheet(context, NAME, REVISION)
    if not isinstance(found, dict) or "smartctl" not in found:
        if sniff(text[:65536]):
            why = "the JSON document is cut or not well formed"
            sheet.put("drive.healthy", sheet.drive(""), None, "", Status.FAILED, why)
        return sheet.out
    device = _map(found.get("device"))
    name = device.get("name")
    if isinstance(name, str) and name:
        _drive(sheet, sheet.drive(name), found)
    return sheet.out


def _printed(text: str, sheet: Sheet, context: Context) -> list[Observation]:
    """Facts of each drive that the text tells of. Its name stands only in the command or in the name of the file; else it is the serial number."""
    starts = [m.start() for m in _BANNER.finditer(text)]
    asked = _DEVICE.search(text) or _NAMED.search(context.source.rpartition("/")[2])
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        found = _read(text[start:end])
        serial = found.get("serial_number")
        name = asked[1] if asked and len(starts) == 1 else serial if isinstance(serial, str) else ""
        _drive(sheet, sheet.drive(name), found)
    return sheet.out


def _read(text: str) -> Mapping[str, Any]:
    """The keys of the JSON for what one text tells."""
    found: dict[str, Any] = {}
    log: dict[str, object] = {}
    rows: list[Mapping[str, Any]] = []
    for raw in text.splitlines():
        line = clean(raw[:400]).rstrip()
        if row := _ATTRIBUTE.fullmatch(line):
            failed = {"FAILING_NOW": "now", "NOW": "now"}.get(row[5], "")
            early = row[4] == "Pre-fail" or (row[4] is None and row[3].startswith("P"))
            rows.append(
                {
                    "id": int(row[1]),
                    "name": row[2],
                    "when_failed": failed,
                    "flags": {"prefailure": early},
                    "raw": {"value": int(row[7]), "string": row[6]},
                }
            )
        elif pair := _LINE.fullmatch(line):
            key, value = pair[1], pair[2]
            if key in _HEALTH:
                found["smart_status"] = {"passed": value.rstrip("!") in ("PASSED", "OK")}
            elif key in ("Device Model", "Model Number", "Product"):
                found["model_name"] = value
            elif key == "Firmware Version":
                found["firmware_version"] = value
            elif key == "Serial Number":
                found["serial_number"] = value
            elif key == "Critical Warning" and re.fullmatch(r"0x[0-9a-fA-F]{1,4}", value):
                log["critical_warning"] = int(value, 16)
            elif key in _LOG:
                log[_LOG[key]] = value.split()[0].rstrip("%")
            elif key == "Elements in grown defect list":
                found["scsi_grown_defect_list"] = value
    if rows:
        found["ata_smart_attributes"] = {"table": rows}
    if "critical_warning" in log:
        found["nvme_smart_health_information_log"] = log
    return found


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


FORMAT = DocumentFormat(NAME, "smartctl", REVISION, PROVIDES, sniff, parse)
