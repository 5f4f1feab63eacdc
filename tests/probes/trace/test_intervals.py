"""Sets of intervals against sets of points."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.columns import I64
from probes.trace.intervals import Intervals, clip, complement, covered, intersect, overlap, subtract, union

RANGE = 60
PAIRS = st.lists(st.tuples(st.integers(0, RANGE), st.integers(0, RANGE)), max_size=12)


def columns(pairs: list[tuple[int, int]]) -> tuple[I64, I64]:
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {p for a, b in pairs for p in range(a, b)}


def inside(a: Intervals) -> set[int]:
    """The points, after a check that the intervals are disjoint, apart from each other, ascending and not empty."""
    assert (a.end > a.start).all()
    assert (a.start[1:] > a.end[:-1]).all()
    return points(list(zip(a.start.tolist(), a.end.tolist(), strict=True)))


@given(PAIRS)
def test_union(pairs: list[tuple[int, int]]) -> None:
    found = union(*columns(pairs))
    assert inside(found) == points(pairs)
    assert found.total == len(points(pairs))


@given(PAIRS, PAIRS)
def test_intersection_and_difference(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = union(*columns(left)), union(*columns(right))
    assert inside(intersect(a, b)) == points(left) & points(right)
    assert inside(subtract(a, b)) == points(left) - points(right)


@given(PAIRS, st.integers(0, RANGE), st.integers(0, RANGE))
def test_clip_and_complement(pairs: list[tuple[int, int]], low: int, size: int) -> None:
    a, window = union(*columns(pairs)), set(range(low, low + size))
    assert inside(clip(a, low, low + size)) == points(pairs) & window
    assert inside(complement(a, low, low + size)) == window - points(pairs)


@given(PAIRS, PAIRS)
def test_overlap_of_each(pairs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    a = union(*columns(pairs))
    ascending = [(min(p), max(p)) for p in others]
    got = overlap(a, *columns(ascending)).tolist()
    assert got == [len(points(pairs) & points([p])) for p in ascending]
    assert covered(a, np.array([0, RANGE], np.int64)).tolist() == [0, a.total]


def test_nothing() -> None:
    none = union(*columns([]))
    assert none.total == intersect(none, none).total == subtract(none, none).total == 0
    assert inside(complement(none, 3, 5)) == {3, 4}
