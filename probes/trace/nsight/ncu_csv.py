"""The tables that ``ncu --csv`` prints, as metrics of kernels and lines of source, with numbers still as text.

Three layouts are read (Nsight Compute CLI, sections Output Pages and ``--csv``): ``--page details`` and plain
``--metrics`` give one row a metric, ``--page raw`` one row a kernel below a row of units, ``--page source`` one
row a line or instruction. Before and between them stand lines of ``==PROF==`` and of the program itself.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from knowledge.errors import InputError
from knowledge.record import dataclass

MOST_ROWS: Final = 3_000_000
_MOST_KERNELS: Final = 50_000
_LONGEST: Final = 1 << 20  # characters of a line


@dataclass(slots=True)
class Metric:
    """A value as it was printed."""

    text: str
    unit: str


@dataclass(slots=True)
class Line:
    """A row of the source page: counters by their column."""

    file: str
    number: int | None
    address: str
    text: str
    counters: dict[str, str]


@dataclass(slots=True)
class Record:
    """One profiled launch."""

    id: str
    name: str
    columns: dict[str, str] = field(default_factory=dict)  # Grid Size, Block Size, Device, CC, ...
    metrics: dict[str, Metric] = field(
        default_factory=dict
    )  # by name; of two sections' metrics of one name, "name|unit"
    lines: list[Line] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)  # what ncu's own rules said


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with `head` is CSV of ncu: by its column names, or its ==PROF== lines."""
    text = head.replace(b"\x00", b"")  # UTF-16 of a PowerShell redirection
    if b"==PROF==" in text and b"==PROF== Disconnected" not in text.split(b"\n", 1)[0]:
        return True
    if b'"Kernel Name"' in text or b",Kernel Name," in text:
        return any(word in text for word in (b"Metric Name", b"__", b"Section Name", b'"Address"', b'"Line No"'))
    return b"Warp Stall Sampling" in text and b"Source" in text


def records(path: str) -> list[Record]:
    """All launches of the report at `path`, in its order. InputError when it cannot be read or holds none."""
    parser = _Parser()
    try:
        for row in _rows(path):
            parser.take(row)
    except csv.Error as error:
        raise InputError(f"{path} is no CSV: {error}") from error
    if not parser.found:
        raise InputError(f"{path} holds no kernels of Nsight Compute",
                         hint="ncu --csv --page details|raw|source --import report.ncu-rep")  # fmt: skip
    return list(parser.found.values())


def _rows(path: str) -> Iterator[list[str]]:
    try:
        with Path(path).open("rb") as file:
            mark = file.read(4)
        encoding = "utf-16" if mark[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with Path(path).open(encoding=encoding, errors="replace", newline="") as text:
            yield from csv.reader(_lines(text), strict=False)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _lines(text: Iterator[str]) -> Iterator[str]:
    """Lines of tables: neither ncu's own messages nor what is longer than any table is wide."""
    for count, line in enumerate(text):
        if count > MOST_ROWS:
            return
        if not line.startswith("==") and len(line) <= _LONGEST:
            yield line.replace("\0", "")


class _Parser:
    """Row by row; a header decides how the rows behind it are read."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Record] = {}
        self.header: list[str] = []
        self.kind = ""
        self.units: list[str] | None = None
        self.kernel = ""  # of a source page
        self.file = ""
        self.pages = 0

    def take(self, row: list[str]) -> None:
        row = [cell.strip() for cell in row]
        if kind := _kind(row):
            self.header, self.kind, self.units = row, kind, None
            self.pages += kind == "source"
        elif row and row[0] in ("Kernel Name", "Function Name") and 2 <= len(row) <= 4:
            self.kernel, self.kind = row[1], ""
        elif row and row[0] in ("File Name", "File Path") and len(row) >= 2:
            self.file = row[1]
        elif self.kind and len(row) == len(self.header):
            {"long": self.long, "wide": self.wide, "source": self.source}[self.kind](row)

    def record(self, number: str, name: str) -> Record | None:
        found = self.found.get((number, name))
        if found is None and len(self.found) < _MOST_KERNELS:
            found = self.found[number, name] = Record(number, name)
        return found

    def long(self, row: list[str]) -> None:
        cells = dict(zip(self.header, row, strict=True))
        record = self.record(cells.get("ID", ""), cells.get("Kernel Name", ""))
        if record is None:
            return
        if not record.columns:
            record.columns = {k: v for k, v in cells.items() if k in _ABOUT}
        name, metric = cells["Metric Name"], Metric(cells["Metric Value"], cells.get("Metric Unit", ""))
        if name:
            record.metrics.setdefault(f"{name}|{metric.unit}", metric)
            record.metrics.setdefault(name, metric)
        if (said := cells.get("Rule Description", "")) and len(record.rules) < 20:
            record.rules.append(said)

    def wide(self, row: list[str]) -> None:
        cells = dict(zip(self.header, row, strict=True))
        if not cells.get("Kernel Name") and self.units is None:
            self.units = row  # the row below the names
            return
        record = self.record(cells.get("ID", ""), cells.get("Kernel Name", ""))
        if record is None:
            return
        units = self.units or [""] * len(row)
        for name, value, unit in zip(self.header, row, units, strict=True):
            if name in _ABOUT:
                record.columns[name] = value
            elif value:
                record.metrics[name] = Metric(value, unit)

    def source(self, row: list[str]) -> None:
        record = self.record(f"source {self.pages}", self.kernel)
        if record is None:
            return
        cells = dict(reversed(list(zip(self.header, row, strict=True))))  # of two columns "Source" the first
        number = cells.get("Line No", "")
        counters = {k: v for k, v in cells.items() if v and (k in _COUNTERS or k.startswith(_STALLS))}
        if counters:
            address = cells.get("Address", "")
            line = int(number) if number.isdigit() and len(number) < 9 else None
            record.lines.append(Line(self.file, line, address.strip("-"), cells.get("Source", ""), counters))


_ABOUT: Final = frozenset({"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
                           "Stream", "Block Size", "Grid Size", "Device", "CC", "Section Name"})  # fmt: skip
_COUNTERS: Final = frozenset({"Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)", "# Samples",
                              "Sampling Data (All)", "Instructions Executed"})  # fmt: skip
_STALLS: Final = ("stall_", "smsp__pcsamp_warps_issue_stalled_")


def _kind(row: list[str]) -> str:
    names = set(row)
    if {"Metric Name", "Metric Value"} <= names:
        return "long"
    if "Kernel Name" in names and any("__" in name for name in row):
        return "wide"
    return "source" if "Source" in names and names & {"Address", "Line No", "#"} else ""


_COMMA: Final = re.compile(r"-?(?:\d+,\d{1,2}|\d+,\d{4,}|0,\d+|\d{1,3}(?:\.\d{3})+,\d+)")
_POINT: Final = re.compile(r"-?(?:\d+\.\d{1,2}|\d+\.\d{4,}|0\.\d+|\d{1,3}(?:,\d{3})+\.\d+)")


def decimal_comma(found: list[Record]) -> bool:
    """Whether the report writes 1.234,5 for what others write 1,234.5: ncu follows the locale.

    Decided over the whole report, by numbers that can only be read one way; a tie is a point.
    """
    texts = [m.text for record in found[:2000] for m in record.metrics.values()]
    return sum(bool(_COMMA.fullmatch(t)) for t in texts) > sum(bool(_POINT.fullmatch(t)) for t in texts)


def number(text: str, comma: bool) -> float | None:
    """A printed number; None for n/a, nan, infinite, and text."""
    text = text.replace("\u00a0", "").replace("\u202f", "").replace(" ", "")
    text = text.replace(".", "").replace(",", ".") if comma else text.replace(",", "")
    if not text or len(text) > 40 or text.lower().lstrip("+-")[:1] in ("n", "i"):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_SCALES: Final = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10,
                  "Mi": 2.0**20, "Gi": 2.0**30}  # fmt: skip
_UNIT: Final = re.compile(r"([numKMGT]i?)?(second|byte|s|B)(?:/.*)?")


def scaled(value: float, unit: str, base: float = 1.0) -> float | None:
    """A time in seconds, or a size in bytes, times `base`; None when the unit is neither.

    ``us``, ``usecond``, ``Kbyte/block``: both spellings of ncu's versions.
    """
    found = _UNIT.fullmatch(unit)
    return value * _SCALES[found[1] or ""] * base if found else None
