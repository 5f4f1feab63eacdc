"""Two windows, traces or ranks: what explains the difference of their times. The lines of each level add up to it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from knowledge.language import Text
from probes.trace.breakdown import summary
from probes.trace.columns import I64, both
from probes.trace.model import Diff, Difference, RankSummary, Window
from probes.trace.names.naming import short
from probes.trace.reading.reader import Trace
from probes.trace.trees import stacks
from probes.trace.trees.align import Aligned, align
from probes.trace.trees.calltree import CallTree, Kind, Time
from probes.trace.trees.reasons import PARTS, REST, WHY, Why, divided, why
from probes.trace.windows import whole

NEEDS: Final = both(summary.NEEDS, stacks.NEEDS)
__all__ = ["NEEDS", "PARTS", "REST", "WHY", "Why", "diff", "tree_difference", "why"]

TOP: Final = 100  # lines of a level; the others are one line, so that the sum stays whole


def diff(a: Trace, b: Trace, window_a: Window | None = None, window_b: Window | None = None, *, top: int = TOP) -> Diff:
    """What b takes more or less than a, ns.

    None: the whole trace. When the windows hold known, different numbers of iterations, all is divided by them
    (rounded so that sums stay exact). Needs `NEEDS` of both traces.
    """
    window_a, window_b = window_a or whole(a), window_b or whole(b)
    by = _divisors(window_a, window_b)
    one, two = summary.summarise(a, window_a, top=1), summary.summarise(b, window_b, top=1)
    spans = divided([one.span_ns], by[0])[0], divided([two.span_ns], by[1])[0]
    trees = stacks.tree(a, window_a), stacks.tree(b, window_b)
    return Diff(
        a=Path(a.path).name,
        b=Path(b.path).name,
        a_ns=spans[0],
        b_ns=spans[1],
        parts=_parts(one, two, by),
        kernels=kernel_lines(*trees, by, top),
        tree=device_lines(*trees, by, top),
        host=host_lines(*trees, by, top),
        notes=(*_notes(a, b, one, two), *_window_notes(window_a, window_b, by)),
        per_iteration=by != (1, 1),
    )


def tree_difference(a: Trace, b: Trace, window_a: Window | None = None, window_b: Window | None = None) -> Aligned:
    """Both traces' call trees as one, for a flame graph of their difference."""
    return align(stacks.tree(a, window_a), stacks.tree(b, window_b))


def _divisors(a: Window, b: Window) -> tuple[int, int]:
    return (a.iterations, b.iterations) if a.iterations and b.iterations and a.iterations != b.iterations else (1, 1)


def _parts(a: RankSummary, b: RankSummary, by: tuple[int, int]) -> tuple[Difference, ...]:
    causes = a.idle is not None and b.idle is not None
    rows = [_part_times(one, causes) for one in (a, b)]
    times = [divided([ns for ns, _ in row.values()], n) for row, n in zip(rows, by, strict=True)]
    counts = [[round(c / n) for _, c in row.values()] for row, n in zip(rows, by, strict=True)]
    gap = sum(times[1]) - sum(times[0])
    lines = zip(rows[0], *times, *counts, strict=True)
    return tuple(
        Difference(name, "idle" if name.startswith("idle") else "part", a_ns, b_ns, a_n, b_n, _share(b_ns - a_ns, gap),
                   why(a_ns, b_ns, 0, 0))
        for name, a_ns, b_ns, a_n, b_n in lines
    )  # fmt: skip


def _part_times(one: RankSummary, causes: bool) -> dict[str, tuple[int, int]]:
    found = {
        "compute": (one.compute_ns, one.kernels - one.comm_kernels),
        "exposed communication": (one.exposed_comm_ns, one.comm_kernels),
        "exposed copies": (one.exposed_mem_ns, one.mem_ops),
    }
    idle = one.idle
    if not causes or idle is None:
        return {**found, "idle": (one.idle_ns, 0)}
    return {
        **found,
        "idle: data loader": (idle.data_loader_ns, 0),
        "idle: synchronisation": (idle.sync_ns, 0),
        "idle: host": (idle.host_ns, 0),
        "idle: launch": (idle.launch_ns, 0),
        "idle: device": (idle.kernel_ns, 0),
        "idle: unknown": (idle.unknown_ns, 0),
    }


def _share(part: int, gap: int) -> float:
    return part / gap if gap else 0.0


def kernel_lines(a: CallTree, b: CallTree, by: tuple[int, int] = (1, 1), top: int = TOP) -> tuple[Difference, ...]:
    """Kernels, copies and sets by full name, those that explain most first."""
    found: dict[str, list[int]] = {}
    for side, tree in enumerate((a, b)):
        leaves = (tree.kind == Kind.KERNEL) | (tree.kind == Kind.COPY)
        frames, which = np.unique(tree.frame[leaves], return_inverse=True)
        sums = np.zeros((2, len(frames)), np.int64)
        np.add.at(sums[0], which, tree.gpu_ns[leaves])
        np.add.at(sums[1], which, tree.count[leaves])
        for frame, ns, count in zip(frames.tolist(), *sums.tolist(), strict=True):
            row = found.setdefault(tree.names[frame], [0, 0, 0, 0])
            row[side], row[2 + side] = ns, count
    names = sorted(found)
    columns = np.array([found[n] for n in names], np.int64).reshape(-1, 4).T
    order, times = _ranked(columns[0], columns[1], by, top)
    lines = [Difference(names[i], "kernel", *_line(columns, times, i, by)) for i in order.tolist()]
    return _with_rest(lines, "kernel", columns, times, order, by)


def _ranked(a: I64, b: I64, by: tuple[int, int], top: int) -> tuple[I64, tuple[list[int], list[int]]]:
    """The rows that differ most, and all rows' times by iteration."""
    times = divided(a.tolist(), by[0]), divided(b.tolist(), by[1])
    gaps = np.abs(np.array(times[1], np.int64) - np.array(times[0], np.int64))
    busy = np.flatnonzero((a != 0) | (b != 0) | (gaps != 0))
    order = busy[np.lexsort((-np.maximum(a, b)[busy], -gaps[busy]))]
    return order[:top], times


def _line(
    columns: I64, times: tuple[list[int], list[int]], i: int, by: tuple[int, int]
) -> tuple[int, int, int, int, float, Why]:
    a_ns, b_ns = times[0][i], times[1][i]
    a_n, b_n = int(columns[2][i]), int(columns[3][i])
    gap = sum(times[1]) - sum(times[0])
    return (
        a_ns,
        b_ns,
        round(a_n / by[0]),
        round(b_n / by[1]),
        _share(b_ns - a_ns, gap),
        why(a_ns, b_ns, a_n / by[0], b_n / by[1]),
    )


def _with_rest(lines: list[Difference], kind: str, columns: I64, times: tuple[list[int], list[int]], order: I64,
               by: tuple[int, int]) -> tuple[Difference, ...]:  # fmt: skip
    left = np.ones(columns.shape[1], np.bool_)
    left[order] = False
    a_ns, b_ns = sum(times[0]) - sum(x.a_ns for x in lines), sum(times[1]) - sum(x.b_ns for x in lines)
    a_n, b_n = (round(int(columns[2 + side][left].sum()) / by[side]) for side in (0, 1))
    if not left.any() or (a_ns == b_ns == a_n == b_n == 0):
        return tuple(lines)
    gap = sum(times[1]) - sum(times[0])
    rest = Difference(REST, kind, a_ns, b_ns, a_n, b_n, _share(b_ns - a_ns, gap), why(a_ns, b_ns, a_n, b_n))
    return (*lines, rest)


def device_lines(a: CallTree, b: CallTree, by: tuple[int, int] = (1, 1), top: int = TOP) -> tuple[Difference, ...]:
    """Device time by what launched it: operators, annotations and modules aligned by path, kernels told in `detail`.

    Python frames take no part in the alignment, so that a new wrapper function does not make all below it new.
    """
    drop = {Kind.PYTHON, Kind.RUNTIME}
    if not all((t.kind == Kind.MODULE).any() for t in (a, b)):
        drop.add(Kind.MODULE)  # one of them has no stacks
    pair = align(a, b, frozenset(drop))
    leaves = np.flatnonzero((pair.both.kind == Kind.KERNEL) | (pair.both.kind == Kind.COPY))
    owners, which = np.unique(pair.both.parent[leaves], return_inverse=True)
    columns = _sums(pair, leaves, which, len(owners), "gpu")
    order, times = _ranked(columns[0], columns[1], by, top)
    lines = []
    for i in order.tolist():
        kind = Kind(pair.both.kind[owners[i]]) if owners[i] >= 0 else Kind.ROOT
        detail = None if kind is Kind.ROOT else _moved(pair, leaves[which == i])
        line = _line(columns, times, i, by)
        reason = Why.MOVED if detail is not None and _mostly_moved(pair, leaves[which == i]) else line[-1]
        frames = tuple(pair.both.path(int(owners[i])))
        lines.append(Difference(_abridged(frames), _word(kind), *line[:-1], reason, detail, frames))
    return _with_rest(lines, "operator", columns, times, order, by)


def _sums(pair: Aligned, rows: I64, which: I64, size: int, time: Time) -> I64:
    found = np.zeros((4, size), np.int64)
    for side, tree in enumerate((pair.a, pair.b)):
        np.add.at(found[side], which, tree.own(time)[rows])
        np.add.at(found[2 + side], which, tree.count[rows])
    return found


def _moved(pair: Aligned, leaves: I64) -> Text | None:
    """Says which kernel replaced which, where the same caller launches others."""
    gone = [i for i in leaves.tolist() if pair.a.count[i] and not pair.b.count[i]]
    new = [i for i in leaves.tolist() if pair.b.count[i] and not pair.a.count[i]]
    if not gone or not new:
        return None
    before, after = (_longest(tree, rows) for tree, rows in ((pair.a, gone), (pair.b, new)))
    return Text(f"{before} became {after}", f"{before} 变为 {after}")


def _mostly_moved(pair: Aligned, leaves: I64) -> bool:
    """Whether kernels of one side only take a fourth of a side's time: less is no reason to name them first."""
    sides = ((pair.a, pair.b), (pair.b, pair.a))
    return any(
        4 * int(one.gpu_ns[leaves][other.count[leaves] == 0].sum()) >= int(one.gpu_ns[leaves].sum())
        for one, other in sides
    )


def _longest(tree: CallTree, rows: list[int]) -> str:
    rows = sorted(rows, key=lambda i: (-int(tree.gpu_ns[i]), tree.name(i)))
    return ", ".join(short(tree.name(i)) for i in rows[:3]) + (f" (+{len(rows) - 3})" if len(rows) > 3 else "")


def host_lines(a: CallTree, b: CallTree, by: tuple[int, int] = (1, 1), top: int = TOP) -> tuple[Difference, ...]:
    """Self time on the host by path: Python frames, operators and runtime calls."""
    drop: set[Kind] = set()
    if not all(((t.kind == Kind.PYTHON) | (t.kind == Kind.MODULE)).any() for t in (a, b)):
        drop = {Kind.PYTHON, Kind.MODULE}
    pair = align(a, b, frozenset(drop))
    nodes = np.flatnonzero((pair.both.kind != Kind.KERNEL) & (pair.both.kind != Kind.COPY))
    columns = _sums(pair, nodes, np.arange(len(nodes)), len(nodes), "cpu")
    order, times = _ranked(columns[0], columns[1], by, top)
    lines = []
    for i in order.tolist():
        frames = tuple(pair.both.path(int(nodes[i])))
        word = _word(Kind(pair.both.kind[nodes[i]]))
        line = _line(columns, times, i, by)
        lines.append(Difference(_abridged(frames), word, *line, None, frames))
    return _with_rest(lines, "operator", columns, times, order, by)


def _word(kind: Kind) -> str:
    return {Kind.OP: "operator", Kind.MARK: "annotation", Kind.ROOT: "thread"}.get(kind, kind.name.lower())


def _abridged(frames: tuple[str, ...], parts: int = 6) -> str:
    """The thread and the innermost frames."""
    shown = frames if len(frames) <= parts + 1 else (frames[0], "...", *frames[-(parts - 1) :])
    return " > ".join(short(f) for f in shown)


def _notes(a: Trace, b: Trace, one: RankSummary, two: RankSummary) -> list[Text]:
    notes = []
    if a.device_name != b.device_name:
        left, right = a.device_name or "?", b.device_name or "?"
        notes.append(Text(f"different GPUs: {left} and {right}", f"GPU 型号不同：{left} 与 {right}"))
    if one.devices != two.devices:
        notes.append(Text(f"different numbers of devices: {one.devices} and {two.devices}",
                          f"设备数量不同：{one.devices} 与 {two.devices}"))  # fmt: skip
    if a.world_size != b.world_size and a.world_size and b.world_size:
        notes.append(Text(f"different world sizes: {a.world_size} and {b.world_size}",
                          f"world size 不同：{a.world_size} 与 {b.world_size}"))  # fmt: skip
    return notes


def _window_notes(a: Window, b: Window, by: tuple[int, int]) -> list[Text]:
    if by != (1, 1):
        return [Text(f"the windows hold {by[0]} and {by[1]} iterations: all times and counts are per iteration",
                     f"两个窗口分别含 {by[0]} 和 {by[1]} 次迭代：所有时间和次数均按单次迭代计")]  # fmt: skip
    if a.kind != b.kind:
        return [Text(f"different windows: {a.kind} and {b.kind}", f"窗口类型不同：{a.kind} 与 {b.kind}")]
    if a.iterations is None or b.iterations is None:
        return [Text("the windows' numbers of iterations are not known: times are those of the whole windows",
                     "窗口的迭代次数未知：时间为整个窗口的时间")]  # fmt: skip
    return []
