"""``hl-smi``: Gaudi accelerators as Habana's tool sees them.

Source of the table: outputs of hl-smi 1.12 to 1.24 in public documents, and the tool's guide at docs.habana.ai. Each
accelerator has two lines; the last cell of the first counts errors that could not be corrected since the driver was loaded:

    |   0  HL-225              N/A  | 0000:09:00.0     N/A |                   0  |
    | N/A   26C   N/A    87W / 600W |    768MiB / 98304MiB |     0%           N/A |

``hl-smi -Q NAME,... -f csv`` looks like a query of nvidia-smi, with names of its own (``temperature.aip``) and Gaudis in its rows.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Subject
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import clean_lines
from probes.parse._smi_values import Reading
from probes.parse._vendor_emit import CELSIUS, MIB, PERCENT, PLAIN, WATTS, VendorEmitter, number, text_of

NAME, REVISION, VENDOR = "hl-smi", 2, "habana"
PROVIDES = (
    "node.gpus.habana", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.driver.version", "gpu.ras.uncorrected",
    "gpu.temperature.core", "gpu.power.draw", "gpu.power.limit", "gpu.memory.used", "gpu.memory.total", "gpu.utilization.core",
)  # fmt: skip
_DRIVER = re.compile(r"\|\s{0,4}Driver Version:\s{1,60}(\S{1,40})")
_FIRST = re.compile(
    r"\|\s{0,8}(\d{1,3})\s{1,4}(HL-[\w-]{1,16})\s{1,30}\S{1,8}\s{1,4}\|\s{0,4}([0-9a-fA-F:.]{4,16})\s{1,12}\S{1,6}\s{1,4}"
    r"\|\s{1,30}(\d{1,12}|N/A|ERR!?)\s{1,8}\|"
)
_SECOND = re.compile(
    r"\|\s{0,8}\S{1,8}\s{1,6}(N/A|-?\d{1,3}C)\s{1,6}\S{1,6}\s{1,8}(N/A|\d{1,5}W)\s{0,4}/\s{0,4}(N/A|\d{1,5}W)\s{0,4}\|"
    r"\s{1,12}(\d{1,9}MiB)\s{0,4}/\s{0,4}(\d{1,9}MiB)\s{0,4}\|\s{1,12}(N/A|\d{1,3}%)"
)


# index, name, bus_id, temperature.aip [C], memory.used [MiB], ecc.errors.uncorrected.aggregate.total
_COLUMN = re.compile(r"[a-z][a-z_.-]{2,60}(?: \[[^\]]{1,8}\])?")
_GAUDI = re.compile(r"HL-\d{3}[\w-]{0,12}")
_QUERIED = {
    "driver_version": "gpu.driver.version", "name": "gpu.name", "temperature.aip": "gpu.temperature.core", "power.draw": "gpu.power.draw",
    "memory.total": "gpu.memory.total", "memory.used": "gpu.memory.used", "utilization.aip": "gpu.utilization.core",
    "ecc.errors.uncorrected.volatile.total": "gpu.ras.uncorrected",
}  # fmt: skip
_AGGREGATE = "ecc.errors.uncorrected.aggregate.total"
_UNITS = {
    "gpu.temperature.core": CELSIUS, "gpu.power.draw": WATTS, "gpu.memory.total": MIB, "gpu.memory.used": MIB,
    "gpu.utilization.core": PERCENT, "gpu.ras.uncorrected": PLAIN,
}  # fmt: skip


def sniff(head: str) -> int:
    """100 on the headline of the table, 97 on a query with a Gaudi in its rows."""
    if re.search(r"^\s{0,8}\|\s{0,4}HL-SMI Version:", head, re.MULTILINE):
        return 100
    return 97 if _GAUDI.search(head) and _rows(clean_lines(head)) else 0


def _rows(lines: list[Line]) -> list[tuple[dict[str, str], Line]]:
    """The rows of a query by their columns' names, of Gaudis only."""
    names: list[str] = []
    found: list[tuple[dict[str, str], Line]] = []
    for line in lines:
        cells = [cell.strip() for cell in line.text[:2000].split(",")]
        if len(cells) > 1 and all(map(_COLUMN.fullmatch, cells)):
            names = [cell.partition(" [")[0] for cell in cells]
        elif len(cells) == len(names) and any(map(_GAUDI.fullmatch, cells)):
            found.append((dict(zip(names, cells, strict=True)), line))
    return found


def _queried(emit: VendorEmitter, index: int, row: dict[str, str], line: Line) -> None:
    subject = emit.device(row.get("index", str(index)), row.get("bus_id", ""))
    for name, fact in _QUERIED.items():
        if name in row:
            units = _UNITS.get(fact)
            reading = text_of(row[name]) if units is None else number(row[name], units, whole=fact != "gpu.power.draw")
            emit.put(fact, subject, reading, line.number, line.text.strip())
    if _AGGREGATE in row and "ecc.errors.uncorrected.volatile.total" not in row:
        counted = number(row[_AGGREGATE], PLAIN, whole=True)
        if counted.value:  # over the life of the card: whether since the driver was loaded, it does not tell
            why = f"{counted.value} over the life of the card; of how many since the driver was loaded this query does not tell"
            counted = Reading(None, Status.UNSUPPORTED, why)
        emit.put("gpu.ras.uncorrected", subject, counted, line.number, line.text.strip())


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one table."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    lines = clean_lines(text)
    version = next((found[1] for line in lines if (found := _DRIVER.match(line.text.strip()))), "")
    subject: Subject | None = None
    devices = 0
    for line in lines:
        row = line.text.strip()
        if found := _FIRST.match(row):
            devices += 1
            subject = emit.device(found[1], found[3])
            emit.put("gpu.name", subject, text_of(found[2]), line.number, row)
            emit.put("gpu.ras.uncorrected", subject, number(found[4], PLAIN, whole=True), line.number, row)
            if version:
                emit.put("gpu.driver.version", subject, text_of(version), line.number, f"driver {version}")
        elif subject is not None and (found := _SECOND.match(row)):
            _second(emit, subject, found, line)
            subject = None
    for index, (cells, line) in enumerate(_rows(lines) if not devices else ()):
        devices += 1
        _queried(emit, index, cells, line)
    if not devices:
        return emit.failed("the table is cut, or lists no accelerator")
    emit.count(devices)
    return emit.out


def _second(emit: VendorEmitter, subject: Subject, found: re.Match[str], line: Line) -> None:
    for fact, text, units, whole in (
        ("gpu.temperature.core", found[1], CELSIUS, True), ("gpu.power.draw", found[2], WATTS, False),
        ("gpu.power.limit", found[3], WATTS, False), ("gpu.memory.used", found[4], MIB, True),
        ("gpu.memory.total", found[5], MIB, True), ("gpu.utilization.core", found[6], PERCENT, True),
    ):  # fmt: skip
        emit.put(fact, subject, number(text, units, whole=whole), line.number, line.text)


FORMAT = DocumentFormat(NAME, "hl-smi", REVISION, PROVIDES, sniff, parse)
