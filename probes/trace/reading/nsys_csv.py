"""Reports of ``nsys stats --format csv``: the device's trace as a `Trace`, and the sum by kernel as statistics.

Reports: cuda_gpu_trace (``Start (ns),Duration (ns),CorrId,GrdX,...,Strm,Name``) and cuda_gpu_kern_sum
(``Time (%),Total Time (ns),Instances,Avg (ns),...,Name``), by the names of their columns; both were called
gputrace and gpukernsum before 2023. Several reports may stand in one file, with messages of nsys between them.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import numpy as np

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.text import clean
from probes.trace.columns import ABSENT, I64, NO_TEXT, Array, Cat, Group, Strings, Wanted
from probes.trace.model import KernelStat
from probes.trace.names.classify import kernel_class, tensor_core
from probes.trace.reading.nsys_names import possible, reported_copy, table
from probes.trace.reading.reader import LONGEST, Trace

_MOST: Final = 20_000_000  # rows
_LONGEST: Final = 1 << 20  # characters of a line
_UNITS: Final = {"ns": 1, "us": 1000, "μs": 1000, "µs": 1000, "ms": 10**6, "s": 10**9, "nsec": 1, "usec": 1000, "msec": 10**6, "sec": 10**9,
              "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}  # fmt: skip
_COLUMN: Final = re.compile(r"(.+?)\s*\((.+)\)")
_DEVICE: Final = re.compile(r"(.*)\((\d{1,4})\)\s*")  # "NVIDIA H100 80GB HBM3 (0)"


def looks_like_trace(head: bytes) -> bool:
    """Whether a file that begins with `head` holds a cuda_gpu_trace report."""
    return re.search(rb'"?Start(?: \(\w+\))?"?,"?Duration(?: \(\w+\))?"?,"?CorrId"?,', head) is not None


def looks_like_sum(head: bytes) -> bool:
    """Whether a file that begins with `head` holds a cuda_gpu_kern_sum report."""
    return re.search(rb'"?Time ?\(%\)"?,"?Total Time \(\w+\)"?,"?Instances"?,', head) is not None


def read_trace_csv(path: str, wanted: Wanted) -> Trace:
    """A cuda_gpu_trace report: kernels, copies and sets, and nothing of the host.

    InputError when the file cannot be read or holds no such report.
    """
    rows = _Rows()
    head: dict[str, tuple[int, int]] = {}
    for row in _table(path, {"Start", "Duration", "CorrId"}):
        if isinstance(row, dict):
            head = row
        elif head:
            rows.take(row, head)
    if not head:
        raise InputError(
            f"{path} holds no cuda_gpu_trace report", hint="nsys stats --report cuda_gpu_trace --format csv"
        )
    return rows.trace(path, wanted)


def read_sum_csv(path: str) -> tuple[KernelStat, ...]:
    """A cuda_gpu_kern_sum report, in its order. nsys gives the deviation of a sample, this one of the population.

    InputError when the file cannot be read or holds no such report.
    """
    head: dict[str, tuple[int, int]] = {}
    found: list[tuple[str, int, int, int, int, float]] = []
    for row in _table(path, {"Total Time", "Instances"}):
        if isinstance(row, dict):
            head = row
            continue
        cells = {what: _exact(row[at], unit) for what, (at, unit) in head.items() if what != "Name"}
        total, count = cells.get("Total Time"), cells.get("Instances")
        low, high = (cells.get(long, cells.get(short)) for long, short in (("Minimum", "Min"), ("Maximum", "Max")))
        if total is not None and count and count > 0 and low is not None and high is not None:
            spread = float(cells.get("StdDev") or 0) * ((count - 1) / count) ** 0.5
            found.append((clean(row[head["Name"][0]]) or "?", total, count, low, high, spread))
    if not head:
        raise InputError(
            f"{path} holds no cuda_gpu_kern_sum report", hint="nsys stats --report cuda_gpu_kern_sum --format csv"
        )
    every = sum(f[1] for f in found)
    return tuple(
        KernelStat(name, total, count, total / count, low, high, spread, total / every if every else 0.0,
                   kernel_class(name), tensor_core(name))
        for name, total, count, low, high, spread in found
    )  # fmt: skip


def _table(path: str, columns: set[str]) -> Iterator[dict[str, tuple[int, int]] | list[str]]:
    """Headers that hold all of `columns` (as column -> place, and ns or bytes of its unit), each followed by its rows."""
    width = 0
    try:
        with Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = (line.replace("\0", "") for line in file if len(line) <= _LONGEST)
            for count, row in enumerate(csv.reader(lines)):
                if count > _MOST:
                    return
                head = _head(row)
                if columns <= head.keys() and "Name" in head:
                    width = len(row)
                    yield head
                elif width and len(row) == width:
                    yield row
                else:
                    width = 0 if row else width  # another report, or a message
    except (OSError, csv.Error) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _head(row: list[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for at, cell in enumerate(row):
        match = _COLUMN.fullmatch(cell.strip())
        name, unit = (match[1], match[2]) if match else (cell.strip(), "")
        found.setdefault({"Average": "Avg", "Operation": "Name"}.get(name, name), (at, _UNITS.get(unit, 1)))
    return found


def _exact(text: str, unit: int) -> int | None:
    """A printed number in units of `unit` ns or bytes, exactly, to whole ones."""
    try:
        value = Decimal(text.replace(",", "").strip()) * unit
        return int(value.to_integral_value("ROUND_HALF_UP")) if value.is_finite() and abs(value) < 1 << 61 else None
    except (InvalidOperation, ValueError):
        return None


class _Rows:
    """Rows of a device trace as columns."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.numbers = {c: array("q") for c in ("start", "dur", "correlation", "device", "registers", "bytes")}
        self.ids = {c: array("i") for c in ("name", "pid", "tid", "grid", "block")}
        self.cats = array("B")
        self.devices: dict[str, int] = {}  # as printed -> number
        self.skipped = 0

    def take(self, row: list[str], head: dict[str, tuple[int, int]]) -> None:
        start, dur = (_exact(row[head[c][0]], head[c][1]) for c in ("Start", "Duration"))
        if start is None or dur is None:
            self.skipped += 1
            return
        self.numbers["start"].append(start)
        self.numbers["dur"].append(dur)
        self.numbers["correlation"].append(self.number(row, head, "CorrId"))
        self.numbers["registers"].append(self.number(row, head, "Reg/Trd"))
        self.numbers["bytes"].append(self.number(row, head, "Bytes"))  # rounded as it is printed, in MB
        device = self.device(self.cell(row, head, "Device"))
        self.numbers["device"].append(device)
        self.ids["pid"].append(self.strings.id("" if device == ABSENT else str(device)))
        self.ids["tid"].append(self.strings.id(self.cell(row, head, "Strm")))
        for what, prefix in (("grid", "Grd"), ("block", "Blk")):
            sizes = [self.number(row, head, prefix + axis) for axis in "XYZ"]
            self.ids[what].append(NO_TEXT if ABSENT in sizes else self.strings.id(str(sizes)))
        name = self.cell(row, head, "Name") or "?"
        other = reported_copy(name)
        self.ids["name"].append(self.strings.id(other or name))
        self.cats.append(Cat.KERNEL if other is None else Cat.MEMSET if other.startswith("Memset") else Cat.MEMCPY)

    def cell(self, row: list[str], head: dict[str, tuple[int, int]], column: str) -> str:
        return row[head[column][0]].strip() if column in head else ""

    def number(self, row: list[str], head: dict[str, tuple[int, int]], column: str) -> int:
        found = _exact(self.cell(row, head, column), head[column][1] if column in head else 1)
        return int(ABSENT) if found is None else found

    def device(self, text: str) -> int:
        """``NVIDIA H100 80GB HBM3 (0)`` is device 0; names without a number are numbered as they come."""
        if not text:
            return int(ABSENT)
        if text not in self.devices:
            match = _DEVICE.fullmatch(text)
            self.devices[text] = int(match[2]) if match else len(self.devices)
        return self.devices[text]

    def trace(self, path: str, wanted: Wanted) -> Trace:
        trace = Trace(path, self.strings, {}, kind="nsys", events=len(self.cats))
        columns: dict[str, Array] = {c: np.array(v, np.int64) for c, v in self.numbers.items()}
        columns |= {c: np.array(v, np.int32) for c, v in self.ids.items()} | {"cat": np.array(self.cats, np.uint8)}
        columns["stream"] = columns["tid"]
        start: I64 = np.array(self.numbers["start"], np.int64)
        keep = possible(start, start + np.clip(np.array(self.numbers["dur"], np.int64), -1, 1 << 61), LONGEST)
        if gone := self.skipped + int((~keep).sum()):
            trace.notes.append(
                Text(f"{gone} rows have impossible times and were left out", f"{gone} 行的时间不可能，已忽略")
            )
        for group, args in wanted.items():
            parts = [{c: v[keep] for c, v in columns.items()}] if group is Group.GPU else []
            trace.tables[group] = table(parts, args)
        names = [(n, _DEVICE.fullmatch(t)) for t, n in self.devices.items()]
        trace.keys["deviceProperties"] = [
            {"id": n, "name": m[1].strip() if m else t} for (n, m), t in zip(names, self.devices, strict=True)
        ]
        return trace
