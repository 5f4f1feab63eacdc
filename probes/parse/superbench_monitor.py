"""SuperBench's monitor: one JSON object a line, GPU metrics numbered by device.

Each sample is an observation of the GPU's own facts at the sample's time. ``time`` is wall
clock without a zone. Memory is in bytes (SuperBench reads it from NVML; its table of
metrics says MB, which very old versions printed).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from knowledge.observation import Clock, Observation, Status, gpu
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._json import loaded

NAME = "superbench-monitor"
REVISION = 1
MAX_DEVICES = 64

_KEY = re.compile(r"(gpu_\w{2,60}):(\d{1,3})")
_FACTS = {
    "gpu_usage": ("gpu.utilization.core", int),
    "gpu_temperature": ("gpu.temperature.core", int),
    "gpu_power": ("gpu.power.draw", float),
    "gpu_power_limit": ("gpu.power.limit", float),
    "gpu_corrected_ecc": ("gpu.ecc.volatile.corrected.total", int),
    "gpu_uncorrected_ecc": ("gpu.ecc.volatile.uncorrected.total", int),
    "gpu_remap_correctable_error": ("gpu.row_remap.correctable", int),
    "gpu_remap_uncorrectable_error": ("gpu.row_remap.uncorrectable", int),
    "gpu_remap_max": ("gpu.row_remap.banks.max", int),
    "gpu_remap_high": ("gpu.row_remap.banks.high", int),
    "gpu_remap_partial": ("gpu.row_remap.banks.partial", int),
    "gpu_remap_low": ("gpu.row_remap.banks.low", int),
    "gpu_remap_none": ("gpu.row_remap.banks.none", int),
}
_MEMORY = {"gpu_mem_used": "gpu.memory.used", "gpu_mem_total": "gpu.memory.total"}
BYTES_FROM = 10**7  # no GPU has 10 TB: smaller totals are MB


def sniff(head: str) -> int:
    """95 when the first line is a sample of the monitor; 0 otherwise."""
    sample = _object(head.lstrip().split("\n", 1)[0])
    return 95 if sample and "time" in sample and any(_KEY.fullmatch(key) for key in sample) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Every sample of every GPU."""
    emit = Emitter(NAME, REVISION, context)
    broken: Line | None = None
    samples = 0
    for line in clean_lines(text):
        if not line.text.strip():
            continue
        sample = _object(line.text)
        if sample is None:
            broken = line
            continue
        samples += _sample(emit, sample, line)
    if samples and broken:
        reason = "a line is cut or not JSON"
        emit.missing(
            "benchmark.completed", emit.document, Status.FAILED, reason, line=broken.number, excerpt=broken.text
        )
    if samples:
        _app_bench.named(emit, NAME, None)
    return emit.out


def _object(text: str) -> dict[str, Any] | None:
    text = text.strip()
    if not text.startswith("{"):
        return None
    try:
        data = loaded(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _sample(emit: Emitter, sample: Mapping[str, Any], line: Line) -> int:
    at, clock = _time(sample.get("time"))
    done = 0
    for key, value in sample.items():
        found = _KEY.fullmatch(key)
        if not found or int(found[2]) >= MAX_DEVICES:
            continue
        subject = gpu(f"index:{int(found[2])}", emit.context.host)
        shown = f"{key}: {value!r:.60}"
        if fact := _MEMORY.get(found[1]):
            read: int | float | None = _mebibytes(value, sample.get(f"gpu_mem_total:{found[2]}"))
        elif known := _FACTS.get(found[1]):
            fact, type_ = known
            read = _number(value, type_)
        else:
            continue
        done = 1
        if read is None:
            emit.missing(fact, subject, Status.FAILED, "not a number", line=line.number, excerpt=shown)
        else:
            emit.fact(fact, subject, read, line.number, shown, at=at, clock=clock)
    return done


def _number(value: Any, type_: type[int] | type[float]) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return type_(value)


def _mebibytes(value: Any, total: Any) -> int | None:
    amount, whole = _number(value, int), _number(total, int)
    if amount is None or amount < 0:
        return None
    in_bytes = (whole if whole is not None else amount) >= BYTES_FROM
    return int(amount // 2**20 if in_bytes else amount)


def _time(value: Any) -> tuple[int | None, Clock]:
    if not isinstance(value, str) or len(value) > 40:
        return None, Clock.NONE
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None, Clock.NONE
    clock = Clock.REALTIME if moment.tzinfo else Clock.LOCAL
    try:
        return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 10**6) * 1000, clock
    except (OverflowError, ValueError):
        return None, Clock.NONE


FORMAT = DocumentFormat(
    name=NAME,
    title="SuperBench monitor",
    revision=REVISION,
    provides=(*_app_bench.COMMON[:2], *(fact for fact, _ in _FACTS.values()), *_MEMORY.values()),
    sniff=sniff,
    parse=parse,
)
