"""How kernels were launched: calls, delays, short kernels, graphs, and how much work the device had queued."""

from __future__ import annotations

from typing import Final

import numpy as np

from probes.trace.columns import I64, Group, Mask, wanted
from probes.trace.intervals import union
from probes.trace.links import Links
from probes.trace.model import Launches, Window
from probes.trace.names.kinds import used
from probes.trace.reading.reader import Trace
from probes.trace.windows import starts_in, whole

NEEDS: Final = wanted(gpu="correlation", runtime="correlation")

SLOW_CALL_NS: Final = 50_000  # HTA, runtime outlier
LATE_NS: Final = 100_000  # HTA, launch delay outlier


def launches(trace: Trace, window: Window | None = None, links: Links | None = None) -> Launches | None:
    """Launch statistics of the kernels that start within the window.

    None when no kernel's call is known. Delays are kernel.start - (call.start + call.dur), never below zero, of the
    first kernel of each call; the later ones of a graph wait for the device, not for a call.
    """
    window = window or whole(trace)
    links = links or Links(trace)
    gpu, runtime = trace.gpu, trace[Group.RUNTIME]
    kernels = np.flatnonzero(links.kernels & (links.launch >= 0) & starts_in(gpu, window))
    if not len(kernels):
        return None
    call = links.launch[kernels]
    first = links.first_of_call[kernels]
    graph = _graph_calls(trace)[call]
    single = first & ~graph
    call_end = runtime.start[call] + runtime.dur[call]
    delay = np.maximum(gpu.start[kernels] - call_end, 0)
    head = call[first]
    mean, most, empty = _queue(call_end, gpu.start[kernels], window)
    span = window.end_ns - window.start_ns
    return Launches(
        count=len(head),
        graph_launches=int(graph[first].sum()),
        graph_kernels=int(graph.sum()),
        short_kernels=int((gpu.dur[kernels[single]] < runtime.dur[call[single]]).sum()),
        median_call_ns=_quantile(runtime.dur[head], 0.5),
        median_delay_ns=_quantile(delay[first], 0.5),
        p99_delay_ns=_quantile(delay[first], 0.99),
        slow_calls=int((runtime.dur[head] > SLOW_CALL_NS).sum()),
        late_kernels=int((delay[first] > LATE_NS).sum()),
        per_ms=len(head) * 1e6 / span if span else 0.0,
        median_kernel_ns=_quantile(gpu.dur[kernels], 0.5),
        queue_mean=mean,
        queue_max=most,
        queue_empty_share=empty,
    )


def _graph_calls(trace: Trace) -> Mask:
    """For each RUNTIME row whether it launches a graph (cudaGraphLaunch, hipGraphLaunch, cuGraphLaunch)."""
    runtime = trace[Group.RUNTIME]
    said = np.zeros(len(trace.strings) + 1, np.bool_)
    names = used(runtime.name, len(trace.strings))
    said[names] = ["GraphLaunch" in trace.strings[i] for i in names.tolist()]
    return said[runtime.name]


def _quantile(values: I64, q: float) -> int:
    """The smallest value that at least the share `q` of them does not exceed: one that occurred."""
    if not len(values):
        return 0
    at = min(int(np.ceil(q * len(values))) - 1, len(values) - 1)
    return int(np.partition(values, max(at, 0))[max(at, 0)])


def _queue(launched: I64, started: I64, window: Window) -> tuple[float, int, float]:
    """Mean (over time) and greatest number of kernels that were launched and not yet started; share of the window
    in which there was none."""
    low = np.maximum(launched, window.start_ns)
    high = np.minimum(started, window.end_ns)
    keep = high > low
    low, high = low[keep], high[keep]
    span = window.end_ns - window.start_ns
    if not len(low) or span <= 0:
        return 0.0, 0, 1.0
    some = union(low, high).total
    waiting = int((high - low).sum())
    low, high = np.sort(low), np.sort(high)
    depth = np.arange(1, len(low) + 1) - np.searchsorted(high, low, side="right")
    return waiting / span, int(depth.max()), 1 - some / span
