"""What annotations say of iterations: waiting for data, optimizer steps, loss and gradient norm."""

from __future__ import annotations

from typing import Final

import numpy as np
import re2

from probes.trace.columns import Cat, Group, Table
from probes.trace.intervals import Intervals, union
from probes.trace.reading.reader import Trace
from probes.trace.steps.markers import Marks, named

_LOADER: Final = r"^enumerate\(DataLoader\)#|DataLoader\w*\.__next__$"
_VALUES: Final = {
    "loss": r"(?i)(?:^|[^a-z])(?:[a-z]+_)?loss\s*[=:]\s*([-+0-9.e]{1,32}|nan|[-+]?inf)",
    "gradnorm": r"(?i)grad_?norm\s*[=:]\s*([-+0-9.e]{1,32}|nan|[-+]?inf)",
}


def _tables(trace: Trace) -> list[Table]:
    found = [trace.tables.get(g) for g in (Group.MARK, Group.OP)]
    return [t for t in found if t is not None and len(t)]


def loader_waits(trace: Trace, marks: Marks) -> Intervals:
    """When the thread of the marks stood in a data loader."""
    pattern, starts, ends = re2.compile(_LOADER), [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for table in _tables(trace):
        hit = named(trace, table, pattern) & np.not_equal(table.cat, Cat.GPU_MARK)
        hit &= (table["pid"] == marks.thread[0]) & (table["tid"] == marks.thread[1])
        starts.append(table.start[hit])
        ends.append(table.end[hit])
    return union(np.concatenate(starts), np.concatenate(ends))


def recorded(trace: Trace, marks: Marks, column: str) -> dict[int, float]:
    """The last value recorded within each mark: an argument of an annotation, or a name such as ``loss=1.234``."""
    found: list[tuple[int, float]] = []
    search = re2.compile(_VALUES[column])
    for table in _tables(trace):
        if column in table:
            rows = np.flatnonzero(~np.isnan(table[column]))
            found += zip(table.start[rows].tolist(), table[column][rows].tolist(), strict=True)
        rows = np.flatnonzero(named(trace, table, search))
        for at, name in zip(table.start[rows].tolist(), table.name[rows].tolist(), strict=True):
            if (value := _float(search.search(trace.strings[name])[1])) is not None:
                found.append((at, value))
    found.sort(key=lambda pair: pair[0])
    at = np.array([pair[0] for pair in found], np.int64)
    row = np.searchsorted(marks.start, at, side="right") - 1
    inside = (row >= 0) & (at < marks.end[np.maximum(row, 0)])
    return {int(r): found[i][1] for i, r in enumerate(row.tolist()) if inside[i]}


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "1.2.3", "e": the pattern is wider than a number
        return None


def step_kinds(trace: Trace, marks: Marks) -> list[str]:
    """update and accumulate, where some iterations step the optimizer and others only add to the gradients."""
    steps = [np.empty(0, np.int64)]
    for table in _tables(trace):
        hit = named(trace, table, re2.compile(r"^Optimizer\.step#")) & np.not_equal(table.cat, Cat.GPU_MARK)
        steps.append(table.start[hit])
    at = np.sort(np.concatenate(steps))
    count = np.searchsorted(at, marks.end) - np.searchsorted(at, marks.start)
    told = bool(count.any()) and not bool(count.all())
    return ["update" if c else "accumulate" for c in count.tolist()] if told else [""] * len(marks)
