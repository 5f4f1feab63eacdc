"""``dcgmi dmon``: the columns of its fields, a row a GPU (or MIG instance) and look; every sample counts, up to `SAMPLES`.

The short names of columns are those of DCGM's field table (dcgm_fields.cpp): DRAMA is field 1005, its activity a ratio; XIDER is
the last XID (0: none), which DCGM keeps. A MIG instance has an entity number of DCGM's own, which is neither NVML's instance
id nor its place: divided by 8 (DCGM_MAX_INSTANCES_PER_GPU) it gives its GPU, as DCGM's tests of its cache manager hold.
"""

from __future__ import annotations

import re
from collections import deque

from knowledge.observation import Observation, Scope, Status, Subject, gpu
from knowledge.text import digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._prometheus import number_of
from probes.parse._smi_values import Reading, absent, blank

NAME, REVISION = "dcgmi-dmon", 4
PER_GPU = 8  # entity numbers of instances that DCGM keeps for each GPU
SAMPLES = 600
# column -> fact, factor, whole number
_COLUMNS: dict[str, tuple[str, float, bool]] = {
    "SMCLK": ("gpu.clock.sm", 1, True), "MMCLK": ("gpu.clock.memory", 1, True), "TMPTR": ("gpu.temperature.core", 1, True),
    "MMTMP": ("gpu.temperature.memory", 1, True), "POWER": ("gpu.power.draw", 1, False), "GPUTL": ("gpu.utilization.core", 1, True),
    "MCUTL": ("gpu.utilization.memory", 1, True), "FBUSD": ("gpu.memory.used", 1, True), "GRACT": ("gpu.activity.graphics", 100, False),
    "SMACT": ("gpu.activity.sm", 100, False), "SMOCC": ("gpu.activity.sm_occupancy", 100, False),
    "TENSO": ("gpu.activity.tensor", 100, False), "DRAMA": ("gpu.activity.dram", 100, False), "FP64A": ("gpu.activity.fp64", 100, False),
    "FP32A": ("gpu.activity.fp32", 100, False), "FP16A": ("gpu.activity.fp16", 100, False), "PCITX": ("gpu.pcie.tx", 1e-9, False),
    "PCIRX": ("gpu.pcie.rx", 1e-9, False), "NVLTX": ("gpu.nvlink.tx", 1e-9, False), "NVLRX": ("gpu.nvlink.rx", 1e-9, False),
    # fields 240 to 245: time in ns since the driver was loaded
    "PVIOL": ("gpu.violation.power", 1e-3, True), "TVIOL": ("gpu.violation.thermal", 1e-3, True),
    "SBVIO": ("gpu.violation.sync_boost", 1e-3, True), "BLVIO": ("gpu.violation.board_limit", 1e-3, True),
    "LUVIO": ("gpu.violation.low_utilization", 1e-3, True), "RVIOL": ("gpu.violation.reliability", 1e-3, True),
}  # fmt: skip
_COLUMNS |= {
    "XIDER": ("gpu.xid.last", 1, True),
    "ESVTL": ("gpu.ecc.volatile.corrected.total", 1, True),
    "EDVTL": ("gpu.ecc.volatile.uncorrected.total", 1, True),
    "ESVDV": ("gpu.ecc.volatile.corrected.dram", 1, True),
    "EDVDV": ("gpu.ecc.volatile.uncorrected.dram", 1, True),
    "ESATL": ("gpu.ecc.aggregate.corrected.total", 1, True),
    "URMPS": ("gpu.row_remap.uncorrectable", 1, True),
    "CRMPS": ("gpu.row_remap.correctable", 1, True),
    "EDATL": ("gpu.ecc.aggregate.uncorrected.total", 1, True),
}
_FLAGS = {"RRF": "gpu.row_remap.failure", "RRP": "gpu.row_remap.pending"}  # 0 or 1
# #Entity   GPUTL  POWER    SMACT  TENSO  DRAMA             (columns of bytes are 20 wide, blanks follow the last)
_HEADING = re.compile(r"\s{0,8}#\s{0,8}Entity((?:\s{1,60}[A-Za-z0-9_%./-]{1,24}){1,40})")
# What DCGM reads of a GPU instance or compute instance; power, clocks and links are the whole GPU's.
_PARTS = ("graphics", "sm", "sm_occupancy", "tensor", "dram", "fp64", "fp32", "fp16")
_OF_PARTS = {f"gpu.activity.{part}": f"mig.activity.{part}" for part in _PARTS} | {"gpu.memory.used": "mig.memory.used"}
# GPU 0     99     131.052  0.072  0.010  0.021
# GPU-I 9   0.994  0.062
_ROW = re.compile(r"\s{0,12}(GPU|GPU-I|GPU-CI) (\d{1,4})((?:\s{1,60}\S{1,24}){1,40})")


def sniff(head: str) -> int:
    """96 when one of the first lines is its heading."""
    return 96 if any(_HEADING.fullmatch(line[:1200].rstrip()) for line in head.splitlines()[:30]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Every sample of GPUs and of their MIG instances, in the order in which they were printed; rows of other entities are left
    out, and of compute instances those on a GPU whose GPU instances have rows too."""
    columns: list[str] = []
    rows: dict[tuple[str, int], deque[tuple[list[str], list[str], Line]]] = {}
    for line in lines_of(text):
        if heading := _HEADING.fullmatch(line.text[:1200].rstrip()):
            columns = heading[1].split()
        elif columns and (row := _ROW.fullmatch(line.text[:1200].rstrip())):
            cells, number = row[3].split(), digits(row[2])
            if number is not None and len(cells) == len(columns):
                rows.setdefault((row[1], number), deque(maxlen=SAMPLES)).append((columns, cells, line))
    divided = {number // PER_GPU for kind, number in rows if kind == "GPU-I"}
    kept = [(e, found) for e, found in sorted(rows.items()) if e[0] != "GPU-CI" or e[1] // PER_GPU not in divided]
    return [o for e, found in kept for each in found for o in _row(_subject(*e, context.host), *each, context)]


def _subject(kind: str, number: int, host: str) -> Subject:
    """A GPU by DCGM's number, or an instance by DCGM's entity number on the GPU that holds it."""
    if kind == "GPU":
        return gpu(f"index:{number}", host)
    return Subject(Scope.MIG, f"{kind} {number}", gpu(f"index:{number // PER_GPU}", host))


def _row(subject: Subject, columns: list[str], cells: list[str], line: Line, context: Context) -> list[Observation]:
    out = []
    for column, cell in zip(columns, cells, strict=True):
        if column in _FLAGS:
            fact, reading = _FLAGS[column], _reading(cell, 1, whole=True)
            reading = reading if reading.value is None else Reading(bool(reading.value))
        elif column in _COLUMNS:
            fact, factor, whole = _COLUMNS[column]
            reading = _reading(cell, factor, whole)
        else:
            continue
        if subject.scope is Scope.MIG:
            if fact not in _OF_PARTS:
                continue
            fact = _OF_PARTS[fact]
        out.append(Observation(
            fact, subject, reading.value, reading.status, context.at(NAME, REVISION, line.number),
            excerpt=excerpt(f"{column} {cell}"), detail=reading.detail,
        ))  # fmt: skip
    return out


def _reading(cell: str, factor: float, whole: bool) -> Reading:
    value = number_of(cell)
    if value is None:
        return absent(cell) or Reading(None, Status.FAILED, f"{cell[:40]!r} is no number")
    return blank(value) or Reading(round(value * factor) if whole else float(f"{value * factor:.12g}"))


FORMAT = DocumentFormat(
    NAME,
    "dcgmi dmon",
    REVISION,
    tuple(sorted({*(f for f, _, _ in _COLUMNS.values()), *_FLAGS.values(), *_OF_PARTS.values()})),
    sniff,
    parse,
)
