"""``nvidia-smi mig -lgi``, ``-lci`` and ``-lgip``: GPU instances, compute instances, and the profiles that can be made.

All three list GPUs in MIG mode alone. A MIG device, as CUDA and NVML count them, is a compute instance.
"""

from __future__ import annotations

import re
from collections import defaultdict

from knowledge.observation import Observation, gpu
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "nvidia-smi-mig", 1
PROVIDES = ("gpu.mig.mode", "gpu.mig.devices")
# | GPU instances:                                        |        | Compute instances: ...        | GPU instance profiles: ...
_TITLE = re.compile(r"\|\s{1,8}(GPU instances|Compute instances|GPU instance profiles):\s{1,120}\|\s{0,8}")
# |   0  MIG 3g.40gb          9        1          4:4     |        |   0      1       MIG 1c.3g.20gb       0         0     |
_ROW = re.compile(
    r"\|\s{1,8}(\d{1,4})(?:\s{1,12}\d{1,4})?\s{1,12}MIG (?:\d{1,2}c\.)?\d{1,2}g\.\d{1,4}gb\S{0,12}\s.{1,120}\|\s{0,8}"
)


def sniff(head: str) -> int:
    """94 for the title of one of the three tables."""
    return 94 if any(_TITLE.fullmatch(clean(line.text[:240])) for line in lines_of(head)[:30]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """That each GPU listed is in MIG mode; of compute instances how many it has."""
    title = ""
    rows: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines_of(text):
        told = clean(line.text[:240])
        if found := _TITLE.fullmatch(told):
            title = found[1]
        elif title and (row := _ROW.fullmatch(told)) and (index := digits(row[1])) is not None:
            rows[title, index].append(line)
    out = []
    for (kind, index), lines in rows.items():
        subject, at = gpu(f"index:{index}", context.host), context.at(NAME, REVISION, lines[0].number)
        shown = excerpt(clean(lines[0].text.strip()))
        out.append(Observation("gpu.mig.mode", subject, True, source=at, excerpt=shown))
        if kind == "Compute instances":
            out.append(Observation("gpu.mig.devices", subject, len(lines), source=at, excerpt=shown))
    return out


FORMAT = DocumentFormat(NAME, "nvidia-smi mig -lgi, -lci, -lgip", REVISION, PROVIDES, sniff, parse)
