"""What the report shows of one trace beyond its digest: timeline, utilisation, call stacks, all kernels and operators.

All of it is bounded and can be sent between processes; the trace is not kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from assistant.report.inputs import Flame
from knowledge.record import dataclass
from probes.trace.breakdown import kernels, operators, timeline, utilisation
from probes.trace.breakdown.timeline import Timeline
from probes.trace.breakdown.utilisation import HeatRow
from probes.trace.columns import Wanted, both
from probes.trace.model import Iterations, KernelStat, OpStat, Window
from probes.trace.names.classify import is_communication
from probes.trace.reading.reader import Trace
from probes.trace.trees import stacks
from probes.trace.trees.calltree import CallTree, Kind, Time

NEEDS: Final[Wanted] = both(timeline.NEEDS, utilisation.NEEDS, kernels.NEEDS, operators.NEEDS, stacks.NEEDS)
FRAMES: Final = 12_000  # of a flame graph, the widest
LEAST: Final = 1 / 4_000  # of the whole: a quarter of a pixel, and less than anybody looks for
ROWS: Final = 400  # of a table

_COLOUR: Final = {Kind.PYTHON: 0, Kind.MODULE: 0, Kind.OP: 1, Kind.RUNTIME: 2, Kind.KERNEL: 3, Kind.COPY: 6}


@dataclass(frozen=True, slots=True)
class Parts:
    """Keywords for `assistant.report.build`."""

    timeline: Timeline
    heat: tuple[HeatRow, ...]
    trees: tuple[Flame, ...]
    kernels: tuple[KernelStat, ...]
    ops: tuple[OpStat, ...]


def parts(trace: Trace, window: Window | None = None, iterations: Iterations | None = None, top: int = ROWS) -> Parts:
    """The parts of `trace`, which was read with `NEEDS`; with `iterations` exact events of the slowest and a usual one."""
    if window is not None and window.end_ns <= window.start_ns:
        window = None  # of a trace without GPU activity: the host's side is shown whole
    tree = stacks.tree(trace, window)
    graphs = (flame(tree, "gpu"), flame(tree, "cpu"))
    return Parts(
        timeline=timeline.timeline(trace, window, focus=_focus(iterations)),
        heat=utilisation.heat(trace, window),
        trees=tuple(g for g in graphs if g.total_ns > 0),
        kernels=kernels.kernel_stats(trace, window=window, top=top),
        ops=operators.op_stats(trace, window=window, top=top),
    )


def _focus(iterations: Iterations | None) -> list[tuple[int, int]]:
    if iterations is None or not iterations.items:
        return []
    by_length = sorted(iterations.items, key=lambda i: i.span_ns)
    chosen = dict.fromkeys((by_length[len(by_length) // 2], by_length[-1]))
    return sorted((i.start_ns, i.end_ns) for i in chosen)


def _colour(kind: int, name: str) -> int:
    return 5 if kind == Kind.KERNEL and is_communication(name) else _COLOUR.get(Kind(kind), 4)


def flame(tree: CallTree, time: Time) -> Flame:
    """`tree` laid out from left to right, the longest frame of each first, without what is too narrow to be seen."""
    total = tree.total(time)
    top = np.asarray(tree.parent) < 0
    whole = int(total[top].sum())
    least = max(int(whole * LEAST), int(np.sort(total)[-FRAMES]) if len(total) > FRAMES else 1, 1)
    nodes = np.flatnonzero(total >= least)
    nodes = nodes[np.lexsort((-total[nodes], tree.depth[nodes]))]  # level by level, the longest first
    x0 = np.zeros(len(total), np.int64)  # where a node begins; of a parent: where its next child does
    begins = np.zeros(len(nodes), np.int64)
    at = 0
    for n, node in enumerate(nodes.tolist()):
        above = int(tree.parent[node])
        begins[n] = x0[node] = x0[above] if above >= 0 else at
        if above >= 0:
            x0[above] += total[node]
        else:
            at += int(total[node])
    order = np.lexsort((tree.depth[nodes], begins))  # parents before children, as they stand
    nodes, begins = nodes[order], begins[order]
    own = tree.own(time)
    kept = np.zeros(len(total), np.bool_)
    kept[nodes] = True
    names, name = np.unique(tree.frame[nodes], return_inverse=True)
    return Flame(
        time=time,
        depth=tree.depth[nodes].tolist(),
        x0=begins.tolist(),
        width=total[nodes].tolist(),
        name=name.ravel().tolist(),
        kind=[
            _colour(k, tree.names[f])
            for k, f in zip(tree.kind[nodes].tolist(), tree.frame[nodes].tolist(), strict=True)
        ],
        names=[tree.names[i] for i in names.tolist()],
        total_ns=whole,
        lost_ns=int(own[~kept].sum()),
        least=least / whole if whole else 0.0,
    )
