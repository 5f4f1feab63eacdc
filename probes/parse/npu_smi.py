"""``npu-smi info``: Huawei's Ascend processors as their driver's tool sees them.

Source of the table: outputs of npu-smi 23 to 26 in public issues (vllm-ascend, HAMi), and the command reference at
hiascend.com for the health states: OK, Warning (general), Alarm (important), Critical, UNKNOWN (the device is not there or
has not started). Each chip has two lines, the first with the card's number, the second with the chip's:

    | 0     Ascend910           | OK            | 178.5       36                0    / 0             |
    | 1     1                   | 0000:9F:00.0  | 0           0    / 0          3195 / 65536         |
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Subject
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import clean_lines
from probes.parse._smi_values import Reading
from probes.parse._vendor_emit import CELSIUS, REFUSED, WATTS, VendorEmitter, number, text_of

NAME, REVISION, VENDOR = "npu-smi", 1, "huawei"
PROVIDES = (
    "node.gpus.huawei", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.driver.version", "gpu.health.state",
    "gpu.power.draw", "gpu.temperature.core", "gpu.utilization.core", "gpu.memory.total", "gpu.memory.used", REFUSED,
)  # fmt: skip
# | npu-smi 25.2.0                   Version: 25.2.0                                               |
_VERSION = re.compile(r"\|\s{0,4}npu-smi\s\S{1,24}\s{1,60}Version:\s(\S{1,24})")
_CARD = re.compile(
    r"\|\s{0,4}(\d{1,3})\s{1,12}([A-Za-z0-9][\w .-]{1,30}?)\s{1,30}\|\s{0,4}(OK|Warning|Alarm|Critical|UNKNOWN|Offline)\s{0,20}"
    r"\|\s{0,4}(-|NA|N/A|\d{1,4}(?:\.\d{1,2})?)\s{1,30}(-|NA|N/A|-?\d{1,3})\s{1,30}\d{1,9}\s{0,8}/\s{0,8}\d{1,9}\s{0,30}\|",
    re.IGNORECASE,
)
_CHIP = re.compile(
    r"\|\s{0,4}(\d{1,3})(?:\s{1,12}(?:\d{1,4}|-))?\s{1,40}\|\s{0,4}([0-9A-Za-z:.]{4,20})\s{0,12}\|\s{0,4}(-|NA|N/A|\d{1,3})\s{1,30}"
    r"(\d{1,9})\s{0,8}/\s{0,8}(\d{1,9})(?:\s{1,30}(\d{1,9})\s{0,8}/\s{0,8}(\d{1,9}))?\s{0,30}\|"
)
_HEALTH = {
    "ok": "ok",
    "warning": "warning",
    "alarm": "alarm",
    "critical": "critical",
    "unknown": "unknown",
    "offline": "unknown",
}
# dcmi module initialize failed. ret is -8005
_ERROR = re.compile(r"(?:dcmi module initialize failed|DrvMngGetConsoleLogLevel failed)[^\n]{0,80}")


def sniff(head: str) -> int:
    """100 for the table, 90 for the sentence that the tool prints instead."""
    if re.search(r"^\|\s{0,4}npu-smi\s", head, re.MULTILINE) or ("| NPU   Name" in head and "Bus-Id" in head):
        return 100
    return 90 if _ERROR.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one table."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    lines = clean_lines(text)
    version = next((found[1] for line in lines if (found := _VERSION.match(line.text.strip()))), "")
    card: tuple[re.Match[str], Line] | None = None
    chips = 0
    for line in lines:
        row = line.text.strip()
        if found := _CARD.match(row):
            card = found, line
        elif card and (chip := _CHIP.match(row)):
            subject = emit.device(f"{card[0][1]}/{chip[1]}", chip[2])
            _card(emit, subject, *card)
            _chip(emit, subject, chip, line)
            if version:
                emit.put("gpu.driver.version", subject, text_of(version), line.number, f"npu-smi version {version}")
            card, chips = None, chips + 1
    if not chips:
        said = _ERROR.search(text)
        return emit.failed(said[0] if said else "the table is cut, or lists no chip")
    emit.count(chips)
    return emit.out


def _card(emit: VendorEmitter, subject: Subject, found: re.Match[str], line: Line) -> None:
    shown = line.text
    emit.put("gpu.name", subject, text_of(_name(found[2])), line.number, shown)
    emit.fact("gpu.health.state", subject, _HEALTH[found[3].lower()], line.number, shown)
    if found[4] != "-":  # the second chip of a card has no power of its own
        emit.put("gpu.power.draw", subject, number(found[4], WATTS), line.number, shown)
    emit.put("gpu.temperature.core", subject, number(found[5], CELSIUS, whole=True), line.number, shown)


def _name(printed: str) -> str:
    """``Ascend910``, and ``Ascend 910B4-1`` of a table that prints the short name."""
    return printed if printed.lower().startswith("ascend") else f"Ascend {printed}"


def _chip(emit: VendorEmitter, subject: Subject, found: re.Match[str], line: Line) -> None:
    emit.put("gpu.utilization.core", subject, number(found[3], {"": 1.0}, whole=True), line.number, line.text)
    used, total = (found[6], found[7]) if found[7] else (found[4], found[5])  # HBM where the chip has it, else its DDR
    for fact, figure in (("gpu.memory.used", used), ("gpu.memory.total", total)):
        emit.put(fact, subject, Reading(int(figure)), line.number, line.text)


FORMAT = DocumentFormat(NAME, "npu-smi info", REVISION, PROVIDES, sniff, parse)
