"""Bubbles of pipeline parallelism: when a stage's device waits for its neighbours' activations or gradients.

A receive kernel stands on the device and spins until the data comes, and computing waits for it by an event. So a bubble
is a gap in all other work in which a send or receive kernel stands. The drain of the first stages at a step's end,
where they wait in the optimizer's collectives, is not seen so: it counts as waiting there (`ranks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from knowledge.language import Text
from probes.trace.across.collectives import NEEDS as _CALLS
from probes.trace.across.collectives import CallKind, kinds_of, of_kernel, ranks_in
from probes.trace.columns import I64, Cat, Mask, both
from probes.trace.intervals import Intervals, complement, overlap, subtract, union
from probes.trace.links import Links
from probes.trace.model import Iterations, Pipeline, PipelineStage
from probes.trace.reading.reader import Trace
from probes.trace.steps.iterations import NEEDS as _ITERATIONS
from probes.trace.steps.iterations import communicates, iterations

NEEDS: Final = both(_CALLS, _ITERATIONS)

_POINT: Final = frozenset({"send", "recv", "send_recv", "sendrecv", "isend", "irecv", "batch_isend_irecv"})
_UNTOLD: Final = frozenset({"coalesced", ""})  # grouped calls: the kernel's name tells what they are


def stage_of(trace: Trace, found: Iterations | None = None, links: Links | None = None) -> PipelineStage | None:
    """The bubbles of one rank, over its iterations or its whole trace. None when it sends and receives nothing."""
    links = links or Links(trace)
    kernels = np.equal(trace.gpu.cat, Cat.KERNEL)
    rows = np.flatnonzero(kernels & communicates(trace))
    if not len(rows):
        return None
    kinds, which = kinds_of(trace, links, rows)
    told = [_evidence(trace, k) for k in kinds]
    point = np.array([bool(t) for t in told], np.bool_)[which]
    if not point.any():
        return None
    found = found or iterations(trace, links=links)
    start, end = _windows(trace, found)
    sends, bubble = _bubbles(trace, rows[point], int(start[0]), int(end[-1]))
    inside = _inside(trace.gpu.start[rows[point]], start, end)
    members = _pipeline_group([kinds[k] for k in np.unique(which[point]).tolist()], trace)
    place = members.index(trace.rank) if trace.rank in members else None
    count = len(found.items) or None
    used = {told[k] for k in np.unique(which[point]).tolist()}
    return PipelineStage(
        rank=trace.rank, file=trace.path, stage=place, stages=len(members) or None, window_ns=int((end - start).sum()),
        bubble_ns=int(overlap(bubble, start, end).sum()), exposed_ns=int(overlap(sends, start, end).sum()),
        transfers=int(inside.sum()), iterations=count, evidence="recorded" if used == {"recorded"} else "annotation",
        microbatches=_microbatches(trace, kinds, which[point][inside], place, len(members), count),
    )  # fmt: skip


def _evidence(trace: Trace, kind: CallKind) -> str:
    """How we know that a call sends to or receives from one rank; empty: it does not, or only its kernel's name says so,
    which is that of an all-to-all as well."""
    for number, how in ((kind.recorded, "recorded"), (kind.around, "annotation")):
        if number >= 0:
            said = trace.strings[number].rsplit(":", 1)[-1].strip().lower()
            point = said in _POINT or (said in _UNTOLD and of_kernel(trace.strings[kind.name]) in _POINT)
            return how if point else ""
    return ""


def _windows(trace: Trace, found: Iterations) -> tuple[I64, I64]:
    if found.items and found.device:
        return (
            np.array([i.start_ns for i in found.items], np.int64),
            np.array([i.end_ns for i in found.items], np.int64),
        )
    return trace.gpu.start[:1], np.array([trace.gpu.end.max()], np.int64)


def _inside(at: I64, start: I64, end: I64) -> Mask:
    row = np.searchsorted(start, at, side="right") - 1
    return (row >= 0) & (at < end[np.maximum(row, 0)])


def _bubbles(trace: Trace, point: I64, first: int, last: int) -> tuple[Intervals, Intervals]:
    """When nothing but sends and receives ran; and the whole gaps in other work in which that was so."""
    gpu = trace.gpu
    other = np.ones(len(gpu), np.bool_)
    other[point] = False
    start, end = gpu.start, gpu.end
    work = union(start[other], end[other])
    exposed = subtract(union(start[point], end[point]), work)
    gaps = complement(work, first, last)
    hit = overlap(exposed, gaps.start, gaps.end) > 0
    return exposed, Intervals(gaps.start[hit], gaps.end[hit])


def _pipeline_group(kinds: Sequence[CallKind], trace: Trace) -> tuple[int, ...]:
    """The ranks of the largest recorded group that sends and receives; empty when none is recorded."""
    groups = {ranks_in(trace.strings[k.ranks]) for k in kinds if k.ranks >= 0}
    return max(groups, key=lambda g: (len(g), g), default=())


def _microbatches(
    trace: Trace, kinds: Sequence[CallKind], calls: I64, place: int | None, depth: int, count: int | None
) -> int | None:
    """Sends of an end stage in one iteration: each micro-batch leaves the first stage once forwards, the last once backwards.

    None where sends cannot be told from receives (grouped calls), in the middle, or where iterations differ.
    """
    if not count or place is None or place not in (0, depth - 1) or depth < 2:
        return None
    words = [
        trace.strings[n].rsplit(":", 1)[-1].lower()
        for n in (k.recorded if k.recorded >= 0 else k.around for k in kinds)
    ]
    sends = int(np.array([w in ("send", "isend") for w in words], np.bool_)[calls].sum())
    return sends // count if sends and sends % count == 0 else None


def bubbles(stages: Sequence[PipelineStage]) -> Pipeline | None:
    """The pipeline out of its stages; None without any."""
    if not stages:
        return None
    depth = max((s.stages for s in stages if s.stages is not None), default=None)
    counted = {s.microbatches for s in stages if s.microbatches is not None}
    micro = counted.pop() if len(counted) == 1 else None
    window = sum(s.window_ns for s in stages)
    order = sorted(stages, key=lambda s: (s.stage is None, s.stage or 0, s.rank is None, s.rank or 0, s.file))
    return Pipeline(
        stages=tuple(order), depth=depth, microbatches=micro, fraction=sum(s.bubble_ns for s in stages) / window if window else 0.0,
        ideal=(depth - 1) / (micro + depth - 1) if depth and micro else None, notes=_notes(depth, micro),
    )  # fmt: skip


def _notes(depth: int | None, micro: int | None) -> tuple[Text, ...]:
    notes = []
    if depth is None:
        notes.append(
            Text(
                "the pipeline's group is not recorded: the stage of a rank is not known",
                "未记录流水线通信组：不知道 rank 所在的阶段",
            )
        )
    elif micro is None:
        notes.append(
            Text(
                "micro-batches cannot be counted: the ideal bubble is not known",
                "无法统计 micro-batch 数量：不知道理想气泡比例",
            )
        )
    return tuple(notes)
