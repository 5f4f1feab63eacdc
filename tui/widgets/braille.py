"""Curves in braille: two by four dots to a character. Pure functions; what has no value has no dot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, isnan, nan
from typing import NamedTuple

BLANK = "\u2800"
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of the left and the right half, from below
SILENT = nan  # asked, and not told: neither a value nor a time at which nobody looked


class Scale(NamedTuple):
    """From where to where a plot reaches."""

    low: float
    high: float

    def dot(self, value: float, dots: int) -> int:
        """The row of dots that `value` stands in, from below: 0 to `dots` - 1; what is beyond stands at the edge."""
        if self.high <= self.low:
            return 0
        share = (value - self.low) / (self.high - self.low)
        return max(0, min(dots - 1, int(share * (dots - 1) + 0.5)))


class Bins:
    """Samples of one metric, folded into columns of the same width. The columns lie at multiples of that width, so
    that a new sample changes the newest one only, and the others move together when a new one begins."""

    def __init__(self, width: int, count: int, fold: str = "max") -> None:
        """`width`: ns of a column. `count`: columns that are kept. `fold`: max, min or mean."""
        if width <= 0 or count <= 0:
            raise ValueError(f"{count} columns of {width} ns")
        self.width, self.count, self.fold = width, count, fold
        self._values: dict[int, float] = {}  # number of the column -> value; SILENT where nothing was told
        self._weights: dict[int, int] = {}
        self._last: int | None = None

    @property
    def last(self) -> int | None:
        """Number of the newest column."""
        return self._last

    def add(self, at: int, value: float | None) -> None:
        """One more sample, in any order. `value`: None where the source did not tell."""
        n = at // self.width
        if self._last is not None and n <= self._last - self.count:
            return
        before = self._values.get(n, SILENT)
        if value is None or not isfinite(value):
            self._values.setdefault(n, SILENT)
        elif isnan(before):
            self._values[n], self._weights[n] = value, 1
        else:
            self._values[n] = self._folded(n, before, value)
        if self._last is None or n > self._last:
            self._last = n
            for old in [k for k in self._values if k <= n - self.count]:
                del self._values[old]
                self._weights.pop(old, None)

    def _folded(self, n: int, before: float, value: float) -> float:
        if self.fold == "mean":
            weight = self._weights[n] = self._weights.get(n, 1) + 1
            return before + (value - before) / weight
        return min(before, value) if self.fold == "min" else max(before, value)

    def columns(self, last: int, count: int, hold: int = 0) -> list[float | None]:
        """The `count` columns up to number `last`, oldest first: a value, SILENT, or None where nobody looked. A column
        between two samples keeps the one before for `hold` columns: samples do not come to the millisecond."""
        out: list[float | None] = []
        kept, age = None, 0
        for n in range(last - count + 1 - hold, last + 1):
            value = self._values.get(n)
            if value is not None:
                kept, age = value, 0
            else:
                age += 1
                value = kept if age <= hold and self._last is not None and n < self._last else None
            out.append(value)
        return out[hold:]


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are values."""
    return [v for v in values if v is not None and not isnan(v)]


def heights(values: Sequence[float | None], rows: int, scale: Scale) -> tuple[int, ...]:
    """For each column the row of dots that the curve stands in, from below; -1 where there is no value."""
    dots = 4 * rows
    return tuple(-1 if v is None or isnan(v) else scale.dot(v, dots) for v in values)


def curve(places: Sequence[int], rows: int) -> list[list[int]]:
    """A line through `places` (two to a cell): for each row of cells, from above, the dots of each cell as a bit mask.

    Neighbours are joined by a stroke, half of it in either column; a column without a place stays without a dot, and
    nothing is drawn across it.
    """
    cells = (len(places) + 1) // 2
    masks = [[0] * cells for _ in range(rows)]
    for i, here in enumerate(places):
        if here < 0:
            continue
        before = places[i - 1] if i > 0 else -1
        after = places[i + 1] if i + 1 < len(places) else -1
        reach = [here]
        if before >= 0:  # the half of the way that is nearer to this column
            reach.append(here + _half(before - here, up=False))
        if after >= 0:
            reach.append(here + _half(after - here, up=True))
        bits = _DOTS[i % 2]
        for dot in range(min(reach), max(reach) + 1):
            masks[rows - 1 - dot // 4][i // 2] |= bits[dot % 4]
    return masks


def _half(way: int, up: bool) -> int:
    """Half of `way`, less the end where it is odd on one side, so that two halves meet without a hole."""
    size = abs(way)
    part = size // 2 if up else max(0, size - 1) // 2
    return part if way > 0 else -part


def char(mask: int) -> str:
    """The character of a mask; a blank where there is no dot."""
    return chr(0x2800 + mask) if mask else " "
