"""Scrolling tables of ``nvidia-smi dmon`` and ``nvidia-smi pmon``: the last sample of each row counts, and of what tells
work from waiting every sample, up to `SAMPLES` of each GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from knowledge.observation import Subject, gpu
from knowledge.text import digits
from probes.base import Line
from probes.parse._smi_emit import Emitter
from probes.parse._smi_fields import celsius, count, gigabytes_per_second, mebibytes, megahertz, percent, watts
from probes.parse._smi_values import Convert, Reading, absent, boolean, quantity, unitless

_share = quantity({"%": 1})
_gpm_rate = quantity({"MiB/s": 2**20 / 1e9})  # NVML counts MiB/s here, whatever the heading calls them


# dmon column -> fact, how it is read, the unit of its second heading line
_DMON: dict[str, tuple[str, Convert, str]] = {
    "pwr": ("gpu.power.draw", watts, "W"),
    "gtemp": ("gpu.temperature.core", celsius, "C"),
    "mtemp": ("gpu.temperature.memory", celsius, "C"),
    "sm": ("gpu.utilization.core", percent, "%"),
    "mem": ("gpu.utilization.memory", percent, "%"),
    "enc": ("gpu.utilization.encoder", percent, "%"),
    "dec": ("gpu.utilization.decoder", percent, "%"),
    "jpg": ("gpu.utilization.jpeg", percent, "%"),
    "ofa": ("gpu.utilization.ofa", percent, "%"),
    "mclk": ("gpu.clock.memory", megahertz, "MHz"),
    "pclk": ("gpu.clock.sm", megahertz, "MHz"),
    "fb": ("gpu.memory.used", mebibytes, "MiB"),
    "bar1": ("gpu.bar1.used", mebibytes, "MiB"),
    # "number of aggregated single bit, double bit ecc errors" (nvidia-smi dmon -h)
    "sbecc": ("gpu.ecc.aggregate.corrected.total", count, ""),
    "dbecc": ("gpu.ecc.aggregate.uncorrected.total", count, ""),
    "pci": ("gpu.pcie.replay", count, ""),
    "rxpci": ("gpu.pcie.rx", gigabytes_per_second, "MB/s"),
    "txpci": ("gpu.pcie.tx", gigabytes_per_second, "MB/s"),
    "pviol": ("gpu.violation.power.share", percent, "%"),
    "tviol": ("gpu.violation.thermal.now", boolean, ""),
}
# --gpm-metrics (Hopper and newer): heading "GPM:%", a dash until two samples are there
_GPM: dict[str, tuple[str, Convert, str]] = {
    "gract": ("gpu.activity.graphics", _share, "%"),
    "smutil": ("gpu.activity.sm", _share, "%"),
    "smocc": ("gpu.activity.sm_occupancy", _share, "%"),
    "mmaact": ("gpu.activity.tensor", _share, "%"),
    "dram": ("gpu.activity.dram", _share, "%"),
    "fp64": ("gpu.activity.fp64", _share, "%"),
    "fp32": ("gpu.activity.fp32", _share, "%"),
    "fp16": ("gpu.activity.fp16", _share, "%"),
    "pcirx": ("gpu.pcie.rx", _gpm_rate, "MiB/s"),
    "pcitx": ("gpu.pcie.tx", _gpm_rate, "MiB/s"),
    "nvlrx": ("gpu.nvlink.rx", _gpm_rate, "MiB/s"),
    "nvltx": ("gpu.nvlink.tx", _gpm_rate, "MiB/s"),
}
_DMON |= _GPM
_WORK = frozenset({"pwr", "sm", "mem", "pclk", "fb", "rxpci", "txpci", "pviol", "tviol", *_GPM})
SAMPLES = 600  # ten minutes of a sample a second
_PMON = ("process.gpu_utilization", "process.uses_gpu", "process.gpu_memory", "process.name", "process.gpu_contexts")
_COLUMNS = {*_DMON, "pid", "ccpm"}
PROVIDES = (*dict.fromkeys(fact for fact, _, _ in _DMON.values()), *_PMON, "gpu.processes", "gpu.readings.failed")


def heading(text: str) -> list[str] | None:
    """Column names of a ``# gpu ...`` line, with commas (--format csv) or without; None for other lines."""
    words = text.replace("#", " ").replace(",", " ").lower().split() if text.lstrip().startswith("#") else []
    known = len(words) >= 2 and words[0] in ("gpu", "date", "time") and "gpu" in words and _COLUMNS & set(words)
    return words if known else None


def monitor(emit: Emitter, lines: Sequence[Line]) -> bool:
    """Facts of a dmon or pmon listing; False when `lines` hold none."""
    columns: list[str] = []
    comma: str | None = None
    latest: dict[tuple[int, str], tuple[dict[str, str], Line]] = {}
    before: dict[int, deque[tuple[dict[str, str], Line]]] = {}
    empty: dict[int, Line] = {}
    programs: dict[int, dict[str, deque[tuple[dict[str, str], Line]]]] = {}
    for line in lines:
        if (words := heading(line.text)) is not None:
            columns, comma = words, "," if "," in line.text else None
        elif columns and not line.text.lstrip().startswith("#"):
            cells = line.text.split(comma, len(columns) - 1)
            row = dict(zip(columns, (c.strip() for c in cells), strict=False))
            number = digits(row.get("gpu", ""))
            if number is None or len(cells) < len(columns) - 1:
                continue
            if "pid" in row and digits(row["pid"]) is None:
                empty[number] = line
            else:
                key = (number, row.get("pid", ""))
                if key[1]:
                    programs.setdefault(number, {}).setdefault(key[1], deque(maxlen=SAMPLES)).append((row, line))
                if key in latest and not key[1]:
                    before.setdefault(number, deque(maxlen=SAMPLES)).append(latest[key])
                latest[key] = (row, line)
    for (number, pid), (row, line) in latest.items():
        subject = gpu(f"index:{number}", emit.host)
        if pid:
            _process(emit, subject, row, line)
        else:
            for earlier, its_line in before.get(number, ()):
                _device(emit, subject, earlier, its_line, _WORK)
            _device(emit, subject, row, line)
    told = any(
        digits(row.get("sm", "")) is not None for its in programs.values() for found in its.values() for row, _ in found
    )
    for number, its in programs.items() if told else ():
        for row, line in _together(its):
            _device(emit, gpu(f"index:{number}", emit.host), row, line, frozenset({"sm", "mem"}))
    for number in empty:
        if not any(key[0] == number for key in latest):
            emit.no_processes(gpu(f"index:{number}", emit.host))
    return bool(columns)


def _together(programs: dict[str, deque[tuple[dict[str, str], Line]]]) -> Iterator[tuple[dict[str, str], Line]]:
    """What a GPU does, look by look: what its programs do together, which take turns on it. A dash is that of a program that did
    nothing, where the listing has figures at all."""
    for looks in zip(*programs.values(), strict=False):
        sums = {
            name: sum(digits(row.get(name, "")) or 0 for row, _ in looks)
            for name in ("sm", "mem")
            if name in looks[0][0]
        }
        yield {name: str(min(100, value)) for name, value in sums.items()}, looks[-1][1]


def _device(
    emit: Emitter, subject: Subject, row: dict[str, str], line: Line, only: frozenset[str] = frozenset(_DMON)
) -> None:
    for column, (fact, convert, unit) in _DMON.items():
        if column in row and column in only:
            emit.add(fact, subject, unitless(convert, unit)(row[column]), line.number, line.text)


def _process(emit: Emitter, holder: Subject, row: dict[str, str], line: Line) -> None:
    memory: Reading | None = None
    if "fb" in row:
        memory = unitless(mebibytes, "MiB")(row["fb"])
    emit.process(row["pid"], holder, memory or Reading(None, *_NO_MEMORY), name=row.get("command"),
                 kind=row.get("type", ""), line=line.number, excerpt=line.text)  # fmt: skip
    if "sm" in row:
        reading = absent(row["sm"]) or unitless(percent, "%")(row["sm"])
        emit.share(row["pid"], reading, line.number, line.text)


_NO_MEMORY = (absent("N/A") or Reading()).status, "this view has no memory column (pmon -s m shows it)"
