"""How busy streams, devices and ranks were over time: exact busy time in equal bins, for a heat map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.trace.columns import ABSENT, I64, Strings, Table, Wanted, wanted
from probes.trace.intervals import covered, union
from probes.trace.model import Window
from probes.trace.reading.reader import Trace

NEEDS: Final[Wanted] = wanted(gpu="device stream")
BINS: Final = 240  # columns that a page of 1200 pixels can show side by side
STREAMS: Final = 24


@dataclass(frozen=True, slots=True)
class HeatRow:
    """Busy time of one stream, device or rank: `busy_ns[i]` of bin i of its window. Small, and it can be pickled."""

    label: str
    start_ns: int
    end_ns: int
    busy_ns: tuple[int, ...]

    @property
    def edges(self) -> I64:
        """Bounds of the bins, ns: one more than there are bins."""
        return edges(self.start_ns, self.end_ns, len(self.busy_ns))

    @property
    def share(self) -> tuple[float, ...]:
        """Busy share of each bin, 0 to 1."""
        widths = np.diff(self.edges)
        return tuple((np.asarray(self.busy_ns) / np.maximum(widths, 1)).tolist())


def edges(start: int, end: int, bins: int) -> I64:
    """`bins` + 1 whole nanoseconds from `start` to `end`, as equal as they can be."""
    return start + (np.arange(bins + 1, dtype=np.int64) * ((end - start) // bins)) + (
        np.arange(bins + 1, dtype=np.int64) * ((end - start) % bins)) // bins  # fmt: skip


def busy(table: Table, start: int, end: int, bins: int = BINS) -> I64:
    """ns of each bin that any event of `table` covers. Exact: the bins add up to the union within [start, end)."""
    return np.diff(covered(union(table.start, table.end), edges(start, end, bins)))


def rank_row(trace: Trace, label: str, window: Window | None = None, bins: int = BINS) -> HeatRow | None:
    """All of a trace's devices as one row; None without GPU events."""
    span = _span(trace, window)
    if span is None:
        return None
    return HeatRow(label, *span, tuple(busy(trace.gpu, *span, bins).tolist()))


def heat(trace: Trace, window: Window | None = None, bins: int = BINS) -> tuple[HeatRow, ...]:
    """One row a stream, the busiest `STREAMS` of them, in order of device and stream."""
    span = _span(trace, window)
    if span is None:
        return ()
    gpu = trace.gpu
    devices, streams, lane = pairs(gpu.ints("device"), gpu.ids("stream").astype(np.int64))
    end = gpu.end
    rows = []
    for k, which in enumerate(members(lane, len(devices))):
        row = np.diff(covered(union(gpu.start[which], end[which]), edges(*span, bins)))
        rows.append((int(row.sum()), int(devices[k]), _stream(trace.strings, int(streams[k])), row))
    kept = sorted(sorted(rows, key=lambda r: -r[0])[:STREAMS], key=lambda r: (r[1], len(r[2]), r[2]))
    return tuple(HeatRow(_label(device, stream), *span, tuple(row.tolist())) for _, device, stream, row in kept)


def _stream(strings: Strings, number: int) -> str:
    return excerpt(strings[number], 40)


def _label(device: int, stream: str) -> str:
    """``0/7``: device and stream."""
    return f"{'?' if device == ABSENT else device}/{stream or '?'}"


def _span(trace: Trace, window: Window | None) -> tuple[int, int] | None:
    gpu = trace.gpu
    if not len(gpu):
        return None
    if window is not None:
        return window.start_ns, max(window.end_ns, window.start_ns + 1)
    start = int(gpu.start[0])
    return start, max(int(gpu.end.max()), start + 1)


def pairs(a: I64, b: I64) -> tuple[I64, I64, I64]:
    """The pairs that occur: their parts, and for each row which pair it has. Linear where numbers are small."""
    one, first = factors(a)
    two, second = factors(b)
    both, which = factors(first * len(two) + second)
    return one[both // max(len(two), 1)], two[both % max(len(two), 1)], which


def members(which: I64, groups: int) -> Iterator[I64]:
    """The rows of each group, in order."""
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(groups + 1))
    for k in range(groups):
        yield order[bounds[k] : bounds[k + 1]]


def factors(values: I64) -> tuple[I64, I64]:
    """``np.unique(values, return_inverse=True)``, by counting instead of sorting where the values lie close together."""
    if not len(values):
        return values, np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        found, which = np.unique(values, return_inverse=True)
        return found, which.ravel()
    offset = values - low
    present = np.flatnonzero(np.bincount(offset))
    number = np.empty(high - low + 1, np.int64)
    number[present] = np.arange(len(present))
    return present + low, number[offset]
