"""Unified call stacks of a trace: Python frame, module, annotation, operator, runtime call and kernel in one tree.

Host events nest by time on their thread; of an instant the innermost open event has the host time, so that the
tree's host time is the union of each thread's events, exactly. A kernel's device time is charged to the stack of
its launch (of a graph replay: of the graph's launch), so that the tree's device time is the sum of all kernels,
copies and sets, exactly.

Python frames nest by time as well. ``Python parent id`` names the same parent for all 16,525 frames of five recorded
traces and for 98 to 99 % of three others; in the rest it names a caller further out, where C code called back into
Python, and it says nothing where the caller began before the recording.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from knowledge.language import Text
from probes.trace.breakdown.hostrows import Host, forward_parents, hosts, own_times, seen
from probes.trace.columns import I32, I64, NO_TEXT, Cat, Group, Mask, both, wanted
from probes.trace.links import Links, matching
from probes.trace.model import Window
from probes.trace.names.kinds import used
from probes.trace.nesting import callers_of, depths, parents_of, reaches
from probes.trace.reading.reader import Trace
from probes.trace.trees.calltree import DEEPEST, CallTree, Grower, Kind, tally
from probes.trace.trees.flame import layout
from probes.trace.trees.folded import folded
from probes.trace.trees.speedscope import speedscope
from probes.trace.windows import starts_in

__all__ = ["NEEDS", "NOT_RECORDED", "folded", "layout", "speedscope", "tree"]

NEEDS: Final = both(
    wanted(gpu="correlation external", runtime="correlation", op="external sequence forward_thread call_stack"),
    wanted(python="", mark=""),
)
NOT_RECORDED: Final = "launch not recorded"

_NUMBERED: Final = re.compile(r"#\d+$")  # ProfilerStep#12: all steps are one frame


def tree(trace: Trace, window: Window | None = None, *, forward: bool = False) -> CallTree:
    """The calling-context tree, with a root for each thread.

    `window`: host events are cut to it, device events count whole when they start in it; None: everything.
    `forward`: operators of the backward pass hang below the operator of the forward pass that created them
    (``Sequence number`` and ``Fwd thread id``), not below their own thread. Needs `NEEDS`.
    """
    host = hosts(trace)
    first = np.flatnonzero(np.diff(host.thread, prepend=-1))
    parent = parents_of(host.start, host.end, _mask(first, len(host.start)))
    own = own_times(host, parent, reaches(host.end, parent), window)
    parent = callers_of(host.end, parent)
    if forward:
        parent = forward_parents(trace, host, parent)
    depth, mine = depths(parent), seen(host, window)
    host = host._replace(start=parent[:0], end=parent[:0])  # no longer needed: of millions of frames 100 MB
    names, grower = _Names(trace), Grower()
    roots = _roots(trace, host.threads, grower, names)
    node = _nodes(trace, host, parent, depth, grower, names, roots)
    gpu_node, inside = _device(trace, host, node, grower, names, window)
    above, frame, kind = grower.columns()
    size = grower.size
    count = tally(node[mine], None, size) + tally(gpu_node[inside], None, size)
    gpu_ns = tally(gpu_node[inside], trace.gpu.dur[inside], size)
    found = CallTree(names.texts, above, frame, kind, tally(node, own, size), gpu_ns, count, title=trace.path)
    found.notes += _notes(depth, found)
    return found.pruned()


def _mask(rows: I64, size: int) -> Mask:
    found = np.zeros(size, np.bool_)
    found[rows] = True
    return found


class _Names:
    """Frames' texts: the trace's strings that are used, with their counters cut off, and our own."""

    def __init__(self, trace: Trace) -> None:
        self.texts: list[str] = []
        self._ids: dict[str, int] = {}
        self._trace = trace

    def add(self, text: str) -> int:
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = len(self.texts)
            self.texts.append(text)
        return found

    def of(self, numbers: I32) -> I64:
        """Frames of the trace's strings."""
        strings = self._trace.strings
        frames = np.full(len(strings) + 1, np.int64(-1))
        for i in used(numbers, len(strings)).tolist():
            frames[i] = self.add(_NUMBERED.sub("", strings[i]) or strings[i])
        return frames[numbers]


def _roots(trace: Trace, threads: list[tuple[int, int]], grower: Grower, names: _Names) -> I64:
    """The root node of each thread."""
    many = len({pid for pid, _ in threads}) > 1
    frames = []
    for pid, tid in ((trace.strings[p], trace.strings[t]) for p, t in threads):
        name = trace.meta.thread.get((pid, tid), "")
        process = f"process {pid} " if many else ""
        frames.append(names.add(f"{process}thread {tid}" + (f" ({name})" if name and tid not in name else "")))
    kind = np.full(len(frames), Kind.ROOT, np.uint8)
    return grower.add(np.full(len(frames), np.int64(-1)), np.array(frames, np.int64), kind)


def _nodes(trace: Trace, host: Host, parent: I64, depth: I32, grower: Grower, names: _Names, roots: I64) -> I64:
    """The node of each host event."""
    frame = names.of(host.name)
    kind = host.kind.copy()
    module = np.array([t.startswith("nn.Module: ") for t in names.texts] or [False], np.bool_)
    kind[(kind == Kind.PYTHON) & module[frame]] = Kind.MODULE
    stack = _call_stacks(trace, host, parent)
    chains = _Chains(trace, grower, names)
    node = np.empty(len(frame), np.int64)
    shallow = np.minimum(depth, DEEPEST).astype(np.int16)  # 16 bits: sorted by digits
    order = np.argsort(shallow, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(shallow[order])) + 1) if len(order) else []:
        if depth[rows[0]] >= DEEPEST:
            node[rows] = node[_ancestor(parent, depth, rows)]
            continue
        up = parent[rows]
        above = np.where(up >= 0, node[up], roots[host.thread[rows]])
        if stack is not None:
            above = chains.below(above, stack[rows])
        node[rows] = grower.add(above, frame[rows], kind[rows])
    return node


def _ancestor(parent: I64, depth: I32, rows: I64) -> I64:
    """The ancestor of each row that is deep enough to be the last of the tree."""
    up = parent.copy()
    found = up[rows]
    while len(deep := np.flatnonzero(depth[found] >= DEEPEST)):
        found[deep] = up[found[deep]]
        far = rows[depth[up[rows]] >= DEEPEST]
        up[far] = up[up[far]]
    return found


def _call_stacks(trace: Trace, host: Host, parent: I64) -> I32 | None:
    """The recorded Python stack of each outermost operator (``Call stack``), where no Python frames were recorded."""
    if (host.kind == Kind.PYTHON).any() or Group.OP not in trace.tables or "call_stack" not in trace[Group.OP]:
        return None
    ops = trace[Group.OP].ids("call_stack")
    empty = trace.strings.find("")
    is_op = host.kind == Kind.OP
    outer = is_op & ~((parent >= 0) & is_op[parent])
    found = np.full(len(host.row), NO_TEXT, np.int32)
    found[outer] = ops[host.row[outer]]
    found[found == empty] = NO_TEXT
    return found if (found >= 0).any() else None


class _Chains:
    """Nodes of recorded Python stacks, each once below its node."""

    def __init__(self, trace: Trace, grower: Grower, names: _Names) -> None:
        self._trace, self._grower, self._names = trace, grower, names
        self._nodes: dict[tuple[int, int], int] = {}

    def below(self, above: I64, stack: I32) -> I64:
        """The innermost frame of each row's stack below its node; the node itself where there is none."""
        found = above.copy()
        have = np.flatnonzero(stack >= 0)
        pairs, which = np.unique(np.stack([above[have], stack[have]]), axis=1, return_inverse=True)
        ends = [self._end(a, s) for a, s in pairs.T.tolist()]
        if ends:
            found[have] = np.array(ends, np.int64)[which.reshape(-1)]
        return found

    def _end(self, above: int, stack: int) -> int:
        # innermost first, as torch's jit::currentCallstack gives it
        for text in reversed(self._trace.strings[stack].split(";")[:DEEPEST]):
            if not text.strip():
                continue
            frame = self._names.add(text.strip())
            if (above, frame) not in self._nodes:
                self._nodes[above, frame] = self._grower.one(above, frame, Kind.PYTHON)
            above = self._nodes[above, frame]
        return above


def _device(
    trace: Trace, host: Host, node: I64, grower: Grower, names: _Names, window: Window | None
) -> tuple[I64, Mask]:
    """The node of each device event, and which of them count."""
    gpu = trace.gpu
    inside = starts_in(gpu, window)
    above = _launchers(trace, host, node)
    if (lost := above < 0).any():
        above[lost] = grower.one(-1, names.add(NOT_RECORDED), Kind.ROOT)
    kind = np.where(gpu.cat == Cat.KERNEL, Kind.KERNEL, Kind.COPY).astype(np.uint8)
    return grower.add(above, names.of(gpu.name), kind), inside


def _launchers(trace: Trace, host: Host, node: I64) -> I64:
    """The node from which each device event was launched: its call, else the operator of its external id; -1: neither."""
    gpu = trace.gpu
    found = np.full(len(gpu), np.int64(-1))
    if Group.OP in trace.tables and "external" in gpu and "external" in trace[Group.OP]:
        found = _pick(matching(gpu.ints("external"), trace[Group.OP].ints("external")), host, node, Group.OP, found)
    if Group.RUNTIME in trace.tables:
        found = _pick(Links(trace).launch, host, node, Group.RUNTIME, found)
    return found


def _pick(row: I64, host: Host, node: I64, group: Group, otherwise: I64) -> I64:
    here = np.flatnonzero(host.group == group)
    of_row = np.empty(len(here), np.int64)
    of_row[host.row[here]] = node[here]
    found = otherwise.copy()
    found[row >= 0] = of_row[row[row >= 0]]
    return found


def _notes(depth: I32, found: CallTree) -> list[Text]:
    notes = []
    if not ((found.kind == Kind.PYTHON) | (found.kind == Kind.MODULE)).any():
        notes.append(Text("no Python frames were recorded: with_stack=True in the profiler adds them",
                          "未记录 Python 栈帧：在 profiler 中设置 with_stack=True 即可记录"))  # fmt: skip
    if len(depth) and int(depth.max()) >= DEEPEST:
        notes.append(
            Text(f"stacks deeper than {DEEPEST} frames were cut there", f"深度超过 {DEEPEST} 帧的调用栈已在该处截断")
        )
    lost = (
        int(
            found.total("gpu")[
                (found.kind == Kind.ROOT) & np.array([found.names[f] == NOT_RECORDED for f in found.frame])
            ].sum()
        )
        if len(found)
        else 0
    )
    if lost:
        share = lost / max(int(found.gpu_ns.sum()), 1)
        notes.append(Text(f"the launch of {share:.1%} of the device time was not recorded",
                          f"{share:.1%} 的设备时间未记录到对应的启动调用"))  # fmt: skip
    return notes
