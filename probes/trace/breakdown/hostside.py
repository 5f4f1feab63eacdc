"""What the host did while the GPU was idle: Python, operators, the data loader, synchronising calls, checkpoints.

Every gap of a device is charged to the thread that launched what ended it, as ``idle`` does; here the part of it that the
host took is looked at more closely. Times are ns, summed over devices, so that a share is of window length times devices.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import numpy as np

from knowledge.record import dataclass
from probes.trace.breakdown.idle import Cause, Gaps, thread_of
from probes.trace.columns import I64, Group, Mask, Table, wanted
from probes.trace.intervals import NOTHING, Intervals, intersect, overlap, subtract, union
from probes.trace.links import Links
from probes.trace.model import Window
from probes.trace.names.kinds import used
from probes.trace.nesting import parents_of
from probes.trace.reading.reader import Trace

NEEDS: Final = wanted(gpu="correlation device stream", runtime="correlation", op="", python="", mark="")
SAMPLES: Final = 2000  # points of time at which the running function is asked: 1 % of error at 95 % for any share
THREADS: Final = 32  # that launch and are looked at: training has two, of a server's hundreds few launch

# cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize, hip..., and copies that are not ...Async.
SYNC: Final = re.compile(r"Synchronize|^(?:cuda|hip|cu)Memcpy(?!.*Async)")
# enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__;  torch/utils/data/dataloader.py(701): __next__
LOADER: Final = re.compile(
    r"enumerate\(DataLoader\)|DataLoader\w*\.__next__|utils/data/dataloader\.py\(\d+\): __next__"
)
# torch/serialization.py(850): save; trainer.py(77): save_checkpoint; DCP: state_dict_saver.py(160): save
SAVE: Final = re.compile(
    r"(?i)serialization\.py\(\d+\): save|state_dict_saver\.py|\bsave_(?:checkpoint|pretrained|state|model)|"
    r"_save_checkpoint|\btorch\.save\b|\bcheckpoint[_ ]?sav|\bdcp\.(?:async_)?save|(?<!activation )\bsav\w* checkpoint"
)
# Functions in which a thread waits: of them nobody holds the interpreter.
_WAITING: Final = re.compile(
    r"(?i)\b(?:wait|sleep|select|poll|epoll|accept|recv\w*|acquire|join|pause|_wait_for_tstate_lock|run_backward)\b"
)
_ADDRESS: Final = re.compile(r" object at 0x[0-9a-f]+")
_LIBRARY: Final = re.compile(
    r"^(?:torch/|<built-in|<frozen|nn\.Module:|threading\.py|runpy\.py|importlib/|contextlib\.py|<string>)|"
    r"(?:site|dist)-packages/torch/|/lib/python3\.\d+/(?!site-packages)"
)


@dataclass(frozen=True, slots=True)
class HostSide:
    """Times of the window, ns; None where the trace cannot tell."""

    devices: int
    stacks: bool
    python_ns: int | None
    operators_ns: int | None
    threads_ns: int | None
    sync_calls: int | None
    loader_ns: int | None  # a thread stands in the data loader; None: no iterator was recorded
    workers: str  # none, some; empty: not known
    checkpoint_ns: int | None
    checkpoint: str = ""
    python_top: str = ""
    sync_top: str = ""


def _at(column: I64, rows: I64) -> I64:
    """`column` at `rows`, 0 for row -1."""
    return np.where(rows >= 0, column[np.maximum(rows, 0)], 0) if len(column) else np.zeros(len(rows), np.int64)


def named(trace: Trace, table: Table, pattern: re.Pattern[str]) -> Mask:
    """Rows whose name matches; of a name the first 512 characters count."""
    said = np.zeros(len(trace.strings) + 1, np.bool_)
    names = used(table.name, len(trace.strings))
    said[names] = [pattern.search(trace.strings[i][:512]) is not None for i in names.tolist()]
    return said[table.name]


def hostside(links: Links, window: Window, gaps: Gaps) -> HostSide:
    """What the host did in the gaps of the window."""
    return _Looking(links, window, gaps).result()


class _Looking:
    """One pass over the threads that launched what ended a gap."""

    def __init__(self, links: Links, window: Window, gaps: Gaps) -> None:
        self.links, self.trace, self.window, self.gaps = links, links.trace, window, gaps
        t = self.trace
        self.runtime, self.ops, self.python, self.marks = (
            t[g] for g in (Group.RUNTIME, Group.OP, Group.PYTHON, Group.MARK)
        )
        self.sync = named(t, self.runtime, SYNC)
        self.loader = [(x, named(t, x, LOADER)) for x in (self.marks, self.ops, self.python)]
        self.save = [(x, named(t, x, SAVE)) for x in (self.marks, self.ops, self.python)]
        self.waits = named(t, self.python, _WAITING)
        self.late = gaps.cause == Cause.HOST
        self.owner = np.where(self.late, _at(thread_of(self.runtime), gaps.launch), -1)
        self.threads = self._busiest()
        self.python_parts: list[tuple[int, Intervals]] = []

    def result(self) -> HostSide:
        """Everything, in one pass."""
        stacks = len(self.python) > 0
        called = bool((self.gaps.launch >= 0).any())
        parts = [self._thread(x) for x in self.threads]
        python, operators, others = (sum(p[i] for p in parts) for i in range(3))
        inside = self._inside(self.runtime)
        several = len(np.unique(thread_of(self.python))) > 1
        saved, what = self._checkpoint()
        loader, workers = self._loader()
        return HostSide(
            devices=max(1, len(np.unique(self.gaps.device))), stacks=stacks,
            python_ns=python if stacks and called else None,
            operators_ns=operators if called and len(self.ops) else None,
            threads_ns=others if stacks and called and several else None,
            sync_calls=int((self.sync & inside).sum()) if len(self.runtime) else None,
            loader_ns=loader, workers=workers, checkpoint_ns=saved, checkpoint=what,
            python_top=self._python_top() if stacks else "", sync_top=self._sync_top(),
        )  # fmt: skip

    def _busiest(self) -> list[int]:
        """The threads that ended gaps, those that ended the most of them in time first, at most `THREADS`."""
        known = self.owner >= 0
        owners, which = np.unique(self.owner[known], return_inverse=True)
        spent = np.bincount(which, weights=(self.gaps.call - self.gaps.start)[known], minlength=len(owners))
        return [int(owners[i]) for i in np.argsort(-spent, kind="stable")[:THREADS]]

    def _inside(self, table: Table) -> Mask:
        return (table.end > self.window.start_ns) & (table.start < self.window.end_ns)

    def _thread(self, thread: int) -> tuple[int, int, int]:
        """Of the gaps that this thread ended: ns in Python, in operators, and beside another Python thread."""
        g = self.gaps
        mine = self.owner == thread
        start, end = g.start[mine], g.call[mine]
        waiting = self._of(thread, self.runtime, self.sync)
        for table, mask in self.loader:
            waiting = _joined(waiting, self._of(thread, table, mask))
        ops = subtract(self._of(thread, self.ops), waiting)
        calls = _joined(waiting, self._of(thread, self.runtime))
        calls = _joined(calls, self._of(thread, self.python, self.waits))
        python = subtract(subtract(self._of(thread, self.python), calls), ops)
        self.python_parts.append((thread, _intersection(python, start, end)))
        beside = overlap(self._beside(thread), start, end)
        return int(overlap(python, start, end).sum()), int(overlap(ops, start, end).sum()), int(beside.sum())

    def _of(self, thread: int, table: Table, mask: Mask | None = None) -> Intervals:
        rows = thread_of(table) == thread
        rows = rows if mask is None else rows & mask
        return union(table.start[rows], table.end[rows])

    def _beside(self, thread: int) -> Intervals:
        """When another thread of the process runs Python and does not wait."""
        others = [busy for key, busy in self._running.items() if key != thread and key >> 32 == thread >> 32]
        if not others:
            return NOTHING
        return union(np.concatenate([o.start for o in others]), np.concatenate([o.end for o in others]))

    @cached_property
    def _running(self) -> dict[int, Intervals]:
        """For each thread when it runs Python and does not wait; of at most `THREADS` threads, those with the most calls."""
        keys = thread_of(self.python)
        threads, calls = np.unique(keys, return_counts=True)
        most = threads[np.argsort(-calls, kind="stable")[:THREADS]].tolist()
        return {k: subtract(self._of(k, self.python), self._of(k, self.python, self.waits)) for k in most}

    def _sync_top(self) -> str:
        """Who called what left the longest gaps: gaps that began within a synchronising call, without the data loader."""
        g = self.gaps
        lost: dict[int, int] = {}
        for thread in self.threads:
            rows = np.flatnonzero(self.sync & (thread_of(self.runtime) == thread))
            mine = np.flatnonzero(self.owner == thread)
            if not len(rows) or not len(mine):
                continue
            at = np.searchsorted(self.runtime.start[rows], g.start[mine], side="right") - 1
            call = rows[np.maximum(at, 0)]
            hit = (at >= 0) & (self.runtime.start[call] + self.runtime.dur[call] > g.start[mine])
            loader = NOTHING
            for table, mask in self.loader:
                loader = _joined(loader, self._of(thread, table, mask))
            start, end = g.start[mine][hit], g.end[mine][hit]
            length = end - start - overlap(loader, start, end)
            for row, ns in zip(call[hit].tolist(), length.tolist(), strict=True):
                lost[row] = lost.get(row, 0) + ns
        return self._caller(lost)

    def _caller(self, lost: dict[int, int]) -> str:
        """The operator, or the function outside of the framework, whose calls lost the most."""
        if not lost:
            return ""
        rows = np.fromiter(lost, np.int64)
        op = self.links.launch_op[rows] if len(self.ops) else np.full(len(rows), -1)
        names: dict[str, int] = {}
        longest: dict[str, int] = {}
        for row, parent, ns in zip(rows.tolist(), op.tolist(), lost.values(), strict=True):
            name = self.trace.strings[int(self.ops.name[parent] if parent >= 0 else self.runtime.name[row])]
            names[name] = names.get(name, 0) + ns
            longest[name] = max(longest.get(name, row), row, key=lambda r: lost.get(r, 0))
        top = max(sorted(names), key=names.__getitem__)
        row = longest[top]
        where = self._function(int(thread_of(self.runtime)[row]), int(self.runtime.start[row]))
        top = "aten::item" if top == "aten::_local_scalar_dense" else top
        return f"{top} in {where}" if where else top

    def _function(self, thread: int, at: int) -> str:
        """The function that runs at one moment: of the framework only when there is no other."""
        rows = np.flatnonzero((thread_of(self.python) == thread) & (self.python.start <= at) & (self.python.end > at))
        names = [self.trace.strings[int(n)] for n in self.python.name[rows][::-1]]
        return next((n for n in names if not _LIBRARY.search(n)), names[0] if names else "")

    def _loader(self) -> tuple[int | None, str]:
        """ns that a thread stands in the data loader, and who makes the batches."""
        names = {self.trace.strings[int(n)] for t, mask in self.loader for n in np.unique(t.name[mask])}
        if not names:
            return None, ""
        w = self.window
        found = NOTHING
        for table, mask in self.loader:
            found = _joined(found, union(table.start[mask], table.end[mask]))
        spent = int(overlap(found, np.array([w.start_ns]), np.array([w.end_ns]))[0])
        single, multi = (any(word in n for n in names) for word in ("SingleProcess", "MultiProcess"))
        return spent, "none" if single and not multi else "some" if multi and not single else ""

    def _checkpoint(self) -> tuple[int | None, str]:
        """ns in which the GPU was idle while something saved; None when nothing that saves was recorded."""
        hits = [(t, mask & self._inside(t)) for t, mask in self.save]
        if not any(mask.any() for _, mask in hits):
            return (0, "") if len(self.python) else (None, "")
        found = NOTHING
        names: dict[str, int] = {}
        for table, mask in hits:
            found = _joined(found, union(table.start[mask], table.end[mask]))
            for name in np.unique(table.name[mask]).tolist():
                names[self.trace.strings[name]] = int(table.dur[mask & (table.name == name)].sum())
        lost = int(overlap(found, self.gaps.start, self.gaps.end).sum())
        return lost, max(sorted(names), key=names.__getitem__)

    def _python_top(self) -> str:
        """The function that holds the most of the Python time of the gaps, asked at `SAMPLES` evenly spaced moments."""
        lengths = [(thread, part, part.total) for thread, part in self.python_parts if part.total]
        total = sum(length for _, _, length in lengths)
        counts: dict[str, int] = {}
        for thread, part, length in lengths:
            n = max(1, SAMPLES * length // total)
            for name in self._functions(thread, _points(part, n)):
                counts[name] = counts.get(name, 0) + length // n
        return _ADDRESS.sub("", max(sorted(counts), key=counts.__getitem__)) if counts else ""

    def _functions(self, thread: int, points: I64) -> list[str]:
        """For each moment the function outside of the framework that runs, and what it calls innermost."""
        rows = np.flatnonzero(thread_of(self.python) == thread)
        start, end, name = self.python.start[rows], self.python.end[rows], self.python.name[rows]
        parent = parents_of(start, end)
        out = []
        for at, point in zip((np.searchsorted(start, points, side="right") - 1).tolist(), points.tolist(), strict=True):
            here = at
            while here >= 0 and end[here] <= point:
                here = int(parent[here])
            if here < 0:
                continue
            inner = outer = self.trace.strings[int(name[here])]
            while here >= 0 and _LIBRARY.search(outer):
                here = int(parent[here])
                outer = self.trace.strings[int(name[here])] if here >= 0 else inner
            out.append(inner if outer == inner else f"{outer} > {inner}")
        return out


def _joined(a: Intervals, b: Intervals) -> Intervals:
    if not len(b.start):
        return a
    return union(np.concatenate([a.start, b.start]), np.concatenate([a.end, b.end])) if len(a.start) else b


def _intersection(a: Intervals, start: I64, end: I64) -> Intervals:
    return intersect(a, union(start, end))


def _points(part: Intervals, n: int) -> I64:
    """`n` moments, evenly spaced in the time that `part` holds."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(part.end - part.start)])
    offsets = (np.arange(n, dtype=np.int64) * 2 + 1) * part.total // (2 * n)
    which = np.searchsorted(before, offsets, side="right") - 1
    points: I64 = part.start[which] + (offsets - before[which])
    return points
