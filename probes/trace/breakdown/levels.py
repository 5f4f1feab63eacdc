"""Levels of detail of rows of events: what is short at a resolution is merged, exactly and vectorised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knowledge.record import dataclass
from probes.trace.columns import I32, I64, U8, Mask


@dataclass(frozen=True, slots=True)
class Level:
    """All rows' segments at one resolution; row r has those of `offsets[r]` to `offsets[r + 1]`."""

    resolution_ns: int  # 0: every event stands alone
    start_ns: int  # the part of the trace that it covers
    end_ns: int
    offsets: I64
    start: I64
    end: I64
    busy: I64
    count: I64
    name: I64  # in Timeline.names: of a merged segment the one with the most time
    tint: U8

    def __len__(self) -> int:
        return len(self.start)


@dataclass(slots=True)
class Row:
    """Events of one row in order of start. `cover` is what each adds to the time covered so far."""

    start: I64
    end: I64
    name: I32
    tint: U8
    cover: I64


def _breaks(row: Row, resolution: int) -> Mask:
    """Whether a segment begins at each event. `resolution` is a power of two: cells are a shift away."""
    first = np.ones(len(row.start), np.bool_)
    alone = row.end - row.start >= resolution
    cell = row.start >> (resolution.bit_length() - 1)
    np.not_equal(cell[1:], cell[:-1], out=first[1:])
    first[1:] |= alone[1:]
    first[1:] |= alone[:-1]
    return first


def _heads(row: Row, resolution: int) -> I64:
    """Where segments begin."""
    return np.flatnonzero(_breaks(row, resolution)) if resolution > 0 else np.arange(len(row.start))


def resolution_for(rows: Sequence[Row], budget: int, most: int) -> int:
    """The finest power of two, ns, up to the first above `most`, at which all rows have at most `budget` segments."""
    low, high = 0, max(most, 1).bit_length()
    while low < high:
        middle = (low + high) // 2
        if sum(int(_breaks(r, 1 << middle).sum()) for r in rows) <= budget:
            high = middle
        else:
            low = middle + 1
    return 1 << low


def level(rows: Sequence[Row], resolution: int, start_ns: int, end_ns: int) -> Level:
    """All rows at one resolution (ns; 0: each event alone)."""
    parts = [_segments(row, _heads(row, resolution)) for row in rows]
    offsets = np.cumsum([0, *(len(p[0]) for p in parts)], dtype=np.int64)
    joined = [np.concatenate([p[i] for p in parts]) if parts else np.empty(0, np.int64) for i in range(6)]
    start, end, busy, count, name, tint = joined
    return Level(resolution, start_ns, end_ns, offsets, start, end, busy, count, name, tint.astype(np.uint8))


def exact(rows: Sequence[Row], start: int, end: int, budget: int) -> Level:
    """Each event that starts in a window, which is narrowed around its middle until `budget` holds them."""
    while True:
        spans = [np.searchsorted(r.start, [start, end]) for r in rows]
        if sum(int(b - a) for a, b in spans) <= budget or end - start < 2:
            break
        quarter = max((end - start) // 4, 1)
        start, end = start + quarter, end - quarter
    cut = [
        Row(r.start[a:b], r.end[a:b], r.name[a:b], r.tint[a:b], r.cover[a:b])
        for r, (a, b) in zip(rows, spans, strict=True)
    ]
    return level(cut, 0, start, end)


def _segments(row: Row, heads: I64) -> tuple[I64, I64, I64, I64, I64, U8]:
    if not len(heads):
        none = np.empty(0, np.int64)
        return none, none, none, none, none, np.empty(0, np.uint8)
    count = np.diff(np.append(heads, len(row.start)))
    main = heads.copy()
    merged = np.flatnonzero(count > 1)
    if len(merged):
        main[merged] = _dominant(row, heads, count, merged)
    busy, end = np.add.reduceat(row.cover, heads), np.maximum.reduceat(row.end, heads)
    return row.start[heads], end, busy, count, row.name[main].astype(np.int64), row.tint[main]


def _dominant(row: Row, heads: I64, count: I64, merged: I64) -> I64:
    """Of each merged segment an event whose name has the most time in it."""
    n = count[merged]
    segment = np.repeat(np.arange(len(merged)), n)
    inside = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
    event = np.repeat(heads[merged], n) + inside
    order = np.lexsort((row.name[event], segment))
    segment, event = segment[order], event[order]
    name = row.name[event]
    new = np.ones(len(event), np.bool_)
    new[1:] = (segment[1:] != segment[:-1]) | (name[1:] != name[:-1])
    at = np.flatnonzero(new)
    time = np.add.reduceat((row.end - row.start)[event], at)
    best = np.lexsort((-time, segment[at]))
    firsts = np.searchsorted(segment[at][best], np.arange(len(merged)))
    return event[at[best[firsts]]]
