"""The iterations of one rank, on the device's clock, with what each spent its time on.

An iteration's kernels are those whose launch call stands within its mark on the host, on any thread (autograd has its
own): the device may run whole iterations behind. Kineto's own device-side marks know only the launches of the mark's
thread (measured: 18 us of a 16 ms step on ROCm), so they serve where no launch calls were recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.breakdown.utilisation import factors
from probes.trace.columns import ABSENT, I64, Cat, Group, Mask, Table, wanted
from probes.trace.intervals import Intervals, overlap, subtract, union
from probes.trace.links import Links
from probes.trace.model import Iteration, Iterations
from probes.trace.names.classify import is_communication
from probes.trace.reading.reader import Trace
from probes.trace.steps.markers import Marks, Step, find, numbers, step_of
from probes.trace.steps.outliers import with_outliers
from probes.trace.steps.recorded import loader_waits, recorded, step_kinds

NEEDS: Final = wanted(gpu="correlation", runtime="correlation", mark="loss gradnorm", op="", python="")

LOST: Final = -2


_DEVICE_SIDE: Final = Text(
    "iterations are the device-side marks, which may lack the work of other threads",
    "迭代取自设备侧标记，可能缺少其他线程的工作",
)


@dataclass(frozen=True, slots=True)
class Busy:
    """What the device did, as exact sets of time."""

    compute: Intervals
    comm: Intervals
    exposed: Intervals
    mem: Intervals
    every: Intervals

    @classmethod
    def of(cls, trace: Trace) -> Busy:
        """The sets of the whole trace, by the definitions of the temporal breakdown."""
        gpu = trace.gpu
        kernels = np.equal(gpu.cat, Cat.KERNEL)
        talks = kernels & communicates(trace)
        computes = kernels & ~talks
        start, end = gpu.start, gpu.end
        compute, comm = union(start[computes], end[computes]), union(start[talks], end[talks])
        mem = union(start[~kernels], end[~kernels])
        return cls(compute, comm, subtract(comm, compute), mem, union(start, end))


def communicates(trace: Trace) -> Mask:
    """The rows of the device's table whose name is that of a communication kernel."""
    gpu = trace.gpu
    names = np.unique(gpu.name)
    talks = np.fromiter((is_communication(trace.strings[n]) for n in names.tolist()), np.bool_, len(names))
    return np.isin(gpu.name, names[talks])


@dataclass(slots=True)
class _Windows:
    """Marks and their windows on a clock; `keep` are those in which the device did anything."""

    clock: str
    start: I64
    end: I64
    keep: Mask
    notes: tuple[Text, ...]


def iterations(trace: Trace, marker: str = "", links: Links | None = None) -> Iterations:
    """The iterations of `trace`: marks whose name `marker` (a regular expression of RE2) finds, else the best known kind.

    Empty, with a note, when there are no such marks. InputError for an expression that RE2 does not take.
    """
    marks = find(trace, marker)
    if not len(marks):
        note = Text("the trace holds no mark of iterations", "轨迹中没有迭代标记")
        return Iterations(trace.rank, trace.path, "", "", (), None, (note,))
    windows = _windows(trace, marks, links or Links(trace))
    items, notes = with_outliers(_measure(trace, marks, windows))
    spans = [item.span_ns for item in items]
    median = int(np.median(spans)) if spans else None
    return Iterations(trace.rank, trace.path, marks.marker, windows.clock, items, median,
                      (*marks.notes, *windows.notes, *notes), _between(items), device=len(trace.gpu) > 0)  # fmt: skip


def _between(items: tuple[Iteration, ...]) -> int | None:
    if not items:
        return None
    inside = union(np.array([i.start_ns for i in items], np.int64), np.array([i.end_ns for i in items], np.int64))
    return int(inside.end[-1] - inside.start[0]) - inside.total if len(inside.start) else 0


def _windows(trace: Trace, marks: Marks, links: Links) -> _Windows:
    if marks.device:
        return _Windows("gpu", marks.start, marks.end, np.ones(len(marks), np.bool_), (_DEVICE_SIDE,))
    mine = launched_in(trace, marks, links)
    if (mine >= 0).any() and float((mine > LOST).mean()) > 0.5:
        return _by_launch(trace.gpu, marks, mine, links)
    if (found := _device_marks(trace, marks)) is not None:
        return found
    note = Text("no kernel could be charged to an iteration by its launch: iterations are those of the host's clock",
                "无法按启动调用将 kernel 归到迭代：迭代按主机时钟划分")  # fmt: skip
    if not len(trace.gpu):
        note = Text(
            "the trace holds no work of a device: only the host's times are known", "轨迹中没有设备工作：只知道主机时间"
        )
    return _Windows("cpu", marks.start, marks.end, np.ones(len(marks), np.bool_), (note,))


def launched_in(trace: Trace, marks: Marks, links: Links) -> I64:
    """For each device row the mark in which it was launched; -1: outside of all; LOST: its launch is not recorded."""
    calls = trace.tables.get(Group.RUNTIME)
    if calls is None or not len(calls):
        return np.full(len(trace.gpu), LOST, np.int64)
    launch = links.launch
    at = calls.start[np.maximum(launch, 0)]
    row = np.searchsorted(marks.start, at, side="right") - 1
    if not marks.tiled:  # what stands between two marks belongs to neither
        row = np.where((row >= 0) & (at < marks.end[np.maximum(row, 0)]), row, -1)
    else:
        row = np.where(at < marks.end[-1], row, -1)
    return np.where(launch >= 0, row, LOST)


def _by_launch(gpu: Table, marks: Marks, mine: I64, links: Links) -> _Windows:
    """From the first kernel launched in the mark to the end of the last; of marks that follow on each other the idle
    time before an iteration's first kernel is its own, back to the end of the iteration before."""
    n, inside = len(marks), mine >= 0
    low, high = _reach(gpu, mine, inside, n)
    keep = high > low
    low, high = low[keep], _ends(links.trace, mine, high, keep)
    first = _first_start(gpu, int(marks.start[int(keep.argmax())]), int(high[0]), links) if marks.tiled else int(low[0])
    before = np.concatenate([np.array([first], np.int64), high[:-1]])
    low = before if marks.tiled else np.maximum(low, before)
    full_low, full_high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    full_low[keep], full_high[keep] = low, np.maximum(high, low)
    within = (gpu.start >= first) & (gpu.start < high[-1])
    notes = _launch_notes(int((~keep).sum()), float((mine[within] == LOST).mean()) if within.any() else 0.0)
    return _Windows("gpu", full_low, full_high, keep & (full_high > full_low), notes)


def _reach(gpu: Table, mine: I64, rows: Mask, n: int) -> tuple[I64, I64]:
    """First start and last end of the rows of each of `n` marks; the start is above the end where there are none."""
    low, high = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(low, mine[rows], gpu.start[rows])
    np.maximum.at(high, mine[rows], gpu.end[rows])
    return low, high


def _ends(trace: Trace, mine: I64, high: I64, keep: Mask) -> I64:
    """Where the iterations end. One that leaves something running on a side stream (a checkpoint's copy, a gather ahead
    of its time) when the next one's work begins on the main stream is over with its own last work there."""
    gpu = trace.gpu
    stream = gpu.ids("pid").astype(np.int64) << 32 | (gpu.ids("tid").astype(np.int64) & 0xFFFFFFFF)
    streams, which = factors(stream)
    last = high[keep]
    if len(streams) > 1:
        computes = np.equal(gpu.cat, Cat.KERNEL) & ~communicates(trace) & (mine >= 0)
        time = np.bincount(which, weights=np.where(computes, gpu.dur, 0).astype(np.float64), minlength=len(streams))
        begins, ends = _reach(gpu, mine, (which == int(time.argmax())) & (mine >= 0), len(keep))
        later = np.append(begins[keep][1:], np.iinfo(np.int64).max)
        last = np.where((last > later) & (ends[keep] > begins[keep]), ends[keep], last)
    return np.maximum.accumulate(last)


def _launch_notes(empty: int, lost: float) -> tuple[Text, ...]:
    notes = []
    if lost > 0.001:
        notes.append(Text(f"of {lost:.1%} of the device's work in the iterations the launch is not recorded; it counts where it ran",
                          f"迭代中 {lost:.1%} 的设备工作没有启动记录，按其运行时间归属"))  # fmt: skip
    if empty:
        notes.append(
            Text(f"{empty} marks without any work on the device were left out", f"{empty} 个没有设备工作的标记已忽略")
        )
    return tuple(notes)


def _first_start(gpu: Table, mark: int, end: int, links: Links) -> int:
    """Where the first of iterations that follow on each other begins: with its mark, or later, when what was launched
    before it is done. A kernel whose call is not recorded was launched before the recording began when its correlation
    id is below all those that are: they count up."""
    launch = links.launch
    known = launch >= 0
    at = links.trace[Group.RUNTIME].start[np.maximum(launch, 0)]
    ids = gpu.ints("correlation")
    earlier = (known & (at < mark)) | (~known & (ids != ABSENT) & (ids < ids[known].min()))
    done = int(gpu.end[earlier].max()) if earlier.any() else mark
    return max(mark, done) if done < end else mark


def _device_marks(trace: Trace, marks: Marks) -> _Windows | None:
    """Windows from the device's own marks of the same names; one mark may have one on each stream."""
    table = trace.tables.get(Group.MARK)
    if table is None:
        return None
    table = table.take(np.equal(table.cat, Cat.GPU_MARK))
    first: dict[str, tuple[int, int]] = {}
    wanted_names = {trace.strings.find(name) for name in marks.names} - {-1}
    for number in wanted_names:
        hit = table.name == number
        if hit.any():
            first[trace.strings[number]] = int(table.start[hit].min()), int(table.end[hit].max())
    if len(set(marks.names)) < len(marks) or not first:
        return None
    keep = np.array([name in first for name in marks.names], np.bool_)
    low, high = (np.array([first.get(name, (0, 0))[side] for name in marks.names], np.int64) for side in (0, 1))
    return _Windows("gpu", low, high, keep, (_DEVICE_SIDE,))


def _measure(trace: Trace, marks: Marks, windows: _Windows) -> tuple[Iteration, ...]:
    which = np.flatnonzero(windows.keep)
    start, end = windows.start[which], windows.end[which]
    busy = Busy.of(trace)
    every = overlap(busy.every, start, end)
    columns = [overlap(s, start, end) for s in (busy.compute, busy.comm, busy.exposed, busy.mem)]
    gpu = trace.gpu
    count = np.searchsorted(gpu.start, end) - np.searchsorted(gpu.start, start)
    host, until = marks.start[which], marks.end[which]
    loader = overlap(loader_waits(trace, marks), host, until)
    loss, norm = recorded(trace, marks, "loss"), recorded(trace, marks, "gradnorm")
    words = marks.words or step_kinds(trace, marks)
    ids = list(numbers(marks))
    return tuple(
        _with_step(marks.names[i], words[i], Iteration(
            number=ids[i], name=marks.names[i], start_ns=int(start[k]), end_ns=int(end[k]), compute_ns=int(columns[0][k]),
            comm_ns=int(columns[1][k]), exposed_comm_ns=int(columns[2][k]), mem_ns=int(columns[3][k]),
            idle_ns=int(end[k] - start[k] - every[k]) if len(gpu) else 0, data_loader_ns=int(loader[k]), kernels=int(count[k]),
            loss=loss.get(i), gradnorm=norm.get(i), cpu_start_ns=int(host[k]), cpu_end_ns=int(until[k])))
        for k, i in enumerate(which.tolist())
    )  # fmt: skip


def _with_step(name: str, word: str, item: Iteration) -> Iteration:
    step = Step(word) if word else step_of(name)
    return replace(item, kind=step.kind, batch=step.batch, tokens=step.tokens) if step.kind else item
