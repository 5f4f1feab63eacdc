"""All host events of a trace as one sequence: threads one behind the other, callers before what they call."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from probes.trace.columns import ABSENT, I32, I64, U8, Cat, Group, Mask
from probes.trace.model import Window
from probes.trace.nesting import self_times
from probes.trace.reading.reader import Trace
from probes.trace.trees.calltree import Kind

_HOST: Final = (
    (Group.PYTHON, Kind.PYTHON),
    (Group.MARK, Kind.MARK),
    (Group.OP, Kind.OP),
    (Group.RUNTIME, Kind.RUNTIME),
)


class Host(NamedTuple):
    """All host events in order of thread, start, and longer first."""

    start: I64
    end: I64
    name: I32  # into the trace's strings
    kind: U8
    thread: I32  # number of the thread, ascending
    group: U8
    row: I32  # in the table of the group
    threads: list[tuple[int, int]]  # (pid, tid) as string numbers


def hosts(trace: Trace) -> Host:
    """The host's events of all groups that were read, merged."""
    tables = [(g, k, trace.tables[g]) for g, k in _HOST if g in trace.tables]
    rows = [np.flatnonzero(t.cat == Cat.CPU_MARK) if g is Group.MARK else np.arange(len(t)) for g, _, t in tables]
    if not tables:
        empty, few = np.empty(0, np.int64), np.empty(0, np.int32)
        return Host(empty, empty, few, empty.astype(np.uint8), few, empty.astype(np.uint8), few, [])
    start = np.concatenate([t.start[r] for (_, _, t), r in zip(tables, rows, strict=True)])
    dur = np.concatenate([t.dur[r] for (_, _, t), r in zip(tables, rows, strict=True)])
    ids = [
        np.concatenate([t.ids(c)[r] for (_, _, t), r in zip(tables, rows, strict=True)]) for c in ("pid", "tid", "name")
    ]
    name = ids.pop()
    keys, thread = _threads(ids[0].astype(np.int64) << 32 | ids[1])
    del ids
    order = np.lexsort((-dur, start, thread))  # stable: of equals the Python frame is outside, then the annotation, ...
    group = np.repeat(np.array([g for g, _, _ in tables], np.uint8), [len(r) for r in rows])
    kind = np.repeat(np.array([k for _, k, _ in tables], np.uint8), [len(r) for r in rows])
    start, dur = start[order], dur[order]
    threads = [(k >> 32, k & 0xFFFFFFFF) for k in keys.tolist()]
    return Host(start, start + dur, name[order], kind[order], thread[order], group[order],
                np.concatenate(rows)[order].astype(np.int32), threads)  # fmt: skip


def _threads(key: I64) -> tuple[I64, I32]:
    """The distinct keys, and the number of each row's. By runs: what follows one another is mostly of one thread."""
    heads = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
    keys, which = np.unique(key[heads], return_inverse=True)
    return keys, np.repeat(which.astype(np.int32), np.diff(heads, append=len(key)))


def own_times(host: Host, parent: I64, reach: I64, window: Window | None) -> I64:
    """Self time of each host event, of its part within the window."""
    if window is None:
        return self_times(host.start, host.end, parent, reach)
    low, high = window.start_ns, window.end_ns
    start, end = np.clip(host.start, low, high), np.clip(host.end, low, high)
    return self_times(start, end, parent, np.clip(reach, low, high))


def seen(host: Host, window: Window | None) -> Mask:
    """Host events that begin in the window: those of any partition add up."""
    if window is None:
        return np.ones(len(host.start), np.bool_)
    return (host.start >= window.start_ns) & (host.start < window.end_ns)


def forward_parents(trace: Trace, host: Host, parent: I64) -> I64:
    """`parent`, but of outermost backward operators the forward operator with their sequence number.

    Sequence numbers count up on each thread, and an operator carries the number that the next graph node will get:
    so of all with one number the last to begin has made the node. The forward thread's number is one of PyTorch's
    own, not a thread id: of the threads the one counts that explains most of its backward operators.
    """
    ops = trace[Group.OP]
    here = np.flatnonzero(host.group == Group.OP)
    sequence, thread = ops.ints("sequence")[host.row[here]], ops.ints("forward_thread")[host.row[here]]
    known = (sequence != ABSENT) & (sequence >= 0)
    back = known & (thread > 0)
    is_op = host.group == Group.OP
    outer = ~((parent[here] >= 0) & is_op[parent[here]])
    makers = here[known & ~back]
    found = parent.copy()
    for number in np.unique(thread[back]).tolist()[:64]:
        mine = back & outer & (thread == number)
        best = np.empty(0, np.int64)
        for one in np.unique(host.thread[makers]).tolist()[:64]:
            some = makers[host.thread[makers] == one]
            made = _maker(host, here[mine], sequence[mine], some, ops.ints("sequence")[host.row[some]])
            if (made >= 0).sum() > (best >= 0).sum():
                best = made
        if len(best):
            found[here[mine]] = np.where(best >= 0, best, parent[here[mine]])
    return found


def _maker(host: Host, back: I64, sequence: I64, makers: I64, made: I64) -> I64:
    """Of each backward operator the last maker with its number that began before it; -1: none."""
    rows = np.concatenate([makers, back])
    number = np.concatenate([made, sequence])
    asks = np.repeat([False, True], [len(makers), len(back)])
    order = np.lexsort((~asks, host.start[rows], number))  # of equal times the asking one first: strictly before
    place = np.arange(len(rows))
    last = np.maximum.accumulate(np.where(asks[order], -1, place))
    good = (last >= 0) & (number[order][np.maximum(last, 0)] == number[order])
    found = np.full(len(rows), np.int64(-1))
    found[order] = np.where(good, rows[order][np.maximum(last, 0)], -1)
    return found[len(makers) :]
