"""Folded stacks, one a line: ``frame;frame;frame 123`` (Brendan Gregg's stackcollapse; ``py-spy record --format raw``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.text import clean
from probes.trace.names.naming import frame_of
from probes.trace.trees.calltree import CallTree, Kind, Time

_SPECIAL: Final = re.compile("%(?=3B|25)")
_ESCAPED: Final = re.compile("%3B|%25")
# py-spy: "step (train.py:42)"; native frames have no line
_PY_SPY: Final = re.compile(r"^(?P<function>\S.{0,500}?) \((?P<file>[^()]{1,500}?):(?P<line>\d{1,9})\)$")
_LONGEST: Final = 4096  # frames of one stack


def folded(tree: CallTree, time: Time = "gpu") -> Iterator[str]:
    """A line for each node that has own time, in ns (samples, of an imported profile).

    Frames are cleaned; a semicolon within one is written ``%3B``, since none of the tools can escape it.
    """
    own = tree.own(time)
    labels = [escaped(name) for name in tree.names]
    for node in np.flatnonzero(own).tolist():
        frames = []
        at = node
        while at >= 0:
            frames.append(labels[int(tree.frame[at])])
            at = int(tree.parent[at])
        yield f"{';'.join(reversed(frames))} {int(own[node])}"


def escaped(name: str) -> str:
    """A frame on one line without semicolons."""
    text = " ".join(clean(name).split()) or "?"
    return _SPECIAL.sub("%25", text).replace(";", "%3B")


def unescaped(text: str) -> str:
    """What `escaped` was given, if that was clean."""
    return _ESCAPED.sub(lambda m: ";" if m[0] == "%3B" else "%", text)


def from_folded(lines: Iterable[str], title: str = "") -> CallTree:
    """The tree of folded stacks; times are samples, in `cpu_ns`. Lines that are none are counted in a note.

    InputError when no line is one.
    """
    builder = Builder(title, "samples")
    bad = 0
    for line in lines:
        stack, _, value = line.strip().rpartition(" ")
        if stack and value.isascii() and value.isdigit() and len(value) < 19:
            builder.add([unescaped(f) for f in stack.split(";")[:_LONGEST]], int(value))
        elif line.strip() and not line.startswith("#"):
            bad += 1
    if not builder.stacks:
        raise InputError(f"{title or 'the input'} holds no folded stacks",
                         hint="lines look like: main;train;step 42")  # fmt: skip
    tree = builder.tree()
    if bad:
        tree.notes.append(
            Text(f"{bad} lines are no folded stacks and were left out", f"{bad} 行不是 folded 格式，已忽略")
        )
    return tree


class Builder:
    """A tree out of single stacks, as imported profiles hold them."""

    def __init__(self, title: str, unit: str) -> None:
        self.stacks = 0
        self._title, self._unit = title, unit
        self._names: dict[str, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._own: list[list[int]] = [[], []]  # cpu, gpu
        self._count: list[int] = []

    def add(self, stack: Sequence[str], value: int, time: Time = "cpu") -> None:
        """Charges `value` to the last frame of a stack that begins at the top."""
        at = -1
        for text in stack:
            at = self.child(at, text)
        if at >= 0:
            self.stacks += 1
            self._own[time == "gpu"][at] += value

    def child(self, above: int, text: str) -> int:
        """The node of a frame below another (-1: at the top)."""
        frame = self._names.setdefault(python_name(text), len(self._names))
        node = self._nodes.setdefault((above, frame), len(self._nodes))
        if node == len(self._count):
            for column in (*self._own, self._count):
                column.append(0)
        return node

    def tree(self) -> CallTree:
        """What was added."""
        keys = np.array(list(self._nodes), np.int32).reshape(-1, 2)
        names = list(self._names)
        kinds = np.array([kind_of(n) for n in names], np.uint8)
        cpu, gpu, count = (np.array(c, np.int64) for c in (*self._own, self._count))
        kind = kinds[keys[:, 1]] if len(keys) else np.empty(0, np.uint8)
        return CallTree(names, keys[:, 0], keys[:, 1], kind, cpu, gpu, count, self._title, self._unit)


def python_name(text: str) -> str:
    """A frame of py-spy as the profiler writes it, ``train.py(42): step``; any other as it is."""
    found = _PY_SPY.match(text)
    return f"{found['file']}({found['line']}): {found['function']}" if found else text


def kind_of(name: str) -> Kind:
    """What an imported frame is, as far as its name tells."""
    if name.startswith("nn.Module: "):
        return Kind.MODULE
    return Kind.PYTHON if frame_of(name) is not None else Kind.FRAME
