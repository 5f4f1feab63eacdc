"""Which functions grew between two windows of samples, and whether that is more than chance.

Shares are of all samples of a window, so that windows of different lengths compare. A function counts once a stack,
however often it stands there (recursion).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple

from assistant.store.profiles import Stack

LEAST = 60  # samples of a window below which nothing is said to have grown
POINTS = 0.03  # of the whole: what is less is nobody's regression
SURE = 4.0  # standard errors. Neighbouring samples are alike, so that the usual two would cry wolf
OWN = 0.8  # a function whose callee has so much of its growth has not grown itself


class Change(NamedTuple):
    """A function in two windows."""

    name: str
    before: float  # share of the samples in which it stands
    after: float
    own_before: float  # share of the samples in which it is innermost
    own_after: float
    depth: float  # mean depth at which it stands

    @property
    def grown(self) -> float:
        """Growth of its share: 0.1 are ten points."""
        return self.after - self.before


class Growth(NamedTuple):
    """What two windows tell."""

    before: int  # samples
    after: int
    changes: tuple[Change, ...]  # those that changed most first
    culprit: Change | None  # the function that grew, and not only because of what it calls

    @property
    def enough(self) -> bool:
        """Whether there are samples enough to say anything."""
        return min(self.before, self.after) >= LEAST


class _Use:
    __slots__ = ("depth", "own", "seen")

    def __init__(self) -> None:
        self.seen = self.own = self.depth = 0


def compared(before: Mapping[Stack, int], after: Mapping[Stack, int]) -> Growth:
    """The functions of two windows; threads, the outermost places, are no functions."""
    sizes = sum(before.values()), sum(after.values())
    uses = _uses(before), _uses(after)
    none = _Use()
    changes = []
    for name in sorted({*uses[0], *uses[1]}):
        a, b = (u.get(name, none) for u in uses)
        counted = a.seen + b.seen
        changes.append(
            Change(name, _share(a.seen, sizes[0]), _share(b.seen, sizes[1]), _share(a.own, sizes[0]), _share(b.own, sizes[1]),
                   (a.depth + b.depth) / counted if counted else 0.0)
        )  # fmt: skip
    changes.sort(key=lambda c: (-abs(c.grown), c.depth, c.name))
    return Growth(*sizes, tuple(changes), _culprit(changes, *sizes))


def _uses(stacks: Mapping[Stack, int]) -> dict[str, _Use]:
    out: dict[str, _Use] = {}
    for stack, count in stacks.items():
        met = set()
        for depth, name in enumerate(stack[1:], 1):
            use = out.setdefault(name, _Use())
            if name not in met:
                met.add(name)
                use.seen += count
                use.depth += depth * count
        if len(stack) > 1:
            out[stack[-1]].own += count
    return out


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _culprit(changes: list[Change], before: int, after: int) -> Change | None:
    """Of the functions that surely grew, and about as much as the one that grew most, the deepest."""
    if min(before, after) < LEAST:
        return None
    sure = [c for c in changes if c.grown >= POINTS and _errors(c, before, after) >= SURE]
    most = max((c.grown for c in sure), default=0.0)
    return max((c for c in sure if c.grown >= OWN * most), key=lambda c: (c.depth, c.grown, c.name), default=None)


def _errors(c: Change, before: int, after: int) -> float:
    """By how many standard errors two shares differ (pooled two-proportion z)."""
    pooled = (c.before * before + c.after * after) / (before + after)
    error = sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / before + 1 / after))
    return abs(c.grown) / error
