"""``mthreads-gmi``: Moore Threads GPUs as their driver's tool sees them. It tells of no errors and of no health.

Source of the table: outputs of mthreads-gmi 1.14 to 2.4 in public documents. Each GPU has three lines:

    0    MTT S5000            |00000000:18:00.0    |0%    0MiB(81920MiB)
         Physical      P0     |16x(16x)            |48C   YES
                                                   |      On-die, EDC
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Subject
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import clean_lines
from probes.parse._vendor_emit import CELSIUS, MIB, PERCENT, VendorEmitter, number, text_of

NAME, REVISION, VENDOR = "mthreads-gmi", 1, "moorethreads"
PROVIDES = (
    "node.gpus.moorethreads", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.driver.version", "gpu.utilization.core",
    "gpu.memory.used", "gpu.memory.total", "gpu.temperature.core",
)  # fmt: skip
_HEAD = re.compile(r"mthreads-gmi:(\S{1,24})\s{1,60}Driver Version:(\S{1,40})")
_FIRST = re.compile(
    r"(\d{1,3})\s{1,8}(MTT [\w -]{1,20}?)\s{0,30}\|([0-9a-fA-F:.]{7,16})\s{0,12}\|(\d{1,3}%|N/A)\s{1,8}(\d{1,9}MiB)\((\d{1,9}MiB)\)"
)
_SECOND = re.compile(r"[^|]{0,60}\|\d{1,2}x\(\d{1,2}x\)\s{0,20}\|(\d{1,3}C|N/A)\s")


def sniff(head: str) -> int:
    """100 on the headline."""
    return 100 if _HEAD.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one table."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    head = _HEAD.search(text)
    subject: Subject | None = None
    devices = 0
    for line in clean_lines(text):
        row = line.text.strip()
        if found := _FIRST.match(row):
            devices += 1
            subject = emit.device(found[1], found[3])
            emit.put("gpu.name", subject, text_of(found[2]), line.number, row)
            if head:
                emit.put("gpu.driver.version", subject, text_of(head[2]), line.number, f"driver {head[2]}")
            emit.put("gpu.utilization.core", subject, number(found[4], PERCENT, whole=True), line.number, row)
            emit.put("gpu.memory.used", subject, number(found[5], MIB, whole=True), line.number, row)
            emit.put("gpu.memory.total", subject, number(found[6], MIB, whole=True), line.number, row)
        elif subject is not None and (second := _SECOND.match(row)):
            emit.put("gpu.temperature.core", subject, number(second[1], CELSIUS, whole=True), line.number, row)
            subject = None
    if not devices:
        return emit.failed("the table is cut, or lists no GPU")
    emit.count(devices)
    return emit.out


FORMAT = DocumentFormat(NAME, "mthreads-gmi", REVISION, PROVIDES, sniff, parse)
