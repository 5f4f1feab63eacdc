"""The part of a trace that numbers are about, and how events are cut to it.

Unions (busy, compute, ...) take of each event what lies within [start, end). Statistics of single kernels and
operators take the events that *start* within it, whole: a kernel cut in two would falsify shortest and longest.
Either way the parts of any partition of the trace add up to the whole.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np

from knowledge.errors import InputError
from probes.trace.columns import Mask, Table
from probes.trace.model import Window
from probes.trace.reading.reader import Trace

WindowKind: TypeAlias = Literal["trace", "iterations", "auto"]
ENOUGH: Final = 3  # whole iterations from which a window of them says more than the whole trace


def window_of(trace: Trace, kind: str = "trace", marker: str = "") -> Window:
    """The window of that kind. `marker`: a regular expression (RE2) of the names of iterations; empty: the best known.

    "auto" is that of iterations where the trace holds `ENOUGH` whole ones. InputError when iterations are asked for and
    it holds none. Iterations need `iterations.NEEDS`.
    """
    if kind == "trace":
        return whole(trace)
    if kind not in ("iterations", "auto"):
        raise InputError(f"no window {kind!r}", hint="one of: trace, iterations, auto")
    from probes.trace.steps.iterations import iterations

    found = iterations(trace, marker)
    if kind == "auto" and len(found.items) < ENOUGH:
        return whole(trace)
    if not found.items:
        what = f"annotation that fits {marker!r}" if marker else "iteration marker"
        raise InputError(f"{trace.path} holds no {what}",
                         hint="mark iterations with prof.step() or record_function, or use --window trace")  # fmt: skip
    start, end = min(i.start_ns for i in found.items), max(i.end_ns for i in found.items)
    return Window("iterations", start, end, len(found.items), found.marker)


def whole(trace: Trace) -> Window:
    """First GPU start to last GPU end; [0, 0) without GPU rows."""
    gpu = trace.gpu
    if not len(gpu):
        return Window("trace", 0, 0)
    return Window("trace", int(gpu.start[0]), int(gpu.end.max()))


def starts_in(table: Table, window: Window | None) -> Mask:
    """For each row whether it starts within the window; for None all do. The last instant belongs to the window, so
    that an event of no length at its very end is counted."""
    if window is None:
        return np.ones(len(table), np.bool_)
    if window.kind == "trace":
        return (table.start >= window.start_ns) & (table.start <= window.end_ns)
    return (table.start >= window.start_ns) & (table.start < window.end_ns)
