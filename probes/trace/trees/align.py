"""Two call trees as one: nodes that mean the same, found by path, with the times of both sides."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from knowledge.record import dataclass
from probes.trace.columns import I32, I64, U8, Mask
from probes.trace.names.naming import frame_of
from probes.trace.nesting import depths
from probes.trace.trees.calltree import CallTree, Grower, Kind, Time, tally

Pair: TypeAlias = tuple[CallTree, CallTree]

BACKWARD: Final = "autograd::engine::"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"(?<=[(=#])\s?\d[\d.,]*")  # step[DECODE bs=32], forward(batch=7), batch#7
_DIGITS = re.compile(r"\d+")


@dataclass(eq=False)
class Aligned:
    """The union of two trees. `both` holds its nodes with the times of a and b added; the columns keep them apart."""

    both: CallTree
    a: CallTree  # the same nodes, times and counts of a
    b: CallTree

    def delta(self, time: Time) -> I64:
        """Self time of b less that of a, of each node, ns."""
        return self.b.own(time) - self.a.own(time)


def align(a: CallTree, b: CallTree, drop: frozenset[Kind] = frozenset()) -> Aligned:
    """Nodes by path: threads by their role, Python frames by file and function (lines move), annotations without their
    numbers, all else by name. Nodes of the kinds in `drop` leave their times to the node above them."""
    names: dict[str, int] = {}
    frames = [_canonical(tree, names) for tree in (a, b)]
    nodes = _grown((a, b), frames, drop, grower := Grower())
    columns = grower.columns()
    texts = list(names)
    left, right = (_side(t, n, drop, (texts, *columns)) for t, n in zip((a, b), nodes, strict=True))
    both = CallTree(texts, *columns, left.cpu_ns + right.cpu_ns, left.gpu_ns + right.gpu_ns,
                    left.count + right.count, f"{a.title} | {b.title}", a.unit)  # fmt: skip
    return Aligned(both, left, right)


class _Kept(NamedTuple):
    """A tree without the nodes that leave their times to the node above them."""

    keeper: I64  # of each node the nearest that stays: itself or an ancestor
    parent: I64  # of each node that stays the nearest above that stays
    levels: list[I64]  # the nodes that stay, by depth


def _kept(tree: CallTree, drop: frozenset[Kind]) -> _Kept:
    parent = tree.parent.astype(np.int64)
    dropped = _is_dropped(tree, drop)
    keeper = np.where(dropped, parent, np.arange(len(tree)))
    while len(rows := np.flatnonzero(dropped[keeper])):
        keeper[rows] = parent[keeper[rows]]
    up = np.where(parent >= 0, keeper[np.maximum(parent, 0)], -1) if len(tree) else parent
    depth = depths(up)
    stays = np.flatnonzero(~dropped)
    order = stays[np.argsort(depth[stays], kind="stable")]
    return _Kept(keeper, up, np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else [])


def _is_dropped(tree: CallTree, drop: frozenset[Kind]) -> Mask:
    return np.isin(tree.kind, np.array(sorted(drop), np.uint8)) & (tree.parent >= 0)


def _grown(trees: Pair, frames: list[I64], drop: frozenset[Kind], grower: Grower) -> list[I64]:
    """The node of the union of each node, on each side."""
    kept = [_kept(t, drop) for t in trees]
    nodes = [np.full(len(t), np.int64(-1)) for t in trees]
    for level in range(max(len(k.levels) for k in kept)):
        rows = [k.levels[level] if level < len(k.levels) else np.empty(0, np.int64) for k in kept]
        sides = list(zip(trees, kept, nodes, frames, rows, strict=True))
        above = np.concatenate([_of(n, k.parent[r]) for _, k, n, _, r in sides])
        found = grower.add(
            above, np.concatenate([f[r] for *_, f, r in sides]), np.concatenate([t.kind[r] for t, *_, r in sides])
        )
        nodes[0][rows[0]], nodes[1][rows[1]] = found[: len(rows[0])], found[len(rows[0]) :]
    return [n[k.keeper] for n, k in zip(nodes, kept, strict=True)]


def _of(node: I64, rows: I64) -> I64:
    return np.where(rows >= 0, node[np.maximum(rows, 0)], -1) if len(rows) else rows


def _side(tree: CallTree, node: I64, drop: frozenset[Kind], columns: tuple[list[str], I32, I32, U8]) -> CallTree:
    """One side's times in the nodes of the union."""
    size = len(columns[1])
    calls = np.where(_is_dropped(tree, drop), 0, tree.count)
    cpu, gpu, count = (tally(node, values, size) for values in (tree.cpu_ns, tree.gpu_ns, calls))
    return CallTree(*columns, cpu, gpu, count, tree.title, tree.unit)


def _canonical(tree: CallTree, names: dict[str, int]) -> I64:
    """The number of each node's aligned name, given out in `names`."""
    pairs, which = np.unique(tree.frame.astype(np.int64) << 4 | tree.kind, return_inverse=True)
    texts = [plain_name(tree.names[p >> 4], Kind(p & 15)) for p in pairs.tolist()]
    numbers = [names.setdefault(t, len(names)) for t in texts]
    found = np.array(numbers, np.int64)[which] if numbers else np.empty(0, np.int64)
    for node, role in roles(tree).items():
        found[node] = names.setdefault(role, len(names))
    return found


def plain_name(name: str, kind: Kind) -> str:
    """What stays of a frame's name from run to run."""
    if kind in (Kind.PYTHON, Kind.FRAME):
        frame = frame_of(name)
        if frame is None:
            return _ADDRESS.sub("0x", name)
        return f"{'/'.join(frame.file.split('/')[-2:])}: {_ADDRESS.sub('0x', frame.function)}"
    if kind is not Kind.MARK:
        return name
    # vLLM: execute_context_2(64)_generation_1(1)
    return (_DIGITS if name.startswith("execute_") else _NUMBER).sub("*", name)


def roles(tree: CallTree) -> dict[int, str]:
    """The threads of a trace by what they do, since their numbers differ from run to run: the busiest first."""
    tops = np.flatnonzero((tree.parent < 0) & (tree.kind == Kind.ROOT)).tolist()
    work = tree.total("cpu") + tree.total("gpu")
    backward = _runs(tree, BACKWARD)
    found: dict[int, str] = {}
    for what, some in (
        ("thread", [t for t in tops if not backward[t]]),
        ("backward thread", [t for t in tops if backward[t]]),
    ):
        some = [t for t in some if "thread" in tree.name(t)]
        for place, node in enumerate(sorted(some, key=lambda t: (-int(work[t]), t))):
            found[node] = f"{what} {place + 1}" if place or what == "thread" else what
    return found


def _runs(tree: CallTree, prefix: str) -> Mask:
    """Nodes right below which a frame begins so."""
    begins = np.array([n.startswith(prefix) for n in tree.names] or [False], np.bool_)
    found = np.zeros(len(tree), np.bool_)
    found[tree.parent[begins[tree.frame] & (tree.parent >= 0)]] = True
    return found
