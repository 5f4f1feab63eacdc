"""How numbers went over time: growth of counters across restarts, slope, and a picture of one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from assistant.store.read import Sample
from knowledge.observation import Status

_BARS = "▁▂▃▄▅▆▇█"


def numbers(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that hold a finite number."""
    return [s for s in samples if s.cell.status == Status.OK and s.cell.num is not None and math.isfinite(s.cell.num)]


def increase(samples: Sequence[Sample], per_boot: bool = False) -> float:
    """By how much a counter grew, at least.

    A number below its predecessor began anew at zero; so did, of a counter that starts with each boot
    (`per_boot`), the first number of another boot, whatever it shows.
    """
    return sum(_step(a, b, per_boot) for a, b in pairwise(numbers(samples)))


def _step(a: Sample, b: Sample, per_boot: bool) -> float:
    before, after = a.cell.num or 0.0, b.cell.num or 0.0
    anew = after < before or (per_boot and a.boot_id and b.boot_id and a.boot_id != b.boot_id)
    return after if anew else after - before


def rate(samples: Sequence[Sample], per: int, per_boot: bool = False) -> float | None:
    """Growth per `per` ns over the time the samples span; None without two moments."""
    known = numbers(samples)
    span = known[-1].at - known[0].at if known else 0
    return None if span <= 0 else increase(known, per_boot) * per / span


def trend(samples: Sequence[Sample], per: int) -> float | None:
    """Slope of the least-squares line, in units per `per` ns; None with fewer than three moments.

    Three, because a line through two says nothing about a course.
    """
    known = numbers(samples)
    times = [s.at - known[0].at for s in known]
    if len(set(times)) < 3:
        return None
    values = [s.cell.num or 0.0 for s in known]
    mean_t, mean_v = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_t) ** 2 for t in times)
    return sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values, strict=True)) / spread * per


def sparkline(samples: Sequence[Sample], columns: int = 40) -> str:
    """A bar for each slice of time, as high as the greatest number in it; a blank where nothing was read."""
    known = numbers(samples)
    if not known:
        return ""
    first, last = known[0].at, known[-1].at
    slots: list[float | None] = [None] * (min(columns, len(known)) if last > first else 1)
    for s in known:
        place = (s.at - first) * (len(slots) - 1) // (last - first) if last > first else 0
        value, highest = s.cell.num or 0.0, slots[place]
        slots[place] = value if highest is None else max(highest, value)
    told = [v for v in slots if v is not None]
    low, high = min(told), max(told)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if v is None else _BARS[round((v - low) * scale)] for v in slots)
