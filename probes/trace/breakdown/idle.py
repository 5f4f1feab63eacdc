"""Why the device was idle: every gap is charged, to the nanosecond, to what the kernel behind it waited for.

The cause of a gap [g0, g1) before a kernel whose launch call is [s, e) (HTA's idle breakdown, made exact and additive):

* launched before the gap began (e <= g0): the device waited for itself, another stream or an event: kernel;
* else until s the host had not come to it: data loader, synchronising call, or other host work of the launching thread;
* from s on: the call and its way to the device: launch; but of a launch that has not begun 100 us behind its call the
  rest: the device waited for an event, another stream or work that the trace does not show: kernel;
* no call known: unknown.

Only the first kernel of a call can have waited for it; the later kernels of a graph replay wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Final

import numpy as np
import re2

from knowledge.record import dataclass
from probes.trace.columns import I32, I64, U8, Cat, Group, Mask, Table, wanted
from probes.trace.intervals import Intervals, overlap, subtract, union
from probes.trace.links import Links, groups
from probes.trace.model import Gap, Idle, Window
from probes.trace.names.kinds import used
from probes.trace.reading.reader import Trace
from probes.trace.windows import whole

NEEDS: Final = wanted(gpu="correlation device", runtime="correlation", op="", mark="")

# enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ : torch/utils/data/dataloader.py, record_function
_DATA_LOADER: Final = r"^enumerate\(DataLoader\)#|DataLoader\w*\.__next__$"
# cudaStreamSynchronize, hipDeviceSynchronize, cuCtxSynchronize; copies that return when they are done: cudaMemcpy,
# hipMemcpy, hipMemcpyWithStream, cuMemcpyDtoH_v2, but not the ...Async ones nor cudaMemcpyToArrayAsync.
_SYNCHRONISING: Final = r"Synchronize|^(?:cuda|hip|cu)Memcpy"


LATE_NS: Final = 100_000  # behind its call a launch should have reached the device (HTA: launch delay outlier)


@cache
def _pattern(text: str) -> re2._Regexp:
    return re2.compile(text)


def is_data_loader(name: str) -> bool:
    """Whether a range of this name is a wait for the data loader."""
    return _pattern(_DATA_LOADER).search(name) is not None


def is_synchronising(name: str) -> bool:
    """Whether a runtime call of this name returns only when the device is done."""
    return _pattern(_SYNCHRONISING).search(name) is not None and "Async" not in name


class Cause(IntEnum):
    """How the gap came about, of its kernel's launch."""

    UNKNOWN = 0  # no launch call known
    DEVICE = 1  # launched before the gap began
    HOST = 2  # launched within the gap


@dataclass(frozen=True, slots=True)
class Gaps:
    """The idle gaps of all devices, in columns. Host time is [start, call), launch time [call, end)."""

    start: I64
    end: I64
    kernel: I64  # GPU row behind the gap, -1: none
    launch: I64  # its RUNTIME row, -1: none
    cause: U8  # `Cause`
    call: I64  # start of the call, cut to the gap
    device: I32  # which of the devices, in order of their numbers

    def __len__(self) -> int:
        return len(self.start)


def find_gaps(trace: Trace, links: Links | None = None, window: Window | None = None) -> Gaps:
    """All gaps between the first and the last GPU event of each device, and at the window's edges."""
    window = window or whole(trace)
    links = links or Links(trace)
    gpu = trace.gpu
    first = links.first_of_call
    parts = []
    for number, rows in enumerate(_devices(gpu)):
        parts.append(_gaps_of(gpu.start[rows], gpu.end[rows], rows, window, number))
    start, end, kernel, device = (np.concatenate(p) for p in zip(*parts, strict=True)) if parts else _nothing()
    launch = np.where(kernel >= 0, links.launch[kernel] if len(gpu) else -1, -1)
    runtime = trace[Group.RUNTIME]
    cause, call = np.full(len(start), Cause.UNKNOWN, np.uint8), end.copy()
    known = launch >= 0
    if known.any():
        row = launch[known]
        waited = (runtime.start[row] + runtime.dur[row] > start[known]) & first[kernel[known]]
        cause[known] = np.where(waited, Cause.HOST, Cause.DEVICE)
        call[known] = np.clip(runtime.start[row], start[known], end[known])
    return Gaps(start, end, kernel, launch, cause, call, device)


def _nothing() -> tuple[I64, I64, I64, I32]:
    none = np.empty(0, np.int64)
    return none, none, none, np.empty(0, np.int32)


def _devices(gpu: Table) -> list[I64]:
    """Rows of each device that runs kernels (of a peer that was only copied to nobody asks why it was idle)."""
    if not len(gpu):
        return []
    rows = groups(gpu.ints("device"))
    if len(rows) == 1:
        return rows
    working = [r for r in rows if (gpu.cat[r] == Cat.KERNEL).any()]
    return working or rows


def _gaps_of(start: I64, end: I64, rows: I64, window: Window, number: int) -> tuple[I64, I64, I64, I32]:
    """start, end, kernel and device of the gaps of one device: its own, and those up to the window's edges."""
    reach = np.maximum.accumulate(end)
    behind = np.flatnonzero(start[1:] > reach[:-1]) + 1
    low, high, kernel = reach[behind - 1], start[behind], rows[behind]
    if window.start_ns < start[0]:
        low, high, kernel = np.append(window.start_ns, low), np.append(start[0], high), np.append(rows[0], kernel)
    if window.end_ns > reach[-1]:
        low, high, kernel = np.append(low, reach[-1]), np.append(high, window.end_ns), np.append(kernel, -1)
    return low, high, kernel, np.full(len(low), number, np.int32)


@dataclass(frozen=True, slots=True)
class Shares:
    """Each gap's length within the window by cause, ns: columns over the gaps that add up to `size`."""

    size: I64
    data_loader: I64
    sync: I64
    host: I64
    launch: I64
    kernel: I64
    unknown: I64
    after_sync: Mask  # the gap began within a synchronising call
    late: I64  # of kernel: launched within the gap


def shares(trace: Trace, gaps: Gaps, window: Window) -> Shares:
    """Every gap cut to the window and charged to its causes."""
    low, high = np.maximum(gaps.start, window.start_ns), np.minimum(gaps.end, window.end_ns)
    call = np.clip(gaps.call, low, np.maximum(high, low))
    size = np.maximum(high - low, 0)
    waited = (gaps.cause == Cause.HOST) & (size > 0)
    data, sync, after = _host_time(trace, gaps, low, call, np.flatnonzero(waited))
    overdue = np.zeros(len(gaps), np.int64)
    rows = np.flatnonzero(waited)
    runtime, launch = trace[Group.RUNTIME], gaps.launch[rows]
    due = runtime.start[launch] + runtime.dur[launch] + LATE_NS
    overdue[rows] = np.maximum(high[rows] - np.maximum(due, call[rows]), 0)
    return Shares(
        size=size,
        data_loader=data,
        sync=sync,
        host=np.where(waited, call - low - data - sync, 0),
        launch=np.where(waited, high - call - overdue, 0),
        kernel=np.where(gaps.cause == Cause.DEVICE, size, overdue),
        unknown=np.where(gaps.cause == Cause.UNKNOWN, size, 0),
        after_sync=after,
        late=overdue,
    )


def idle(
    trace: Trace, window: Window | None = None, links: Links | None = None, gaps: Gaps | None = None
) -> Idle | None:
    """Why the devices were idle within the window; summed over the devices that run kernels.

    None when the trace holds no GPU rows. `gaps` are those of the window, where they were found already. Needs `NEEDS`.
    """
    if not len(trace.gpu):
        return None
    window = window or whole(trace)
    found = shares(trace, find_gaps(trace, links, window) if gaps is None else gaps, window)
    return Idle(
        total_ns=int(found.size.sum()),
        data_loader_ns=int(found.data_loader.sum()),
        sync_ns=int(found.sync.sum()),
        host_ns=int(found.host.sum()),
        launch_ns=int(found.launch.sum()),
        kernel_ns=int(found.kernel.sum()),
        unknown_ns=int(found.unknown.sum()),
        after_sync_ns=int((found.host + found.launch)[found.after_sync].sum()),
        late_ns=int(found.late.sum()),
    )


def gaps(trace: Trace, window: Window | None = None, top: int = 10) -> tuple[Gap, ...]:
    """The longest idle gaps of the window, longest first, with their cause and what the host was in. Needs `NEEDS`;
    with PYTHON read as well, the user's function is named."""
    from probes.trace.breakdown.blame import gaps_of  # it stands on this module

    return gaps_of(trace, window or whole(trace), top) if len(trace.gpu) else ()


def _host_time(trace: Trace, gaps: Gaps, low: I64, call: I64, which: I64) -> tuple[I64, I64, Mask]:
    """For each gap the host time in the data loader and in synchronising calls, and whether it began in such a call."""
    data, sync = np.zeros(len(gaps), np.int64), np.zeros(len(gaps), np.int64)
    after = np.zeros(len(gaps), np.bool_)
    thread = thread_of(trace[Group.RUNTIME])[gaps.launch[which]]
    loader, waiting = waits(trace)
    for part in groups(thread):
        rows, key = which[part], int(thread[part[0]])
        in_loader, in_sync = loader.get(key), waiting.get(key)
        if in_loader is not None:
            data[rows] = overlap(in_loader, low[rows], call[rows])
        if in_sync is not None:
            after[rows] = overlap(in_sync, low[rows], low[rows] + 1) > 0
            rest = in_sync if in_loader is None else subtract(in_sync, in_loader)
            sync[rows] = overlap(rest, low[rows], call[rows])
    return data, sync, after


def waits(trace: Trace) -> tuple[dict[int, Intervals], dict[int, Intervals]]:
    """For each thread (`thread_of`) when it stood in the data loader, and when in a synchronising call."""
    loader: dict[int, Intervals] = {}
    parts = [_named(trace, trace[group], is_data_loader) for group in (Group.MARK, Group.OP) if group in trace.tables]
    found = [part for part in parts if len(part)]
    for part in found:
        for key, spans in _by_thread(part).items():
            old = loader.get(key)
            loader[key] = (
                spans if old is None else union(np.append(old.start, spans.start), np.append(old.end, spans.end))
            )
    return loader, _by_thread(_named(trace, trace[Group.RUNTIME], is_synchronising))


def thread_of(table: Table) -> I64:
    """One number for each (pid, tid), the same in all tables of a trace."""
    return table.ids("pid").astype(np.int64) << 32 | table.ids("tid")


def _by_thread(table: Table) -> dict[int, Intervals]:
    keys = thread_of(table)
    end = table.end
    return {int(keys[rows[0]]): union(table.start[rows], end[rows]) for rows in groups(keys)}


def _named(trace: Trace, table: Table, test: Callable[[str], bool]) -> Table:
    said = np.zeros(len(trace.strings) + 1, np.bool_)
    names = used(table.name, len(trace.strings))
    said[names] = [test(trace.strings[i]) for i in names.tolist()]
    which = said[table.name]
    return table.take(np.flatnonzero(which))
