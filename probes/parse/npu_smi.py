"""``npu-smi info``: Huawei's Ascend processors as their driver's tool sees them.

Source of the table: outputs of npu-smi 23 to 26 in public issues (vllm-ascend, HAMi), and the command reference at
hiascend.com for the health states: OK, Warning (general), Alarm (important), Critical, UNKNOWN (the device is not there or
has not started). Each chip has two lines, the first with the card's number, the second with the chip's:

    | 0     Ascend910           | OK            | 178.5       36                0    / 0             |
    | 1     1                   | 0000:9F:00.0  | 0           0    / 0          3195 / 65536         |

``npu-smi info -t health|ecc -i N`` prints one value a line; the number of the chip stands below the values of that chip:

        NPU ID                         : 3
        HBM Double Bit Error Count     : 0
        Chip ID                        : 0
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Subject
from knowledge.text import digits
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import clean_lines
from probes.parse._smi_values import Reading
from probes.parse._vendor_emit import CELSIUS, REFUSED, WATTS, VendorEmitter, number, text_of

NAME, REVISION, VENDOR = "npu-smi", 2, "huawei"
PROVIDES = (
    "node.gpus.huawei", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.driver.version", "gpu.health.state", "gpu.health.parts",
    "gpu.power.draw", "gpu.temperature.core", "gpu.utilization.core", "gpu.memory.total", "gpu.memory.used",
    "gpu.ras.corrected", "gpu.ras.uncorrected", REFUSED,
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


#         HBM Double Bit Error Count     : 0        Health Status                  : OK
_VALUE = re.compile(
    r"\s{1,24}(NPU ID|Chip ID|Health(?: Status)?|Error Code|Error Information|(?:HBM|DDR) (?:Single|Double) Bit Error Count)\s{0,40}: (.{1,200}?)\s{0,20}"
)
_ASKED = re.compile(r"\bnpu-smi info -t (?:health|ecc)\b[^\n]{0,40}?-i (\d{1,3})(?: -c (\d{1,3}))?")


def sniff(head: str) -> int:
    """100 for the table, 90 for the sentence that the tool prints instead, 95 for values of one chip."""
    if re.search(r"^\|\s{0,4}npu-smi\s", head, re.MULTILINE) or ("| NPU   Name" in head and "Bus-Id" in head):
        return 100
    if _values(clean_lines(head)[:400]):
        return 95
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
    told = _values(lines)
    for values in told:
        _told(emit, values, _ASKED.search(text) if len(told) == 1 else None)
    if not chips and not told:
        said = _ERROR.search(text)
        return emit.failed(said[0] if said else "the table is cut, or lists no chip")
    if chips:
        emit.count(chips)
    return emit.out


def _values(lines: list[Line]) -> list[dict[str, tuple[str, Line]]]:
    """The values of each chip, by their names; of text without a health or a counter none."""
    found: list[dict[str, tuple[str, Line]]] = []
    for line in lines:
        if (value := _VALUE.fullmatch(line.text[:300])) is None:
            continue
        name = value[1].removesuffix(" Status")
        if not found or name in found[-1]:
            kept = {key: found[-1][key] for key in ("NPU ID",) if found and key in found[-1] and name != "NPU ID"}
            found.append(kept)
        found[-1][name] = value[2], line
    return [values for values in found if any(name == "Health" or name.endswith("Count") for name in values)]


def _told(emit: VendorEmitter, values: dict[str, tuple[str, Line]], asked: re.Match[str] | None) -> None:
    """Health and errors of one chip."""
    npu = values["NPU ID"][0] if "NPU ID" in values else asked[1] if asked else "-"
    chip = values["Chip ID"][0] if "Chip ID" in values else (asked[2] if asked else None) or "0"
    subject = emit.device(f"{npu}/{chip}")
    if "Health" in values and (state := _HEALTH.get(values["Health"][0].lower())):
        emit.fact("gpu.health.state", subject, state, values["Health"][1].number, f"Health: {values['Health'][0]}")
        said = [values[name] for name in ("Error Information", "Error Code") if name in values]
        if parts := [text for text, _ in said if text not in ("0", "NA", "N/A", "-", "None")]:
            emit.fact("gpu.health.parts", subject, (" ".join(parts)[:200],), said[0][1].number, said[0][1].text.strip())
    for word, fact in (("Single", "gpu.ras.corrected"), ("Double", "gpu.ras.uncorrected")):
        counted = {name: value for name, (value, _) in values.items() if f" {word} " in name}
        counts = [count for value in counted.values() if (count := digits(value)) is not None]
        if counts and len(counts) == len(counted):
            emit.fact(
                fact,
                subject,
                sum(counts),
                values[next(iter(counted))][1].number,
                ", ".join(f"{k} {v}" for k, v in counted.items()),
            )


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
