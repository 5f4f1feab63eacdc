"""The temporal breakdown of one rank: compute, communication, memory operations and idle, exact to the nanosecond.

busy = |U(all GPU rows)|, compute = |U(kernels that are no communication)|, comm and mem likewise; exposed parts are
what is left after compute (and, for memory, communication) is taken away, so that always
``compute + exposed_comm + exposed_mem + idle == span`` (TraceLens' exposed times, HTA's idle).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from knowledge.language import Text
from probes.trace.breakdown import idle as idle_
from probes.trace.breakdown import kernels, launches
from probes.trace.columns import I64, Cat, Group, Mask, both, wanted
from probes.trace.intervals import Intervals, clip, intersect, subtract, union
from probes.trace.links import Links, groups
from probes.trace.model import RankSummary, StreamUse, TensorCoreShare, Window
from probes.trace.names import kinds
from probes.trace.reading.reader import Trace
from probes.trace.windows import starts_in, whole

NEEDS: Final = both(wanted(gpu="correlation device stream"), idle_.NEEDS, launches.NEEDS)


_FEW: Final = 0.01  # of the kernels: what is less is not worth a note


class Parts(NamedTuple):
    """The unions of a window, cut to it."""

    busy: Intervals
    compute: Intervals
    comm: Intervals
    mem: Intervals


def parts(trace: Trace, window: Window | None = None, comm: Mask | None = None) -> Parts:
    """The unions of all GPU rows, of the kernels that compute, of those that communicate, and of copies and sets."""
    gpu = trace.gpu
    start, end = gpu.start, gpu.end
    comm = kinds.communication(trace) if comm is None else comm
    memory = np.not_equal(gpu.cat, Cat.KERNEL)
    found = [union(start[m], end[m]) for m in (~(comm | memory), comm, memory)]
    busy = union(start, end)
    if window is not None and window.kind != "trace":
        busy, *found = (clip(u, window.start_ns, window.end_ns) for u in (busy, *found))
    return Parts(busy, *found)


def summarise(
    trace: Trace,
    window: Window | None = None,
    top: int = 10,
    links: Links | None = None,
    gaps: idle_.Gaps | None = None,
) -> RankSummary:
    """The summary of one rank. `window`: None is the whole trace; `top`: how many kernels are listed.

    `links` and `gaps` (those of the window) spare what was found already.

    A trace without GPU rows gives zeros, None where nothing can be known, and a note that says how to record them.
    Needs `NEEDS`.
    """
    window = window or whole(trace)
    gpu = trace.gpu
    comm = kinds.communication(trace)
    inside = starts_in(gpu, window)
    kernel = np.equal(gpu.cat, Cat.KERNEL)
    links = links or Links(trace)
    return RankSummary(
        rank=trace.rank,
        file=Path(trace.path).name,
        window=window,
        **_times(trace, window, comm),
        kernels=int((kernel & inside).sum()),
        comm_kernels=int((comm & inside).sum()),
        mem_ops=int((~kernel & inside).sum()),
        top_kernels=kernels.kernel_stats(trace, "name", window, top),
        idle=idle_.idle(trace, window, links, gaps),
        launches=launches.launches(trace, window, links),
        streams=streams(trace, window, comm),
        tensor_core=tensor_core_share(trace, window),
        classes=class_times(trace, window),
        devices=len(np.unique(gpu.ints("device"))) if len(gpu) else 0,
        gpu=trace.device_name,
        world_size=trace.world_size,
        whole=trace.whole,
        notes=(*trace.notes, *_notes(trace, links)),
    )


def _times(trace: Trace, window: Window, comm: Mask) -> dict[str, int]:
    times = parts(trace, window, comm)
    span = window.end_ns - window.start_ns if len(trace.gpu) else 0  # without GPU rows nobody knows whether it was idle
    return {
        "span_ns": span,
        "busy_ns": times.busy.total,
        "idle_ns": span - times.busy.total,
        "compute_ns": times.compute.total,
        "comm_ns": times.comm.total,
        "mem_ns": times.mem.total,
        "comm_compute_overlap_ns": intersect(times.comm, times.compute).total,
        "exposed_comm_ns": subtract(times.comm, times.compute).total,
        "exposed_mem_ns": subtract(subtract(times.mem, times.compute), times.comm).total,
    }


def _notes(trace: Trace, links: Links) -> list[Text]:
    if not len(trace.gpu):
        return [Text(
            "the trace holds no GPU activity: record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            "该 trace 不含 GPU 活动：请用 activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] 重新采集")]  # fmt: skip
    found = []
    kernels = np.flatnonzero(links.kernels)
    call = links.launch[kernels]
    known = call >= 0
    missing = len(kernels) - int(known.sum())
    if missing > _FEW * len(kernels):
        found.append(Text(
            f"the launch calls of {missing} of {len(kernels)} kernels were not recorded (made before the recording began, "
            "or not traced); why the device was idle before these kernels is unknown",
            f"{len(kernels)} 个 kernel 中有 {missing} 个的启动调用未被记录（在采集开始之前发出，或未被追踪），这些 kernel 之前设备空闲的原因未知"))  # fmt: skip
    early = int((trace.gpu.start[kernels[known]] < trace[Group.RUNTIME].start[call[known]]).sum())
    if early > _FEW * len(kernels):
        found.append(Text(
            f"{early} of {len(kernels)} kernels start before the call that launched them: the clocks of host and device "
            "disagree, launch delays and causes of idle time are unreliable",
            f"{len(kernels)} 个 kernel 中有 {early} 个的开始时间早于启动它的调用：主机与设备时钟不一致，启动延迟与空闲原因不可靠"))  # fmt: skip
    if (devices := len(np.unique(trace.gpu.ints("device")))) > 1:
        found.append(Text(
            f"the file holds {devices} devices: busy is where any of them is busy; causes of idle time are summed over "
            "those that run kernels",
            f"文件含 {devices} 个设备：任一设备忙碌即计为忙碌；空闲原因按运行 kernel 的设备求和"))  # fmt: skip
    return found


def streams(trace: Trace, window: Window | None = None, comm: Mask | None = None) -> tuple[StreamUse, ...]:
    """Each stream's own busy time, in order of that."""
    gpu = trace.gpu
    if not len(gpu):
        return ()
    window = window or whole(trace)
    comm = kinds.communication(trace, gpu) if comm is None else comm
    inside = starts_in(gpu, window) & np.equal(gpu.cat, Cat.KERNEL)
    found = [
        _stream(trace, of_device[part], inside, comm, window)
        for of_device in groups(gpu.ints("device"))
        for part in groups(gpu.ids("stream")[of_device].astype(np.int64))
    ]
    return tuple(sorted(found, key=lambda s: (-s.busy_ns, s.device, s.stream)))


def _stream(trace: Trace, rows: I64, kernel: Mask, comm: Mask, window: Window) -> StreamUse:
    gpu = trace.gpu

    def covered(which: I64) -> int:
        start = gpu.start[which]
        return clip(union(start, start + gpu.dur[which]), window.start_ns, window.end_ns).total

    return StreamUse(
        device=max(int(gpu.ints("device")[rows[0]]), -1),
        stream=trace.strings[int(gpu.ids("stream")[rows[0]])],
        busy_ns=covered(rows),
        kernels=int(kernel[rows].sum()),
        comm_ns=covered(rows[comm[rows]]),
    )


def class_times(trace: Trace, window: Window | None = None) -> dict[str, int]:
    """Summed time of the window's kernels by class, longest first; copies and sets are not in it."""
    gpu = trace.gpu
    which = starts_in(gpu, window) & np.equal(gpu.cat, Cat.KERNEL)
    total = np.zeros(len(kinds.CLASSES), np.int64)
    np.add.at(total, kinds.classes(trace)[which], gpu.dur[which])
    found = {str(c): int(ns) for c, ns in zip(kinds.CLASSES, total.tolist(), strict=True) if ns}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def tensor_core_share(trace: Trace, window: Window | None = None) -> TensorCoreShare | None:
    """Kernel time by what names say of tensor cores. None without kernels."""
    gpu = trace.gpu
    which = starts_in(gpu, window) & np.equal(gpu.cat, Cat.KERNEL)
    total = np.zeros(len(kinds.TENSOR_CORES), np.int64)
    np.add.at(total, kinds.tensor_cores(trace)[which], gpu.dur[which])
    if not (whole_ns := int(total.sum())):
        return None
    shares = {str(t): ns / whole_ns for t, ns in zip(kinds.TENSOR_CORES, total.tolist(), strict=True)}
    return TensorCoreShare(**shares)
