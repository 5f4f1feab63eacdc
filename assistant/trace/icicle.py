"""Flame graphs in characters: which box stands where, what lies beside it, and what a search finds.

It works on what ``gpudiag trace flame --format json`` says, so that a surface needs no trace in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from knowledge.record import dataclass

WHOLE = -1  # the place of a frame that stands for all of them


class Frame(NamedTuple):
    """A function in the context of its callers."""

    name: str  # as the trace writes it
    label: str  # as people say it
    kind: str  # root, python, module, mark, op, runtime, kernel, copy, frame
    parent: int  # place of its caller; WHOLE: none
    depth: int
    total: int  # ns, or samples: with all that it calls
    own: int
    calls: int  # 0: not known


class Box(NamedTuple):
    """A frame where it is drawn: columns from the left."""

    frame: int
    x: int
    width: int


@dataclass(frozen=True)
class Icicle:
    """The frames of one trace or profile, callers before what they call."""

    frames: tuple[Frame, ...]
    total: int  # of all of it, ns or samples
    time: str = "gpu"  # whose: gpu or cpu
    unit: str = "nanoseconds"  # or samples
    rank: int | None = None
    file: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def below(self) -> Mapping[int, Sequence[int]]:
        """What each frame calls, the largest first; of WHOLE those at the top."""
        found: dict[int, list[int]] = {}
        for n, frame in enumerate(self.frames):
            found.setdefault(frame.parent, []).append(n)
        for places in found.values():
            places.sort(key=lambda n: -self.frames[n].total)
        return found

    @cached_property
    def left(self) -> Sequence[int]:
        """Where each frame begins when all of it is ``total`` wide: what one calls stands side by side from its left edge."""
        out = [0] * len(self.frames)
        pending = [(WHOLE, 0)]
        while pending:
            place, at = pending.pop()
            for child in self.below.get(place, ()):
                out[child] = at
                pending.append((child, at))
                at += self.frames[child].total
        return out

    def way(self, place: int) -> list[int]:
        """The callers of a frame from the top, and itself; nothing for WHOLE."""
        found: list[int] = []
        while place != WHOLE:
            found.append(place)
            place = self.frames[place].parent
        return found[::-1]

    def share(self, place: int) -> float:
        """Its part of the whole."""
        return self.frames[place].total / self.total if self.total else 0.0


def icicle(rank: Mapping[str, Any]) -> Icicle:
    """From one of the ``ranks`` of ``gpudiag/trace-flame/1``. ValueError for anything else."""
    from assistant.trace.words import short

    frames: list[Frame] = []
    try:
        for said in rank["frames"]:
            parent = WHOLE if said["parent"] is None else int(said["parent"])
            if not WHOLE <= parent < len(frames):
                raise ValueError(f"frame {len(frames)} stands before its caller")
            name = str(said["path"][-1])
            depth = 0 if parent == WHOLE else frames[parent].depth + 1
            frames.append(
                Frame(
                    name,
                    short(name),
                    str(said["kind"]),
                    parent,
                    depth,
                    int(said["total"]),
                    int(said["own"]),
                    int(said["calls"]),
                )
            )
        notes = tuple(str(n) for n in rank.get("notes", ()))
        return Icicle(
            tuple(frames),
            int(rank["total"]),
            str(rank["time"]),
            str(rank["unit"]),
            rank["rank"],
            str(rank["file"]),
            notes,
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"no call tree: {error!r}") from error


def rows(tree: Icicle, columns: int, focus: int = WHOLE) -> list[list[Box]]:
    """The boxes of each depth, from the left: the callers of `focus` over the whole width, itself, and what it calls.

    The edges of all boxes are the same function of the time, so that boxes never overlap and always stand below their
    caller. What is a column wide or more is there; of narrower frames those that reach over an edge.
    """
    if columns < 1 or not tree.total:
        return []
    chain = tree.way(focus)
    out = [[Box(n, 0, columns)] for n in chain]
    begin, span = (tree.left[focus], tree.frames[focus].total) if chain else (0, tree.total)
    if not span:
        return out

    def edge(at: int) -> int:
        return (at - begin) * columns // span

    level = list(tree.below.get(focus, ()))
    while level:
        boxes = []
        for n in level:
            x = edge(tree.left[n])
            if (width := edge(tree.left[n] + tree.frames[n].total) - x) > 0:
                boxes.append(Box(n, x, width))
        if boxes:
            out.append(boxes)
        level = [child for box in boxes for child in tree.below.get(box.frame, ())]
    return out


def hidden(tree: Icicle, shown: Sequence[Sequence[Box]], focus: int = WHOLE) -> int:
    """How many frames in and below `focus` are too narrow to be seen."""
    seen = {box.frame for row in shown for box in row}
    pending, count = list(tree.below.get(focus, ())), 0
    while pending:
        n = pending.pop()
        count += n not in seen
        pending += tree.below.get(n, ())
    return count


def beside(shown: Sequence[Sequence[Box]], frame: int, by: int) -> int:
    """The frame `by` boxes to the right of `frame` on its line, or the last there is; itself when it is not shown."""
    for row in shown:
        places = [box.frame for box in row]
        if frame in places:
            return places[max(0, min(len(places) - 1, places.index(frame) + by))]
    return frame


def at(shown: Sequence[Sequence[Box]], x: int, y: int) -> int | None:
    """The frame that is drawn there."""
    if not 0 <= y < len(shown):
        return None
    return next((box.frame for box in shown[y] if box.x <= x < box.x + box.width), None)


def search(tree: Icicle, words: str) -> tuple[frozenset[int], int]:
    """The frames whose name holds each of these words, in any case, and their time: what one calls counts once."""
    terms = words.casefold().split()
    if not terms:
        return frozenset(), 0
    found = frozenset(n for n, f in enumerate(tree.frames) if all(term in f.name.casefold() for term in terms))
    within: set[int] = set()
    time = 0
    for n, frame in enumerate(tree.frames):  # callers come first
        if frame.parent in within:
            within.add(n)
        elif n in found:
            within.add(n)
            time += frame.total
    return found, time
