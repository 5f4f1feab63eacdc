"""Flame graphs: where each node stands (`layout`), and a tree of bars for a terminal (`text`). `svg` draws it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.columns import I32, I64, Mask
from probes.trace.names.naming import short
from probes.trace.trees.calltree import CallTree, Kind, Time

SMALLEST: Final = 0.001  # of the whole: a pixel and a bit of 1,200
_BAR: Final = 20
KINDS: Final[dict[Kind, Text]] = {
    Kind.ROOT: Text("thread", "线程"),
    Kind.PYTHON: Text("Python", "Python"),
    Kind.MODULE: Text("module", "模块"),
    Kind.MARK: Text("annotation", "标注"),
    Kind.OP: Text("operator", "算子"),
    Kind.RUNTIME: Text("runtime call", "运行时调用"),
    Kind.KERNEL: Text("kernel", "kernel"),
    Kind.COPY: Text("copy or set", "拷贝或置值"),
    Kind.FRAME: Text("frame", "栈帧"),
}


@dataclass(frozen=True, eq=False)
class Layout:
    """Boxes of a flame graph, callers before callees. The whole is [0, total) wide; the largest child stands first."""

    depth: I32  # 0 for threads
    x0: I64  # ns from the left
    width: I64  # ns: with all that it calls
    node: I64  # of the tree
    total: int  # ns
    cut: int  # ns of the boxes that are too narrow to be shown


def layout(tree: CallTree, time: Time = "gpu", min_share: float = SMALLEST) -> Layout:
    """Boxes of the nodes that take at least `min_share` of the whole; what the others took is told in `cut`."""
    width = tree.total(time)
    total = int(tree.own(time).sum())
    floor = max(1, int(np.ceil(total * min_share)))
    keep = width >= floor
    x0 = np.zeros(len(tree), np.int64)
    for nodes in tree.levels:
        _place(tree, nodes, width, x0)
    shown = np.concatenate([nodes[keep[nodes]] for nodes in tree.levels]) if tree.levels else np.empty(0, np.int64)
    parent = tree.parent
    top = ~keep & np.where(parent >= 0, keep[np.maximum(parent, 0)], True)
    return Layout(tree.depth[shown], x0[shown], width[shown], shown, total, int(width[top].sum()))


def _place(tree: CallTree, nodes: I64, width: I64, x0: I64) -> None:
    """Sets where the nodes of one level begin: side by side from their parent's left edge, the largest first."""
    parent = tree.parent[nodes].astype(np.int64)
    order = np.lexsort((-width[nodes], parent))
    nodes, parent = nodes[order], parent[order]
    before = np.cumsum(width[nodes]) - width[nodes]
    first = np.flatnonzero(np.diff(parent, prepend=-2))
    base = np.repeat(before[first], np.diff(first, append=len(nodes)))
    left = np.where(parent >= 0, x0[np.maximum(parent, 0)], 0)
    x0[nodes] = left + before - base


def duration(value: int, unit: str = "nanoseconds") -> str:
    """12.3 ms; of samples their number."""
    if unit != "nanoseconds":
        return f"{value:,}"
    for size, word in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if abs(value) >= size:
            return f"{value / size:,.3g} {word}" if abs(value) < 1000 * size else f"{value / size:,.0f} {word}"
    return f"{value} ns"


def text(tree: CallTree, time: Time = "gpu", *, depth: int | None = None, min_share: float = 0.01, width: int = 100,
         lang: str = "en") -> Iterator[str]:  # fmt: skip
    """Lines of an indented tree with bars, largest first.

    A chain of callers that only call one another is one line, its outermost and innermost frame. `depth` counts
    lines below a thread; what is below `min_share` of the whole is summed up in the last line.
    """
    totals = tree.total(time)
    whole = int(tree.own(time).sum())
    if not whole:
        yield Text("no such time was recorded", "未记录此类时间").in_(lang)
        return
    floor = max(1, int(np.ceil(whole * min_share)))
    children = _children(tree, totals, totals >= floor)
    shown = np.zeros(len(tree), np.bool_)
    pending = [(node, 0) for node in reversed(children.get(-1, []))]
    while pending:
        node, level = pending.pop()
        last = node
        while level and len(below := children.get(last, [])) == 1 and totals[below[0]] * 100 >= totals[last] * 99:
            shown[last] = True
            last = below[0]
        shown[last] = True
        yield _line(tree, node, last, level, int(totals[node]), whole, width)
        if depth is None or level < depth:
            pending += [(child, level + 1) for child in reversed(children.get(last, []))]
    left = whole - _seen(tree, time, shown)
    if left:
        yield Text(f"{left / whole:6.1%} of it in frames that have no line here: below {min_share:.3g} of the whole each, or deeper",
                   f"其中 {left / whole:.1%} 位于此处未列出的栈帧：各自占比低于 {min_share:.3g}，或层级更深").in_(lang)  # fmt: skip


def _children(tree: CallTree, totals: I64, keep: Mask) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    rows = np.flatnonzero(keep)
    for node in rows[np.lexsort((rows, -totals[rows]))].tolist():
        found.setdefault(int(tree.parent[node]), []).append(node)
    return found


def _line(tree: CallTree, node: int, last: int, level: int, value: int, whole: int, width: int) -> str:
    bar = "█" * round(value / whole * _BAR)
    head = f"{value / whole:6.1%} {duration(value, tree.unit):>9} {bar:<{_BAR}} {'  ' * min(level, 20)}"
    room = max(width - len(head), 24)
    if node == last:
        return head + short(tree.name(node), room)
    way = " > " if int(tree.parent[last]) == node else " > … > "
    return f"{head}{short(tree.name(node), room // 2 - 4)}{way}{short(tree.name(last), room - room // 2 - 5)}"


def _seen(tree: CallTree, time: Time, shown: Mask) -> int:
    """Own time of all nodes that have a line."""
    return int(tree.own(time)[shown].sum())
