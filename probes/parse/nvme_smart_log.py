"""``nvme smart-log``, as JSON (``-o json``) or as text: the health log of one NVMe drive.

Keys of the JSON and words of the text are those of nvme-cli 1.x and 2.x (nvme-print-json.c, nvme-print-stdout.c). The
JSON's temperature is in kelvin and it does not name the drive: that is known from the command, or from the file's name.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status
from probes.base import Context, DocumentFormat
from probes.parse._drive_facts import LOG_FACTS, Sheet, count, health_log
from probes.parse._json import loaded

NAME, REVISION = "nvme-smart-log", 1
PROVIDES = LOG_FACTS
_KEYS = ("critical_warning", "avail_spare", "spare_thresh", "media_errors")
# Smart Log for NVME device:nvme0n1 namespace-id:ffffffff
_TITLE = re.compile(r"(?m)^Smart Log for NVME device:\s?(\S{1,40}) namespace-id:", re.IGNORECASE)
_DEVICE = re.compile(r"\bnvme\d{1,4}(?:n\d{1,4})?\b")
# available_spare_threshold               : 10%            temperature                             : 36 °C (309 K)
_LINE = re.compile(r"([A-Za-z][\w ]{2,40}?)\s{0,40}: {0,4}(0x[0-9a-f]{1,8}|-?[\d,]{1,40})\s{0,2}(%|°?C\b)?")
_TEXT = {"available_spare": "avail_spare", "available_spare_threshold": "spare_thresh", "percentage_used": "percent_used",
         "warning temperature time": "warning_temp_time", "critical composite temperature time": "critical_comp_time",
         "thermal management t1 trans count": "thm_temp1_trans_count",
         "thermal management t2 trans count": "thm_temp2_trans_count"}  # fmt: skip


def sniff(head: str) -> int:
    """95 for the JSON's keys or the text's title."""
    if head.lstrip("\ufeff \r\n\t").startswith("{"):
        return 95 if all(f'"{key}"' in head for key in _KEYS) and '"smartctl"' not in head else 0
    return 95 if _TITLE.search(head[:400]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the drive."""
    sheet = Sheet(context, NAME, REVISION)
    titled = _TITLE.search(text[:400])
    named = _DEVICE.search(context.source)
    subject = sheet.drive(titled[1] if titled else named[0] if named else "nvme")
    log = _lines(text) if titled else _json(text)
    if log is None:
        if not sniff(text[:65536]):
            return []
        why = "the JSON document is cut or not well formed"
        sheet.put("drive.warning.reliability", subject, None, "", Status.FAILED, why)
    else:
        health_log(sheet, subject, log)
    return sheet.out


def _json(text: str) -> dict[str, object] | None:
    start = text.find("{")
    try:
        found = loaded(text[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(key in found for key in _KEYS):
        return None
    kelvin = count(found.get("temperature"))
    return {**found, "celsius": float(kelvin - 273) if kelvin is not None and kelvin > 200 else None}


def _lines(text: str) -> dict[str, object]:
    log: dict[str, object] = {}
    for line in text.splitlines()[:80]:
        found = _LINE.match(line.strip())
        if found is None:
            continue
        name, value = found[1].strip().lower(), found[2]
        number = int(value, 16) if value.startswith("0x") else count(value)
        if name == "temperature" and number is not None and found[3]:
            log["celsius"] = float(number)
        else:
            log.setdefault(_TEXT.get(name, name), number)
    return log


FORMAT = DocumentFormat(NAME, "nvme smart-log", REVISION, PROVIDES, sniff, parse)
