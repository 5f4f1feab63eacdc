"""The longest idle gaps, and what the host was in meanwhile."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from probes.trace.breakdown.idle import Gaps, find_gaps, is_data_loader, shares, thread_of
from probes.trace.breakdown.places import is_users, named
from probes.trace.columns import I64, Group, Table
from probes.trace.model import Gap, Window
from probes.trace.reading.reader import Trace

_CAUSES: Final = ("data_loader", "sync", "host", "launch", "kernel", "unknown")
_STEP: Final = "ProfilerStep#"


class _Where(NamedTuple):
    """Part of a gap, and the thread that launched what ended it."""

    start: int
    end: int
    thread: int


def gaps_of(trace: Trace, window: Window, top: int) -> tuple[Gap, ...]:
    """See `idle.gaps`."""
    found = find_gaps(trace, None, window)
    parts = shares(trace, found, window)
    order = np.lexsort((found.start, -parts.size))[:top]
    order = order[parts.size[order] > 0]
    steps = _steps(trace)
    return tuple(_gap(trace, window, found, int(i), _cause(parts, int(i)), steps) for i in order.tolist())


def _cause(parts: object, row: int) -> str:
    return max(_CAUSES, key=lambda cause: int(getattr(parts, cause)[row]))  # the first of equals


def _gap(trace: Trace, window: Window, gaps: Gaps, row: int, cause: str, steps: Table | None) -> Gap:
    start, end = max(int(gaps.start[row]), window.start_ns), min(int(gaps.end[row]), window.end_ns)
    kernel, launch = int(gaps.kernel[row]), int(gaps.launch[row])
    blame, kind = "", ""
    if launch >= 0 and cause != "kernel":
        call = min(max(int(gaps.call[row]), start), end)
        low, high = (call, end) if cause == "launch" else (start, call)
        thread = int(thread_of(trace[Group.RUNTIME])[launch])
        blame, kind = blamed(trace, low, high, thread, loader=cause == "data_loader")
    return Gap(
        start_ns=start,
        end_ns=end,
        cause=cause,
        kernel=trace.strings[trace.gpu.name[kernel]] if kernel >= 0 else "",
        blame=blame,
        blame_kind=kind,
        iteration=_iteration(trace, steps, start),
        device=int(trace.gpu.ints("device")[kernel]) if kernel >= 0 else 0,
    )


def blamed(trace: Trace, start_ns: int, end_ns: int, thread: int, *, loader: bool = False) -> tuple[str, str]:
    """Name and kind of what `thread` (`idle.thread_of`) was in for most of [start_ns, end_ns).

    The innermost range that covers at least half of it: the user's Python function; else any Python function, else an
    operator, an annotation, a runtime call. Of a wait for data the loader's own range. Empty when nothing was recorded.
    """
    where = _Where(start_ns, max(end_ns, start_ns + 1), thread)
    if loader:
        for group in (Group.MARK, Group.OP):
            if group in trace.tables and (name := _covering(trace, group, where, "loader")):
                return name, "annotation"
    for group, only, kind in ((Group.PYTHON, "users", "python"), (Group.PYTHON, "", "python"), (Group.OP, "", "operator"),
                              (Group.MARK, "", "annotation"), (Group.RUNTIME, "", "runtime")):  # fmt: skip
        if group in trace.tables and (name := _covering(trace, group, where, only)):
            return name, kind
    return "", ""


def _covering(trace: Trace, group: Group, where: _Where, only: str) -> str:
    table = trace[group]
    upto = int(np.searchsorted(table.start, where.end, side="left"))
    start, dur = table.start[:upto], table.dur[:upto]
    shared = np.minimum(start + dur, where.end) - np.maximum(start, where.start)
    rows = np.flatnonzero(2 * shared >= where.end - where.start)
    rows = rows[thread_of(table.take(rows)) == where.thread]
    if only:
        rows = rows[named(trace, table.take(rows), is_users if only == "users" else is_data_loader)]
    return trace.strings[table.name[rows[-1]]] if len(rows) else ""  # in order of start: the last is the innermost


def _steps(trace: Trace) -> Table | None:
    if Group.MARK not in trace.tables:
        return None
    marks = trace[Group.MARK]
    return marks.take(np.flatnonzero(named(trace, marks, lambda name: name.startswith(_STEP))))


def _iteration(trace: Trace, steps: Table | None, at: int) -> str:
    if steps is None:
        return ""
    rows: I64 = np.flatnonzero((steps.start <= at) & (steps.start + steps.dur > at))
    return trace.strings[steps.name[rows[-1]]] if len(rows) else ""
