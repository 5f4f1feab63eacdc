"""What streams and host threads did over time, in equal bins: what a timeline of a few lines is drawn from."""

from __future__ import annotations

from typing import Final

import numpy as np

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.trace.breakdown.idle import NEEDS as IDLE_NEEDS
from probes.trace.breakdown.idle import gaps, thread_of, waits
from probes.trace.breakdown.utilisation import NEEDS as HEAT_NEEDS
from probes.trace.breakdown.utilisation import edges
from probes.trace.columns import Group, Table, both, wanted
from probes.trace.intervals import NOTHING, Intervals, covered, overlap, subtract, union
from probes.trace.model import Gap, Window
from probes.trace.reading.reader import Trace

NEEDS: Final = both(IDLE_NEEDS, HEAT_NEEDS, wanted(gpu="stream device", python=""))
STREAMS, THREADS, GAPS = 8, 4, 5  # that are shown: busiest and longest first
DOING: Final = ("data_loader", "sync", "launch", "operator")  # what a thread does, the first that holds
LEAST: Final = 0.05  # of a bin: less is nothing


@dataclass(frozen=True, slots=True)
class Stream:
    """How busy one stream was in each bin, 0 to 1."""

    device: int | None  # None: all together
    stream: str
    busy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """What one host thread did most in each bin: one of `DOING`, or nothing that was recorded."""

    process: str
    thread: str
    doing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """A stretch of time of one trace."""

    start_ns: int
    end_ns: int
    streams: tuple[Stream, ...]
    more_streams: int
    threads: tuple[Thread, ...]
    more_threads: int
    gaps: tuple[Gap, ...]


def lanes(trace: Trace, start: int, end: int, bins: int) -> Lanes:
    """What happened in [start, end), ns. Needs `NEEDS`."""
    streams, hidden = _streams(trace, start, end, bins)
    threads, silent = _threads(trace, start, end, bins)
    return Lanes(start, end, streams, hidden, threads, silent, gaps(trace, Window("trace", start, end), GAPS))


def _binned(part: Intervals, start: int, end: int, bins: int) -> tuple[float, ...]:
    at = edges(start, end, bins)
    return tuple((np.diff(covered(part, at)) / np.maximum(np.diff(at), 1)).tolist())


def _streams(trace: Trace, start: int, end: int, bins: int) -> tuple[tuple[Stream, ...], int]:
    gpu = trace.gpu
    keys = np.stack([gpu.ints("device"), gpu.ids("stream").astype(np.int64)])
    found, at = np.unique(keys, axis=1, return_inverse=True)
    parts = []
    for k in range(found.shape[1]):
        rows = np.flatnonzero(at.ravel() == k)
        part = union(gpu.start[rows], gpu.end[rows])
        busy = int(overlap(part, np.array([start]), np.array([end]))[0])
        parts.append((busy, int(found[0, k]), excerpt(trace.strings[int(found[1, k])], 20), part))
    ran = [p for p in parts if p[0]]
    shown = sorted(sorted(ran, key=lambda p: -p[0])[:STREAMS], key=lambda p: (p[1], len(p[2]), p[2]))
    whole = [Stream(None, "", _binned(union(gpu.start, gpu.end), start, end, bins))]
    each = [Stream(max(device, 0), name, _binned(part, start, end, bins)) for _, device, name, part in shown]
    return tuple(whole + (each if len(ran) > 1 else [])), max(0, len(ran) - STREAMS)


def _threads(trace: Trace, start: int, end: int, bins: int) -> tuple[tuple[Thread, ...], int]:
    calls, ops = trace[Group.RUNTIME], trace[Group.OP]
    loader, waiting = waits(trace)
    keys, launches = np.unique(thread_of(calls), return_counts=True)
    by_launches = dict(zip(keys.tolist(), launches.tolist(), strict=True))
    every = sorted(
        {*by_launches, *loader, *np.unique(thread_of(ops)).tolist()}, key=lambda k: (-by_launches.get(k, 0), k)
    )
    out = []
    for key in every[:THREADS]:
        data = loader.get(key, NOTHING)
        sync = subtract(waiting.get(key, NOTHING), data)
        before = _joined(data, sync)
        launch = subtract(_of(calls, key), before)
        work = subtract(_of(ops, key), _joined(before, launch))
        shares = np.array([_binned(part, start, end, bins) for part in (data, sync, launch, work)])
        best = shares.argmax(axis=0)
        doing = tuple(DOING[b] if shares[:, i].sum() >= LEAST else "" for i, b in enumerate(best.tolist()))
        out.append(Thread(excerpt(trace.strings[key >> 32], 20), excerpt(trace.strings[key & 0xFFFFFFFF], 20), doing))
    return tuple(out), max(0, len(every) - THREADS)


def _of(table: Table, key: int) -> Intervals:
    rows = thread_of(table) == key
    return union(table.start[rows], table.end[rows])


def _joined(a: Intervals, b: Intervals) -> Intervals:
    return union(np.concatenate([a.start, b.start]), np.concatenate([a.end, b.end]))
