"""Many ranks' traces of one job compared: who waits for whom, who is late and why, which link is slow, who is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.across.collectives import NEEDS as _CALLS
from probes.trace.across.collectives import Calls, calls
from probes.trace.across.stragglers import collective_table, missing_note, stragglers, waits_table
from probes.trace.across.waits import Clocks, Matched, clocks, divide, fits, match
from probes.trace.breakdown.idle import NEEDS as _IDLE
from probes.trace.breakdown.idle import idle as idle_causes
from probes.trace.columns import I64, Mask, both
from probes.trace.intervals import overlap
from probes.trace.links import Links
from probes.trace.model import Idle, Iterations, PipelineStage, Ranks, RankTiming, Spread, Window
from probes.trace.reading.reader import Trace
from probes.trace.steps.iterations import NEEDS as _ITERATIONS
from probes.trace.steps.iterations import Busy, iterations
from probes.trace.steps.pipeline import bubbles, stage_of

NEEDS: Final = both(_CALLS, _ITERATIONS, _IDLE)
_SPREADS: Final = 10_000  # iterations
PARTS: Final = ("span", "compute", "exposed_comm", "mem", "idle", "data_loader", "kernels")


@dataclass(frozen=True, slots=True)
class RankDigest:
    """What a comparison needs of one rank: some hundred kilobytes, whatever the trace's size, and picklable."""

    rank: int | None
    file: str
    world_size: int | None
    base_ns: int  # to add to its times for ns since 1970
    numbers: I64  # of its iterations; empty: it has none, and the parts hold one entry for the whole trace
    start: I64  # ns, of each iteration
    end: I64
    parts: Mapping[str, I64]  # PARTS -> of each iteration
    calls: tuple[Calls, ...]
    idle: Idle | None = None  # causes, over all its iterations
    whole: bool = True
    loader_known: bool = True  # the host's marks were recorded
    device: bool = True  # it holds work of a device
    stage: PipelineStage | None = None  # its part in a pipeline


def digest(trace: Trace, window: Window | None = None, *, found: Iterations | None = None, links: Links | None = None,
           idle: Idle | None = None) -> RankDigest:  # fmt: skip
    """The digest of one rank. `found`, `links`, `idle`: if they were computed already. `window`: where the trace has no iterations."""
    links = links or Links(trace)
    found = found or iterations(trace, links=links)
    busy = Busy.of(trace)
    items = found.items
    if items:
        start, end = (np.array([getattr(i, side) for i in items], np.int64) for side in ("start_ns", "end_ns"))
    else:
        low, high = (window.start_ns, window.end_ns) if window else _span(trace)
        start, end = np.array([low], np.int64), np.array([high], np.int64)
    device = len(trace.gpu) > 0
    parts = {"span": end - start, "idle": (end - start) * device - overlap(busy.every, start, end)}
    for name, times in (("compute", busy.compute), ("exposed_comm", busy.exposed), ("mem", busy.mem)):
        parts[name] = overlap(times, start, end)
    parts["kernels"] = np.searchsorted(trace.gpu.start, end) - np.searchsorted(trace.gpu.start, start)
    if idle is None and device and end[-1] > start[0]:
        idle = idle_causes(trace, Window("iterations", int(start[0]), int(end[-1])), links)
    parts["data_loader"] = np.array([i.data_loader_ns for i in items] or [0], np.int64)
    numbers = np.array([i.number for i in items], np.int64)
    return RankDigest(trace.rank, trace.path, trace.world_size, trace.base_ns, numbers, start, end, parts, calls(trace, links),
                      idle, trace.whole, bool(items), device, stage_of(trace, found, links))  # fmt: skip


def _span(trace: Trace) -> tuple[int, int]:
    gpu = trace.gpu
    return (int(gpu.start[0]), int(gpu.end.max())) if len(gpu) else (0, 0)


def compare(ranks: Sequence[RankDigest | Trace], failed: Mapping[str, str] | None = None) -> Ranks:
    """The comparison of one job's ranks. `failed`: files that gave no digest, and why; they are a result, not an error."""
    digests = sorted((digest(r) if isinstance(r, Trace) else r for r in ranks), key=lambda d: d.file)
    common = _common(digests)
    picks = [np.isin(d.numbers, common) if common is not None else np.ones(len(d.start), np.bool_) for d in digests]
    sums = [{p: int(d.parts[p][k].sum()) for p in PARTS} for d, k in zip(digests, picks, strict=True)]
    groups, alone = match([_within(d, k) for d, k in zip(digests, picks, strict=True)])
    times = clocks(groups, len(digests))
    fit = [g for g in groups if fits(g, times)]
    if len(fit) < len(groups):
        times = clocks(fit, len(digests))
    for g in fit:
        divide(g, times)
    waits, makes = _totals(fit, len(digests))
    order = sorted(range(len(digests)), key=lambda i: (digests[i].rank is None, digests[i].rank or 0, digests[i].file))
    timings = tuple(_timing(digests[i], sums[i], int(waits[i]), int(makes[i])) for i in order)
    world, missing = _missing(digests)
    gone = len(groups) - len(fit)
    return Ranks(
        timings=timings, collectives=collective_table(fit, [d.rank for d in digests]), missing=missing, failed=dict(failed or {}),
        aligned=times.aligned, notes=_notes(digests, groups, times, alone, gone, common, world, missing),
        stragglers=stragglers(digests, sums, fit, waits, makes, _entry(digests, picks, times)), waits=waits_table(digests, fit),
        iterations=None if common is None else len(common), world_size=world,
        imbalance=_imbalance([s["compute"] for s in sums]), offsets_ns=_offsets(digests, times), residual_ns=times.residual_ns,
        spreads=_spreads(digests, common), pipeline=bubbles([d.stage for d in digests if d.stage is not None]),
    )  # fmt: skip


def _common(digests: Sequence[RankDigest]) -> I64 | None:
    """The numbers of the iterations that all ranks have; None when there are none."""
    if not digests or any(not len(d.numbers) for d in digests):
        return None
    common = digests[0].numbers
    for d in digests[1:]:
        common = np.intersect1d(common, d.numbers)
    return common if len(common) else None


def _within(d: RankDigest, picks: Mask) -> tuple[Calls, ...]:
    """The calls that start in the chosen iterations, in ns since 1970 by the rank's own clock."""
    low, high = d.start[picks], d.end[picks]
    found = []
    for c in d.calls:
        row = np.searchsorted(low, c.start, side="right") - 1
        keep = (row >= 0) & (c.start < high[np.maximum(row, 0)]) if len(low) else np.zeros(len(c.start), np.bool_)
        if keep.any():
            found.append(Calls(c.group, c.members, c.keyed, c.key[keep], c.start[keep] + d.base_ns, c.end[keep] + d.base_ns,
                               c.op[keep], c.bytes[keep], c.ops, c.recorded))  # fmt: skip
    return tuple(found)


def _totals(groups: Sequence[Matched], count: int) -> tuple[I64, I64]:
    """How long each rank waited, and was waited for; both sums are the same."""
    waits, makes = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for g in groups:
        told = np.maximum(g.wait, 0)
        np.add.at(waits, g.who, told.sum(axis=1))
        np.add.at(makes, g.who[g.late], told.sum(axis=0))
    return waits, makes


def _entry(digests: Sequence[RankDigest], picks: Sequence[Mask], times: Clocks) -> I64 | None:
    """When each rank's window begins, on one clock; None when clocks do not compare."""
    if not times.aligned or not times.known.all() or any(not k.any() for k in picks):
        return None
    first = np.array([d.start[k][0] + d.base_ns for d, k in zip(digests, picks, strict=True)], np.int64)
    return first - times.offset


def _timing(d: RankDigest, sums: Mapping[str, int], waits: int, makes: int) -> RankTiming:
    return RankTiming(d.rank, d.file, sums["span"], sums["compute"], sums["exposed_comm"], sums["idle"], waits, makes,
                      mem_ns=sums["mem"], data_loader_ns=sums["data_loader"] if d.loader_known else None, kernels=sums["kernels"])  # fmt: skip


def _missing(digests: Sequence[RankDigest]) -> tuple[int | None, tuple[int, ...]]:
    """The size of the world and the ranks without a trace: by the recorded size, else by gaps in the numbering."""
    have = {d.rank for d in digests if d.rank is not None}
    recorded = [d.world_size for d in digests if d.world_size is not None and 0 < d.world_size <= 1 << 20]
    world = max(recorded) if recorded else None
    top = max(world or 0, max(have) + 1 if have and max(have) < 1 << 20 else 0)
    return world, tuple(sorted(set(range(top)) - have)) if have else ()


def _imbalance(compute: Sequence[int]) -> float | None:
    """max / mean - 1 (DeRose, Homer, Johnson: Detecting Application Load Imbalance, Euro-Par 2007, without their scaling)."""
    total = sum(compute)
    return max(compute) * len(compute) / total - 1 if len(compute) > 1 and total else None


def _spreads(digests: Sequence[RankDigest], common: I64 | None) -> tuple[Spread, ...]:
    """Compute time of each common iteration over the ranks."""
    if common is None or len(digests) < 2:
        return ()
    numbers = common[:_SPREADS]
    rows = [np.argsort(d.numbers, kind="stable") for d in digests]
    places = [r[np.searchsorted(d.numbers[r], numbers)] for d, r in zip(digests, rows, strict=True)]
    compute = np.stack([d.parts["compute"][place] for d, place in zip(digests, places, strict=True)])
    slowest, most, mean = compute.argmax(axis=0), compute.max(axis=0), compute.sum(axis=0) // len(digests)
    lines = zip(numbers.tolist(), mean.tolist(), most.tolist(), slowest.tolist(), strict=True)
    return tuple(Spread(n, low, high, digests[i].rank, digests[i].file) for n, low, high, i in lines)


def _offsets(digests: Sequence[RankDigest], times: Clocks) -> dict[str, int]:
    known = np.flatnonzero(times.known).tolist()
    if not known or not times.aligned:
        return {}
    first = min(known, key=lambda i: (digests[i].rank is None, digests[i].rank or 0))
    return {digests[i].file: int(times.offset[i] - times.offset[first]) for i in known}


def _notes(digests: Sequence[RankDigest], groups: Sequence[Matched], times: Clocks, alone: int, gone: int, common: I64 | None,
           world: int | None, missing: Sequence[int]) -> tuple[Text, ...]:  # fmt: skip
    notes = []
    if missing:
        notes.append(missing_note(missing, world))
    ranks = [d.rank for d in digests if d.rank is not None]
    if len(set(ranks)) < len(ranks):
        notes.append(
            Text("several files are of the same rank; each counts for itself", "多个文件属于同一个 rank；各自单独计算")
        )
    if common is None and any(len(d.numbers) for d in digests):
        notes.append(
            Text(
                "the ranks have no iteration in common: whole traces are compared",
                "各 rank 没有共同的迭代：比较整个轨迹",
            )
        )
    notes += _clock_notes(groups, times)
    if gone:
        notes.append(Text(f"communication streams that are not one group on all ranks, by the ends of their calls, were left out: {gone}",
                          f"{gone} 个通信流按调用结束时间判断不是所有 rank 的同一通信组，已忽略"))  # fmt: skip
    if alone:
        notes.append(
            Text(
                f"{alone} communication kernels have no partner in the other traces",
                f"{alone} 个通信 kernel 在其他轨迹中没有对应",
            )
        )
    return tuple(notes)


def _clock_notes(groups: Sequence[Matched], times: Clocks) -> list[Text]:
    if not groups:
        return [Text("no collective was recorded on two ranks: nobody can say who waits for whom",
                     "没有在两个 rank 上都记录到的集合通信：无法判断谁在等谁")]  # fmt: skip
    notes = []
    if any(not g.recorded for g in groups):
        notes.append(Text("process groups are not recorded: calls were matched by stream, iteration and order",
                          "没有记录进程组：按流、迭代和顺序匹配调用"))  # fmt: skip
    if times.aligned and times.residual_ns is not None:
        us = times.residual_ns / 1000
        notes.append(Text(f"clocks were put together by the ends of collectives; nine in ten agree to {us:,.1f} µs",
                          f"各 rank 时钟按集合通信的结束时间对齐；九成偏差不超过 {us:,.1f} µs"))  # fmt: skip
    else:
        notes.append(Text("the ranks' clocks do not compare: waiting is the time beyond the shortest participation",
                          "各 rank 的时钟不可比：等待时间为超出最短参与时间的部分"))  # fmt: skip
    return notes
