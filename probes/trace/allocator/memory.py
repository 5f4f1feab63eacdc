"""The allocator's life from ``[memory]`` events (profile_memory=True): peaks, churn, growth, holders, thrash.

One event is one allocation (Bytes above zero) or one free (below), with the totals after it and the device it
concerns (torch/csrc/profiler/collection.cpp, ``Allocation``). The caching allocator's own calls of cudaMalloc and
cudaFree stand in the runtime's table.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.columns import ABSENT, I64, Group, Mask, Table, wanted
from probes.trace.links import enclosing, holding
from probes.trace.model import AllocatorPoint, Iterations, MemoryUse
from probes.trace.reading.reader import Trace

NEEDS: Final = wanted(memory="bytes address allocated reserved device device_type", op="", runtime="")

POINTS: Final = 400  # of a timeline: more than a screen or a page is wide in characters
_HOLDERS: Final = 10
_COLUMNS: Final = ("start", "dur", "pid", "tid", "bytes", "address", "allocated", "reserved")
_LARGEST: Final = 1 << 48  # bytes
_CPU: Final = 0
# c10/core/DeviceType.h; ROCm builds of torch say CUDA
_DEVICES: Final = {
    0: "CPU",
    1: "CUDA",
    6: "HIP",
    9: "XLA",
    12: "XPU",
    13: "MPS",
    15: "HPU",
    19: "MTIA",
    20: "PrivateUse1",
}
_SEGMENT_CALLS: Final = frozenset({"cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "hipExtMallocWithFlags", "cuMemCreate",
                                   "cuMemRelease", "cuMemMap", "cuMemUnmap", "hipMemCreate", "hipMemRelease"})  # fmt: skip
# Operators that only ask for memory on behalf of the one around them.
_ASKERS: Final = ("aten::empty", "aten::new_empty", "aten::resize", "aten::zeros", "aten::ones", "aten::full",
                  "aten::new_", "aten::_to_copy", "aten::to", "aten::clone", "aten::contiguous")  # fmt: skip


def memory_use(trace: Trace, iterations: Iterations | None = None) -> tuple[MemoryUse, ...]:
    """One value for each device that has allocator events, accelerators first.

    `iterations` allow growth to be told (three at least); without them it is None. Without ``[memory]`` events
    the result is empty: see `segment_calls` for what is known even then. Needs the tables of `NEEDS`.
    """
    table = trace[Group.MEMORY]
    kind, device = table.ints("device_type"), table.ints("device")
    sized = _possible(table.ints("bytes")) != ABSENT
    pairs = [(t, d) for t in np.unique(kind[sized]).tolist() for d in np.unique(device[sized & (kind == t)]).tolist()]
    keys = sorted(pairs, key=lambda k: (k[0] == _CPU, k))
    accelerators = [k for k in keys if k[0] != _CPU]
    found = []
    for key in keys[:64]:
        mask = sized & (kind == key[0]) & (device == key[1])
        part = Table({c: table[c] for c in _COLUMNS}).take(np.flatnonzero(mask))
        calls = segment_calls(trace, iterations) if accelerators == [key] else 0
        found.append(
            _use(trace, part, _device(*key), iterations, calls, shared=len(accelerators) > 1 and key[0] != _CPU)
        )
    return tuple(found)


def segment_calls(trace: Trace, iterations: Iterations | None = None) -> int:
    """Calls that take memory from the driver or give it back (cudaMalloc, cudaFree and their kin).

    With `iterations`, only those in and after the second: the first fills the cache, later ones should find all in
    it, and each call of cudaFree waits for the whole device.
    """
    runtime = trace[Group.RUNTIME]
    named = trace.strings.where(t in _SEGMENT_CALLS for t in trace.strings.texts)[runtime.name]
    if iterations is not None and len(iterations.items) > 1:
        second = iterations.items[1]
        begin = second.start_ns if second.cpu_start_ns is None else second.cpu_start_ns
        named = named & (runtime.start >= begin)
    return int(named.sum())


def _possible(size: I64) -> I64:
    """Sizes that a machine can have; ABSENT for others."""
    return np.where((size > -_LARGEST) & (size < _LARGEST), size, ABSENT)


def _device(kind: int, number: int) -> str:
    name = _DEVICES.get(kind, "device" if kind == ABSENT else f"device type {kind}")
    return name if number in (-1, ABSENT) else f"{name} {number}"


def _use(
    trace: Trace, part: Table, device: str, iterations: Iterations | None, calls: int, *, shared: bool
) -> MemoryUse:
    change = part.ints("bytes")
    allocated, certain = _totals(_possible(part.ints("allocated")), change)
    reserved = _possible(part.ints("reserved"))
    known = bool((reserved > 0).any())
    reserved = np.where(reserved == ABSENT, 0, reserved)
    peak = int(np.argmax(allocated))
    notes = [*_before(int(allocated[0] - change[0]), certain, device), *_shared(shared)]
    return MemoryUse(
        device=device,
        allocations=int((change > 0).sum()),
        frees=int((change < 0).sum()),
        churn_bytes=int(change[change > 0].sum()),
        peak_allocated=int(allocated[peak]),
        peak_reserved=int(reserved.max()),
        end_allocated=int(allocated[-1]),
        end_reserved=int(reserved[-1]),
        growth_per_iteration=growth(part.start, allocated, iterations),
        fragmentation=float((reserved[peak] - allocated[peak]) / reserved[peak])
        if known and reserved[peak] >= max(int(allocated[peak]), 1)
        else None,
        timeline=timeline(part.start, allocated, reserved),
        top=_holders(trace, part, peak),
        segment_events=calls,
        notes=tuple(notes),
        largest_request=max(int(change.max()), 0) or None,
    )


def _totals(said: I64, change: I64) -> tuple[I64, bool]:
    """The allocated bytes after each event: as recorded, else summed up from an unknown beginning, taken for the
    least that keeps the sum from falling below zero."""
    if (said != ABSENT).all() and (said >= 0).all() and said.any():
        return said, True
    total = np.cumsum(change)
    return total - min(0, int(total.min())), False


def _before(bytes_: int, certain: bool, device: str) -> list[Text]:
    if not certain:
        return [Text("the allocator's totals were not recorded: they are summed up from the events, above an unknown base",
                     "没有记录分配器的总量：由事件累加得到，起点未知")]  # fmt: skip
    if bytes_ <= 0:
        return []
    size = f"{bytes_ / 2**30:.2f} GiB"
    return [Text(f"{size} were allocated on {device} before the trace began; who holds them does not show",
                 f"轨迹开始之前 {device} 上已分配 {size}；无法得知由谁持有")]  # fmt: skip


def _shared(shared: bool) -> list[Text]:
    if not shared:
        return []
    return [Text("cudaMalloc and cudaFree calls are not counted: several devices, and the calls do not name theirs",
                 "未统计 cudaMalloc 和 cudaFree 调用：有多个设备，而调用不含设备信息")]  # fmt: skip


def timeline(at: I64, allocated: I64, reserved: I64, points: int = POINTS) -> tuple[AllocatorPoint, ...]:
    """At most `points` of the states, in order: first and last, and of each stretch of time its highest and lowest.

    So no peak is lost, and the last point is the last state.
    """
    count = len(at)
    if not count:
        return ()
    rows = np.arange(count)
    if count > points:
        # four a stretch (highest and lowest allocated, highest reserved, last) and the first of all
        edges = np.linspace(int(at[0]), int(at[-1]) + 1, max((points - 1) // 4, 1) + 1)
        cuts = np.unique(np.searchsorted(at, edges[:-1], side="left"))
        cuts = cuts[cuts < count]
        ends = np.append(cuts[1:], count)
        rows = np.unique(np.concatenate([_best(allocated, cuts, ends), _best(-allocated, cuts, ends),
                                         _best(reserved, cuts, ends), ends - 1, [0]]))  # fmt: skip
    return tuple(AllocatorPoint(int(at[i]), int(allocated[i]), int(reserved[i])) for i in rows.tolist())


def _best(values: I64, begins: I64, ends: I64) -> I64:
    """For each stretch [begin, end) of rows the row of its greatest value."""
    return np.array(
        [b + int(np.argmax(values[b:e])) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)], np.int64
    )


def growth(at: I64, allocated: I64, iterations: Iterations | None) -> int | None:
    """Bytes by which the least allocated rises with each iteration (the median); 0 when it does not always rise.

    None with fewer than three iterations that hold events. The first is left out when there are four: optimizers
    allocate their state in it.
    """
    if iterations is None or len(iterations.items) < 3:
        return None
    lows = []
    for one in iterations.items:
        begin = one.start_ns if one.cpu_start_ns is None else one.cpu_start_ns
        end = one.end_ns if one.cpu_end_ns is None else one.cpu_end_ns
        low, high = np.searchsorted(at, [begin, end], side="left").tolist()
        if high > low:
            lows.append(int(allocated[low:high].min()))
    lows = lows[1:] if len(lows) > 3 else lows
    if len(lows) < 3:
        return None
    steps = np.diff(np.array(lows, np.int64))
    return int(np.median(steps)) if bool((steps > 0).all()) else 0


def _holders(trace: Trace, part: Table, peak: int) -> tuple[tuple[str, int], ...]:
    """Who holds most at the peak: of what was allocated in the trace and not freed until then, by operator."""
    address, change = part.ints("address")[: peak + 1], part.ints("bytes")[: peak + 1]
    order = np.argsort(address, kind="stable")
    last = np.append(np.diff(address[order]) != 0, True)
    rows = order[last & (address[order] != ABSENT)]
    rows = np.sort(rows[change[rows] > 0])
    if not len(rows):
        return ()
    ops = trace[Group.OP]
    asked = part.take(rows)
    near = holding(asked.start, ops)
    doers = near[~_askers(trace)[ops.name[near]]]
    around = enclosing(asked, ops.take(doers))
    name = np.where(around >= 0, ops.name[doers[around]], -1) if len(doers) else around
    names, at = np.unique(name, return_inverse=True)
    held = np.bincount(at.reshape(-1), change[rows], len(names)).astype(np.int64)
    best = np.lexsort((names, -held))[:_HOLDERS]
    return tuple((excerpt(clean(trace.strings[int(names[i])]), 200) or "?", int(held[i])) for i in best.tolist())


def _askers(trace: Trace) -> Mask:
    return trace.strings.where(t.startswith(_ASKERS) for t in trace.strings.texts)
