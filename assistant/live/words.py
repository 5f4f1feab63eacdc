"""Readings as people read them, and which of them stand out. Nothing is concluded here: that is what rules are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.live.frames import LOST, METRICS

if TYPE_CHECKING:
    from assistant.live.frames import Gpu, Proc

NONE = "–"  # no value; the reason stands in `Gpu.missing`
_RATES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def value(metric: str, number: float | None) -> str:
    """``97 %``, ``71.2 GiB``, ``12.3 GB/s``; a dash where there is none."""
    if number is None:
        return NONE
    unit = METRICS[metric].unit
    if unit == "B":
        return _scaled(number, _SIZES, "B")
    if unit == "B/s":
        return _scaled(number, _RATES, "B/s")
    return f"{number:.0f} {unit}".rstrip()


def with_limit(metric: str, number: float | None, limit: float | None) -> str:
    """``698/700 W``; without the limit where that is not known."""
    if number is None or limit is None:
        return value(metric, number)
    unit = METRICS[metric].unit
    if unit == "B":
        factor, name = next(((f, n) for f, n in _SIZES if limit >= f), (1, "B"))
        return f"{_short(number / factor)}/{_short(limit / factor).removesuffix('.0')} {name}"
    return f"{number:.0f}/{limit:.0f} {unit}".rstrip()


def _scaled(number: float, units: tuple[tuple[float, str], ...], last: str) -> str:
    factor, name = next(((f, n) for f, n in units if abs(number) >= f), (1, last))
    return f"{_short(number / factor)} {name}" if factor != 1 else f"{number:.0f} {name}"


def _short(number: float) -> str:
    return f"{number:.1f}" if abs(number) < 99.95 else f"{number:.0f}"


def program(process: Proc) -> str:
    """What runs, without folders and interpreter: ``train.py --rank 0`` of ``/opt/env/bin/python -u train.py --rank 0``."""
    words = process.command.split()
    if not words:
        return process.name
    first = words[0].rpartition("/")[2]
    if first.startswith("python"):
        at = next((i for i, w in enumerate(words[1:], 1) if not w.startswith("-") or w in ("-m", "-c")), None)
        if at is not None and words[at] == "-m" and at + 1 < len(words):
            return " ".join(words[at + 1 :])
        if at is not None and words[at] != "-c":
            return " ".join((words[at].rpartition("/")[2], *words[at + 1 :]))
    return " ".join((first, *words[1:]))


def stands_out(gpu: Gpu, metric: str) -> str:
    """ "error" or "warning" for a reading that is beyond what this GPU itself says is its limit; else empty.

    Temperature from the point on at which this GPU slows down; any uncorrected memory error; fewer PCIe lanes than it has.
    Power at its limit is what a busy GPU should show.
    """
    number = gpu.value(metric)
    if number is None:
        return ""
    limit = gpu.value(METRICS[metric].limit) if METRICS[metric].limit else None
    if metric == "temperature":
        return "error" if limit is not None and number >= limit else ""
    if metric == "ecc_uncorrected":
        return "error" if number > 0 else ""
    if metric == "pcie_width":
        return "warning" if limit is not None and number < limit else ""
    return ""


def slowed(gpu: Gpu) -> str:
    """How bad what holds its clocks down is: "warning" where a reason always tells of a fault, "info" where it may be
    normal, else empty."""
    from knowledge.catalog.clock_events import Fault, find

    found = [event.fault for name in gpu.reasons if (event := find(name)) is not None]
    if Fault.YES in found:
        return "warning"
    return "info" if Fault.DEPENDS in found else ""


def gone(gpu: Gpu) -> bool:
    """Whether the driver says that it is no longer there."""
    return gpu.state == LOST


def nice(top: float) -> float:
    """The next round number above `top`, for the upper edge of a plot: 1, 2 or 5 times a power of ten."""
    if top <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(top))) - 1) if top >= 1 else 1.0
    return next(power * m for m in (1, 2, 5, 10) if top <= power * m)
