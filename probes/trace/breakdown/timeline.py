"""The timeline of one trace at several levels of detail, bounded in size whatever the trace holds.

A lane is a stream of a device or one kind of events of a host thread; where events nest it has several rows.
Within a row, events that are shorter than a level's resolution and begin in the same cell of that length are one
segment, with their number, the time they cover together (exact) and the name that took most of it; a longer
event stays alone. So at every level the covered time and the number of events are those of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final

import numpy as np

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.trace.breakdown.levels import Level, Row, exact, level, resolution_for
from probes.trace.breakdown.utilisation import NEEDS as HEAT_NEEDS
from probes.trace.breakdown.utilisation import factors, members, pairs
from probes.trace.columns import I64, U8, Cat, Group, Strings, Table, Wanted, both, wanted
from probes.trace.intervals import union
from probes.trace.model import Window
from probes.trace.names.classify import is_communication
from probes.trace.reading.reader import Trace

NEEDS: Final[Wanted] = both(HEAT_NEEDS, wanted(gpu="device stream", runtime="", op="", mark=""))

BUDGETS: Final = (20_000, 100_000, 400_000)  # segments a level: a screen at once, then what is read while zooming in
DETAIL: Final = 60_000  # exact events in the windows of interest, when the last budget is too small for all
ROWS: Final = {Group.GPU: 3, Group.MARK: 3, Group.OP: 5, Group.RUNTIME: 2}  # deeper ones stand in the last row
LANES: Final = 48  # busiest first; what is left out is counted
NAMES: Final = 120  # characters of a name that are kept
DISTINCT: Final = 20_000  # names that are told apart; beyond that the rarest are one


class Tint(IntEnum):
    """What colour a segment has."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY = 2
    OPERATOR = 3
    RUNTIME = 4
    SYNC = 5  # a call that waits for the device
    MARK = 6
    LOADER = 7


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream, or one kind of events of one host thread."""

    kind: str  # gpu, gpu_mark, mark, op, runtime
    device: str  # of a stream
    stream: str
    process: str  # of a host thread
    thread: str
    row: int  # its first one
    rows: int
    events: int
    busy_ns: int  # covered by its events: nested ones count once


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes and levels, the coarsest first; `details` are exact windows beyond the finest level."""

    start_ns: int
    end_ns: int
    lanes: tuple[Lane, ...]
    levels: tuple[Level, ...]
    details: tuple[Level, ...]
    names: tuple[str, ...]
    events: int
    left_out: int  # events of lanes beyond `LANES`, and those far outside of the window
    view_ns: tuple[int, int] = (0, 0)  # what to show first: the window, with a little room

    @property
    def exact(self) -> bool:
        """Whether the finest level holds each event."""
        return bool(self.levels) and self.levels[-1].resolution_ns == 0


def timeline(
    trace: Trace,
    window: Window | None = None,
    *,
    budgets: Sequence[int] = BUDGETS,
    focus: Sequence[tuple[int, int]] = (),
    distinct: int = DISTINCT,
) -> Timeline:
    """The timeline of `trace`. `focus`: windows (start, end; ns) that matter most, for exact events where they do not
    all fit; the middle of the trace otherwise. `distinct`: how many names are told apart. Memory: a few columns of the
    largest lane."""
    low, high, view, far = _extent(trace, window)
    lanes, rows, hidden = _lanes(trace, low, high)
    events = sum(len(r.start) for r in rows)
    levels: list[Level] = []
    finest = 2 * (high - low)
    for budget in budgets:
        finest = 0 if events <= budget else resolution_for(rows, budget, finest)
        levels.append(level(rows, finest, low, high))
        if finest == 0:
            break
    details: list[Level] = []
    if levels and levels[-1].resolution_ns:
        parts = [p for p in focus if p[1] > p[0]] or [(low, high)]
        details = [exact(rows, s, e, DETAIL // len(parts)) for s, e in parts]
    names, levels, details = _named(trace.strings, levels, details, distinct)
    return Timeline(low, high, lanes, tuple(levels), tuple(details), names, events, hidden + far, view)


# --- what is shown -------------------------------------------------------------------------------


def _extent(trace: Trace, window: Window | None) -> tuple[int, int, tuple[int, int], int]:
    """Start, end, the part to show first, and how many events lie so far outside of the window that they would squeeze it into nothing."""
    tables = [t for g in ROWS if (t := trace.tables.get(g)) is not None and len(t)]
    if not tables:
        return 0, 1, (0, 1), 0
    low, high = min(int(t.start[0]) for t in tables), max(int(t.end.max()) for t in tables) + 1
    gpu = trace.tables.get(Group.GPU)
    if window is not None and window.end_ns > window.start_ns:
        first, last = window.start_ns, window.end_ns
    elif gpu is not None and len(gpu):
        first, last = int(gpu.start[0]), int(gpu.end.max())
    else:
        return low, high, (low, high), 0
    reach = max(8 * (last - first), 10**9)  # a short window does not hide the seconds around it
    low, high = max(low, first - reach), min(high, last + reach)
    far = sum(int(((t.start < low) | (t.start >= high)).sum()) for t in tables)
    room = (last - first) // 50 + 1
    return low, high, (max(low, first - room), min(high, last + room)), far


def _lanes(trace: Trace, low: int, high: int) -> tuple[tuple[Lane, ...], list[Row], int]:
    tables = {g: t.between(low, high) for g in ROWS if (t := trace.tables.get(g)) is not None and len(t)}
    found = [one for group, table in tables.items() for one in _split(trace, group, table)]
    found.sort(key=lambda f: -f[0].events)
    streams = [f for f in found if f[0].kind == "gpu"][: LANES // 2]  # threads do not crowd them out
    threads = [f for f in found if f[0].kind != "gpu"][: LANES - len(streams)]
    shown = streams + threads
    hidden = sum(f[0].events for f in found) - sum(f[0].events for f in shown)
    lanes: list[Lane] = []
    rows: list[Row] = []
    for lane, which in sorted(shown, key=lambda f: _place(f[0])):
        group = _GROUPS[lane.kind]
        table = tables[group].take(which)
        new = _rows(table, _tints(trace.strings, group, table), ROWS[group])
        busy = union(table.start, table.end).total
        lanes.append(replace(lane, row=len(rows), rows=len(new), busy_ns=busy))
        rows += new
    return tuple(lanes), rows, hidden


_GROUPS: Final = {
    "gpu": Group.GPU,
    "gpu_mark": Group.MARK,
    "mark": Group.MARK,
    "op": Group.OP,
    "runtime": Group.RUNTIME,
}


def _place(lane: Lane) -> tuple[object, ...]:
    """Streams by device, then threads; within one the marks above what happens in them."""
    device = (0, int(lane.device)) if lane.device.isdecimal() else (1, 0)
    stream = (0, int(lane.stream)) if lane.stream.isdecimal() else (1, 0)
    kinds = ("gpu_mark", "gpu", "mark", "op", "runtime")
    side = 0 if lane.kind in ("gpu", "gpu_mark") else 1
    return side, device, lane.device, stream, lane.stream, lane.process, lane.thread, kinds.index(lane.kind)


def _split(trace: Trace, group: Group, table: Table) -> Iterator[tuple[Lane, I64]]:
    """The lanes of a group and their events: by device and stream on the GPU's side, else by process and thread."""
    text = trace.strings
    gpu_side = np.equal(table.cat, Cat.GPU_MARK) if group is Group.MARK else np.full(len(table), group is Group.GPU)
    first = table.ints("device") if "device" in table else table.ids("pid").astype(np.int64)
    second = table.ids("stream") if "stream" in table else table.ids("tid")
    a = np.where(gpu_side, first, table.ids("pid"))
    b = np.where(gpu_side, second, table.ids("tid"))
    firsts, seconds, lane_of = pairs(a.astype(np.int64), b.astype(np.int64) * 2 + gpu_side)
    kind = {Group.GPU: "gpu", Group.OP: "op", Group.RUNTIME: "runtime"}.get(group, "mark")
    for k, which in enumerate(members(lane_of, len(firsts))):
        one, two, on_gpu = int(firsts[k]), int(seconds[k]) // 2, bool(seconds[k] % 2)
        device = "" if not on_gpu or one < -(1 << 62) else str(one) if "device" in table else excerpt(text[one], 40)
        second_text = excerpt(text[two], 40)
        lane = Lane(kind="gpu_mark" if on_gpu and group is Group.MARK else kind, device=device, stream=second_text.removeprefix("stream ") if on_gpu else "",
                    process="" if on_gpu else excerpt(text[one], 40), thread="" if on_gpu else second_text,
                    row=0, rows=0, events=len(which), busy_ns=0)  # fmt: skip
        yield lane, which


def _tints(strings: Strings, group: Group, table: Table) -> U8:
    ids, back = factors(table.name.astype(np.int64))
    tints = np.fromiter((_tint(group, strings[int(i)]) for i in ids), np.uint8, len(ids))[back]
    if group is Group.GPU:
        tints[~np.equal(table.cat, Cat.KERNEL)] = Tint.MEMORY
    return tints


_STEPS: Final = ("ProfilerStep", "Optimizer.")  # annotations that files before 2022 write as operators


def _tint(group: Group, name: str) -> Tint:
    if group is Group.GPU:
        return Tint.COMMUNICATION if is_communication(name) else Tint.COMPUTE
    if group is Group.RUNTIME:
        waits = "Synchronize" in name or (name.endswith("Memcpy") and "Async" not in name)
        return Tint.SYNC if waits else Tint.RUNTIME
    if "DataLoader" in name:
        return Tint.LOADER
    return Tint.MARK if group is Group.MARK or name.startswith(_STEPS) else Tint.OPERATOR


def _rows(table: Table, tint: U8, most: int) -> list[Row]:
    """Rows by nesting: an event stands below those of its lane that are open when it starts."""
    start, end = table.start, table.end
    over = np.searchsorted(np.sort(end), start, side="right")
    depth = np.clip(np.arange(len(start)) - over, 0, most - 1)
    rows = []
    for d in range(int(depth.max()) + 1 if len(depth) else 0):
        at = np.flatnonzero(depth == d)
        s, e = start[at], end[at]
        before = np.maximum.accumulate(np.concatenate([s[:1], e[:-1]]))
        rows.append(Row(s, e, table.name[at], tint[at], np.maximum(e - np.maximum(s, before), 0)))
    return rows


def _named(
    strings: Strings, levels: list[Level], details: list[Level], distinct: int
) -> tuple[tuple[str, ...], list[Level], list[Level]]:
    """Names that any segment bears, once each, and the levels with those numbers. Of too many the rarest share one."""
    every = [*levels, *details]
    if not every:
        return (), levels, details
    ids, which, seen = np.unique(np.concatenate([v.name for v in every]), return_inverse=True, return_counts=True)
    number, names = np.arange(len(ids)), [excerpt(strings[int(i)], NAMES) for i in ids[:distinct]]
    if len(ids) > distinct:
        kept = np.sort(np.argsort(-seen, kind="stable")[:distinct])
        names = [*(excerpt(strings[int(i)], NAMES) for i in ids[kept]), "..."]
        number = np.full(len(ids), distinct)
        number[kept] = np.arange(distinct)
    parts = np.split(number[which.ravel()], np.cumsum([len(v) for v in every])[:-1])
    renamed = [replace(v, name=part) for v, part in zip(every, parts, strict=True)]
    return tuple(names), renamed[: len(levels)], renamed[len(levels) :]
