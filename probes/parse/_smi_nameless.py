"""Rows of ``nvidia-smi --query-gpu=... --format=csv,noheader`` without the command that asked for them: which columns tell by themselves
what they are. Those of which several properties look alike (a bare number, a share, a clock, memory that is used or free) stay nameless.

    0, NVIDIA H100 80GB HBM3, 34, 71.20 W, 700.00 W, 0 %, 1 MiB, 81559 MiB, 1980 MHz, P0
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.gpus import candidates
from knowledge.lazy import lazy
from probes.base import Line
from probes.parse._smi_values import LOST, RESET, absent

_UUID = lazy(r"GPU-[0-9a-f]{8}-[0-9a-f-]{20,40}")
_PCI = lazy(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_STAMP = lazy(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_DRIVER = lazy(r"\d{3}\.\d{2,3}\.\d{2}")  # 560.35.03; with one dot it may be watts without their unit
_VBIOS = lazy(r"[\dA-F]{2}(?:\.[\dA-F]{2}){4}")  # 96.00.89.00.01
_MAKER = lazy(r"(?:NVIDIA|Tesla|Quadro|GeForce) \S.{1,80}")
_PSTATE = lazy(r"P(?:1[0-5]|\d)")
_QUANTITY = lazy(r"\d{1,7}(?:\.\d{2})? (MiB|W|MHz|%)")
_DRAW = lazy(r"\d{1,4}\.(?!00)\d\d W")  # limits are whole watts, what is drawn hardly ever
_SAID = (
    "uuid",
    "pci.bus_id",
    "name",
    "pstate",
    "timestamp",
    "driver_version",
    "vbios_version",
)  # kinds that are names of columns, too
_ALONE = ("uuid", "pci.bus_id", "name")  # one such column is enough: nothing else prints them between commas


def rows(lines: Sequence[Line]) -> list[tuple[list[str], Line]]:
    """The cells of each line, where all lines are rows of one such table; none otherwise."""
    found = [([c.strip() for c in line.text.split(",")], line) for line in lines if line.text.strip()]
    if not found or len({len(cells) for cells, _ in found}) > 1:
        return []
    kinds = [[_kind(cell) for cell in cells] for cells, _ in found[:200]]
    if len(kinds[0]) == 1:
        return found if len(kinds) > 1 and all(row == ["name"] for row in kinds) else []
    columns = [{kind for kind in column if kind != "absent"} for column in zip(*kinds, strict=True)]
    if any(len(column) > 1 for column in columns):
        return []  # a column has one kind of value
    own = sum(bool(column & {"pstate", "MiB", "W", "MHz", "%"}) for column in columns)
    return found if own > 1 or any(column & {*_ALONE} for column in columns) else []


def _kind(cell: str) -> str:
    if _UUID.fullmatch(cell):
        return "uuid"
    if _PCI.fullmatch(cell):
        return "pci.bus_id"
    for kind, pattern in (
        ("pstate", _PSTATE),
        ("timestamp", _STAMP),
        ("driver_version", _DRIVER),
        ("vbios_version", _VBIOS),
    ):
        if pattern.fullmatch(cell):
            return kind
    if m := _QUANTITY.fullmatch(cell):
        return m[1]
    if absent(cell) or LOST.search(cell) or RESET.search(cell):
        return "absent"
    if cell.isdigit():
        return "number"
    return "name" if _MAKER.fullmatch(cell) and candidates(cell) else "word"


def names(found: Sequence[tuple[list[str], Line]]) -> tuple[str, ...]:
    """The name of each column, as a query calls it; empty where its values do not tell."""
    columns = list(zip(*(cells for cells, _ in found), strict=True))
    out = [_name(column) for column in columns]
    for one in ("power.draw", "index"):  # average and instant power look alike: the first is as good as the other
        for again in [i for i, name in enumerate(out) if name == one][1:]:
            out[again] = ""
    total = _largest(columns)
    return tuple("memory.total" if i == total else name for i, name in enumerate(out))


def _name(column: Sequence[str]) -> str:
    kinds = {_kind(cell) for cell in column} - {"absent"}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind in _SAID:
        return kind
    if kind == "W" and any(_DRAW.fullmatch(cell) for cell in column):
        return "power.draw"
    counted = len(column) > 1 and list(column) == [str(i) for i in range(len(column))]
    return "index" if counted else ""


def _largest(columns: Sequence[Sequence[str]]) -> int | None:
    """The column of memory that is nowhere less than another one, and more than it somewhere."""
    sizes = {
        i: [int(cell.split()[0]) for cell in column] for i, column in enumerate(columns) if all(c.endswith("MiB") for c in column)
    }  # fmt: skip
    for i, column in sizes.items():
        others = [other for j, other in sizes.items() if j != i]
        if others and all(all(a >= b for a, b in zip(column, o, strict=True)) and column != o for o in others):
            return i
    return None
