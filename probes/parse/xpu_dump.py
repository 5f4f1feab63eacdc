"""``xpu-smi dump`` and ``xpumcli dump``: what Intel's GPUs do over time, a row for each GPU and moment.

Source of the columns: the user guide of intel/xpumanager (doc/smi_user_guide.md) and the option list of its ``dump`` command
(cli/src/comlet_dump.cpp). A time has no date. Where a row has a column for the tile (``-t``), shares are the mean of the
tiles of one moment and memory is their sum; what a tile draws is not what the GPU draws, and is not read. EUs that are idle
have no thread, as SMs without a warp: the rest of the cycles is the share with work (EU array active and stalled).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from knowledge.observation import Clock, Observation, Status, Subject, gpu
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import clean_lines
from probes.parse._smi_values import Reading, absent, not_understood, parse_number
from probes.parse._vendor_emit import NONE_LISTED, VendorEmitter

NAME, REVISION, VENDOR = "xpu-dump", 2, "intel"
# the column and its fact, and whether that is a whole number
_COLUMNS: Mapping[str, tuple[str, bool]] = {
    "gpu utilization (%)": ("gpu.utilization.core", True),
    "average % utilization of all gpu engines": ("gpu.utilization.core", True),
    "gpu power (w)": ("gpu.power.draw", False),
    "gpu frequency (mhz)": ("gpu.clock.graphics", True),
    "gpu core temperature (celsius degree)": ("gpu.temperature.core", True),
    "gpu core temperature (c)": ("gpu.temperature.core", True),
    "gpu memory temperature (celsius degree)": ("gpu.temperature.memory", True),
    "gpu memory used (mib)": ("gpu.memory.used", True),
    "gpu memory bandwidth utilization (%)": ("gpu.activity.dram", False),
    "gpu eu array idle (%)": ("gpu.activity.sm", False),
}
_IDLE = "gpu eu array idle (%)"
# of a GPU from its tiles: the mean, or the sum
_MEAN_OF_TILES = frozenset({"gpu.utilization.core", "gpu.activity.dram", "gpu.activity.sm"})
_OF_TILES = _MEAN_OF_TILES | {"gpu.memory.used"}
PROVIDES = ("node.gpus.intel", "gpu.vendor", *dict.fromkeys(fact for fact, _ in _COLUMNS.values()))
# Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Frequency (MHz)
_HEAD = re.compile(r"Timestamp, ?DeviceId, ?(?=[A-Z])")
# 06:14:46.000,    0, 0.00, 14.61,    0
_ROW = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?, {0,8}(\d{1,3}),(.{1,600})")
_MOST = 200_000  # rows


def sniff(head: str) -> int:
    """95 where a line begins with the columns of the time and the GPU."""
    return 95 if any(_HEAD.match(line) for line in head.splitlines()[:40]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of all rows below a heading."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    columns: Sequence[str] = ()
    devices: dict[str, Subject] = {}
    tiles: dict[tuple[Subject, int, str], list[tuple[str, int]]] = {}  # what the tiles of a GPU told at a moment
    ended = text.count("\n")  # lines
    for line in clean_lines(text)[:_MOST]:
        said = line.text.strip()[:800]
        if _HEAD.match(said):
            columns = [name.strip().lower() for name in said.split(",")[2:]]
            continue
        row = _ROW.fullmatch(said)
        if row is None or not columns:
            continue
        cells = [cell.strip() for cell in row[6].split(",")]
        if len(cells) != len(columns):
            continue  # a row that was cut
        if row[5] not in devices:
            devices[row[5]] = gpu(f"{VENDOR}:{row[5]}", context.host)
            emit.device(row[5])
        at = (int(row[1]) * 3600 + int(row[2]) * 60 + int(row[3])) * 10**9 + int((row[4] or "0").ljust(3, "0")) * 10**6
        if line.number > ended:
            cells.pop()  # what stands last may be half a number
        for name, cell in zip(columns, cells, strict=False):
            if name in _COLUMNS and "tileid" not in columns:
                _put(emit, devices[row[5]], name, cell, line.number, at)
            elif name in _COLUMNS and _COLUMNS[name][0] in _OF_TILES:
                tiles.setdefault((devices[row[5]], at, name), []).append((cell, line.number))
    for (device, at, name), told in tiles.items():
        _put_tiles(emit, device, name, told, at)
    if not devices:
        return emit.failed(NONE_LISTED)
    emit.count(len(devices))
    return emit.out


def _put(emit: VendorEmitter, device: Subject, name: str, cell: str, line: int, at: int) -> None:
    fact, whole = _COLUMNS[name]
    reading = _reading(cell)
    if not reading.ok or not isinstance(reading.value, int | float):
        emit.missing(fact, device, reading.status, reading.detail, line=line, excerpt=f"{name}: {cell}")
        emit.out[-1] = replace(emit.out[-1], at=at, clock=Clock.DAY)
        return
    value = 100 - float(reading.value) if name == _IDLE else float(reading.value)
    emit.fact(fact, device, round(value) if whole else value, line, f"{name}: {cell}", at=at, clock=Clock.DAY)


def _put_tiles(emit: VendorEmitter, device: Subject, name: str, told: Sequence[tuple[str, int]], at: int) -> None:
    """One reading of a GPU from those of its tiles, where each of them is a number."""
    read = [float(r.value) for cell, _ in told if (r := _reading(cell)).ok and isinstance(r.value, int | float)]
    whole = sum(read) / (len(read) or 1) if _COLUMNS[name][0] in _MEAN_OF_TILES else sum(read)
    _put(emit, device, name, f"{whole:.2f}" if len(read) == len(told) else "N/A", told[-1][1], at)


def _reading(cell: str) -> Reading:
    if not cell:
        return Reading(None, Status.UNSUPPORTED, "not told")
    parsed = parse_number(cell)
    if parsed is None:
        return absent(cell) or not_understood(cell, "a number")
    return (
        Reading(float(parsed[0])) if -1e15 < parsed[0] < 1e15 else not_understood(cell, "a number that a GPU can have")
    )


FORMAT = DocumentFormat(NAME, "xpu-smi dump", REVISION, PROVIDES, sniff, parse)
