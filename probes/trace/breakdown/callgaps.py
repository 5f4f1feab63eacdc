"""What runtime calls cost the device: gaps by the call that ended them, and gaps while a thread stood in certain calls.

Times are ns, summed over devices, of gaps that waited for the host (`idle.Cause.HOST`), cut to the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probes.trace.breakdown.idle import LATE_NS, Cause, Gaps, thread_of
from probes.trace.columns import I64, Group, Mask
from probes.trace.intervals import overlap, union
from probes.trace.links import groups
from probes.trace.model import Window
from probes.trace.reading.reader import Trace


class Slow(NamedTuple):
    """The runtime call that left the most idle time between its start and the start of what it launched."""

    name: str
    idle_ns: int  # of all gaps that such a call ended, from the call's start on, at most 100 us behind its end
    calls: int  # that ended a gap
    longest_ns: int  # the longest of these calls, on the host


def slowest(trace: Trace, window: Window, gaps: Gaps) -> Slow | None:
    """None when no gap was ended by a call that is known."""
    rows = np.flatnonzero(gaps.cause == Cause.HOST)
    if not len(rows):
        return None
    runtime = trace[Group.RUNTIME]
    call = gaps.launch[rows]
    due = runtime.start[call] + runtime.dur[call] + LATE_NS  # what begins later waited for something else (`idle`)
    high = np.minimum(np.minimum(gaps.end[rows], due), window.end_ns)
    lost = high - np.maximum(gaps.call[rows], window.start_ns)
    call, lost = call[lost > 0], lost[lost > 0]
    if not len(call):
        return None
    names, which = np.unique(runtime.name[call], return_inverse=True)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, which, lost)
    top = int(np.argmax(total))
    mine = call[which == top]
    return Slow(trace.strings[int(names[top])], int(total[top]), len(mine), int(runtime.dur[mine].max()))


def longest(window: Window, gaps: Gaps) -> int:
    """The longest single gap of a device within the window, ns: beside the sum it tells one stall from many."""
    size = np.minimum(gaps.end, window.end_ns) - np.maximum(gaps.start, window.start_ns)
    return max(int(size.max()), 0) if len(size) else 0


def idle_within(trace: Trace, window: Window, gaps: Gaps, calls: Mask) -> int:
    """Idle time of the devices while the thread that launched what ended the gap stood in one of the runtime rows
    `calls`."""
    runtime = trace[Group.RUNTIME]
    low, high = np.maximum(gaps.start, window.start_ns), np.minimum(gaps.call, window.end_ns)
    waited = np.flatnonzero((gaps.cause == Cause.HOST) & (high > low))
    rows = np.flatnonzero(calls)
    if not len(waited) or not len(rows):
        return 0
    thread, owner = thread_of(runtime)[rows], thread_of(runtime)[gaps.launch[waited]]
    spent: dict[int, I64] = {int(thread[part[0]]): rows[part] for part in groups(thread)}
    total = 0
    for part in groups(owner):
        at = spent.get(int(owner[part[0]]))
        if at is not None:
            busy = union(runtime.start[at], runtime.end[at])
            total += int(overlap(busy, low[waited[part]], high[waited[part]]).sum())
    return total
