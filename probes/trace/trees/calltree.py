"""A calling-context tree as columns: each node is a frame in the context of its callers, all its calls together.

Parents stand before their children. Times are each node's own (self) nanoseconds; `inclusive` adds up subtrees.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.columns import I32, I64, U8, Mask
from probes.trace.nesting import depths

Time: TypeAlias = Literal["gpu", "cpu"]

DEEPEST: Final = (
    2000  # frames; Python itself stops at 1000 unless told otherwise: deeper ones join their ancestor there
)


class Kind(IntEnum):
    """What a node stands for."""

    ROOT = 0  # a thread, or the place of kernels whose launch was not recorded
    PYTHON = 1
    MODULE = 2  # nn.Module
    MARK = 3  # an annotation
    OP = 4
    RUNTIME = 5
    KERNEL = 6
    COPY = 7  # copies and sets
    FRAME = 8  # of an imported profile: anything


@dataclass(eq=False)
class CallTree:
    """Nodes as columns of one length."""

    names: list[str]  # raw, as the trace writes them
    parent: I32  # -1 at the top
    frame: I32  # number into `names`
    kind: U8  # `Kind`
    cpu_ns: I64  # self
    gpu_ns: I64  # self: only kernels, copies and sets have any
    count: I64  # calls; 0 where that is not known
    title: str = ""
    unit: str = "nanoseconds"  # or "samples", of an imported profile
    notes: list[Text] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parent)

    def name(self, node: int) -> str:
        """The node's own frame."""
        return self.names[int(self.frame[node])]

    def path(self, node: int) -> list[str]:
        """Frames from the top to the node."""
        found = []
        while node >= 0:
            found.append(self.name(node))
            node = int(self.parent[node])
        return found[::-1]

    def own(self, time: Time) -> I64:
        """Self time of each node, ns."""
        return self.gpu_ns if time == "gpu" else self.cpu_ns

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """0 at the top."""
        return depths(self.parent.astype(np.int64))

    @cached_property
    def levels(self) -> list[I64]:
        """The nodes of each depth, from the top."""
        order = np.argsort(self.depth, kind="stable")
        if not len(order):
            return []
        return np.split(order, np.flatnonzero(np.diff(self.depth[order])) + 1)

    def inclusive(self, values: I64) -> I64:
        """`values` of each node and all below it."""
        found = values.copy()
        for nodes in self.levels[:0:-1]:
            np.add.at(found, self.parent[nodes], found[nodes])
        return found

    def total(self, time: Time) -> I64:
        """Time of each node and all below it, ns."""
        return self.inclusive(self.own(time))

    def pruned(self) -> CallTree:
        """Without the nodes in and below which nothing happened."""
        something = (self.cpu_ns != 0) | (self.gpu_ns != 0) | (self.count != 0)
        keep = self.inclusive(something.astype(np.int64)) > 0
        if keep.all():
            return self
        return self.taken(keep)

    def taken(self, keep: Mask) -> CallTree:
        """Only some nodes, with which their ancestors must be."""
        number = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        above = self.parent[keep]
        return CallTree(
            self.names,
            np.where(above >= 0, number[above], np.int32(-1)),
            self.frame[keep],
            self.kind[keep],
            self.cpu_ns[keep],
            self.gpu_ns[keep],
            self.count[keep],
            self.title,
            self.unit,
            self.notes,
        )


class Grower:
    """Builds a tree level by level out of rows that know the node above them."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[tuple[I32, I32, U8]] = []

    def add(self, above: I64, frame: I64, kind: U8) -> I64:
        """The node of each row; rows of the same node above, frame and kind share one. In order of first appearance."""
        first, which = _distinct(above, (frame.astype(np.int64) << 4) + kind)
        order = np.argsort(first)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        heads = first[order]
        self._parts.append((above[heads].astype(np.int32), frame[heads].astype(np.int32), kind[heads]))
        base = self.size
        self.size += len(heads)
        return base + place[which]

    def one(self, above: int, frame: int, kind: Kind) -> int:
        """A single node."""
        self._parts.append((np.array([above], np.int32), np.array([frame], np.int32), np.array([kind], np.uint8)))
        self.size += 1
        return self.size - 1

    def columns(self) -> tuple[I32, I32, U8]:
        """Parent, frame and kind of all nodes."""
        if not self._parts:
            return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)
        parent, frame, kind = (np.concatenate(side) for side in zip(*self._parts, strict=True))
        return parent, frame, kind


def _distinct(above: I64, label: I64) -> tuple[I64, I64]:
    """The first row of each distinct pair, and of each row the number of its pair.

    By a table where pairs are few against the rows, as in most traces; else by sorting.
    """
    if not len(above):
        return above, above
    (above, many), (label, wide) = _dense(above), _dense(label)
    size = many * wide
    key = above * wide + label
    if size > 4 * len(key) + 100_000:
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return first, which
    seen = np.full(size, np.int64(-1))
    seen[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # of repeated places the last written stays: the first row
    used = np.flatnonzero(seen >= 0)
    first = seen[used]
    seen[used] = np.arange(len(used))
    return first, seen[key]


def _dense(values: I64) -> tuple[I64, int]:
    """`values` renumbered from 0 without gaps, in their order, and how many there are."""
    low = int(values.min())
    reach = int(values.max()) - low + 1
    if reach > 4 * len(values) + 100_000:
        distinct, which = np.unique(values, return_inverse=True)
        return which.astype(np.int64), len(distinct)
    seen = np.zeros(reach, np.bool_)
    seen[values - low] = True
    number = np.cumsum(seen) - 1
    return number[values - low], int(number[-1]) + 1


def tally(nodes: I64, values: I64 | None, size: int) -> I64:
    """The sum of `values` (None: how many) of each node's rows, exactly."""
    if values is None:
        return np.bincount(nodes, minlength=size).astype(np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, nodes, values)
    return found
