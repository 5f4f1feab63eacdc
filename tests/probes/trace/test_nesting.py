"""Laws of nesting: the vectorised parents equal a stack's, and self times add up to the union."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.columns import I64
from probes.trace.intervals import union
from probes.trace.nesting import depths, parents_of, reaches, self_times

intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=60)


def by_stack(start: list[int], end: list[int]) -> list[int]:
    """Parents the slow and obvious way."""
    found: list[int] = []
    stack: list[int] = []
    for i, (low, high) in enumerate(zip(start, end, strict=True)):
        while stack and end[stack[-1]] <= low and not end[stack[-1]] == low == high:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(i)
    return found


def columns(items: list[tuple[int, int]]) -> tuple[I64, I64]:
    items = sorted(items, key=lambda x: (x[0], -x[1]))
    start = np.array([s for s, _ in items], np.int64)
    return start, start + np.array([d for _, d in items], np.int64)


def innermost(start: I64, end: I64) -> list[int]:
    """Self times by looking at every instant: the last begun that is open has it."""
    found = [0] * len(start)
    for now in range(45):
        open_ = [i for i in range(len(start)) if start[i] <= now < end[i]]
        if open_:
            found[open_[-1]] += 1
    return found


@given(intervals)
def test_parents_are_those_of_a_stack(items: list[tuple[int, int]]) -> None:
    start, end = columns(items)
    assert parents_of(start, end).tolist() == by_stack(start.tolist(), end.tolist())


@given(st.lists(intervals, max_size=5))
def test_threads_do_not_mix(threads: list[list[tuple[int, int]]]) -> None:
    parts = [columns(items) for items in threads if items]
    if not parts:
        return
    expected: list[int] = []
    first = np.zeros(sum(len(s) for s, _ in parts), np.bool_)
    for start, end in parts:
        base = len(expected)
        first[base] = True
        expected += [p + base if p >= 0 else -1 for p in by_stack(start.tolist(), end.tolist())]
    start, end = (np.concatenate(side) for side in zip(*parts, strict=True))
    assert parents_of(start, end, first).tolist() == expected


@given(intervals)
def test_self_times_are_the_innermost_and_add_up_to_the_union(items: list[tuple[int, int]]) -> None:
    start, end = columns(items)
    parent = parents_of(start, end)
    depth = depths(parent)
    assert [d - 1 for d in depth.tolist()] == [int(depth[p]) if p >= 0 else -1 for p in parent.tolist()]
    own = self_times(start, end, parent, reaches(end, parent))
    assert own.tolist() == innermost(start, end)
    assert int(own.sum()) == union(start, end).total


def test_a_long_row_of_siblings_and_a_deep_stack() -> None:
    n = 50_000
    start = np.concatenate([[0], np.arange(n) * 2]).astype(np.int64)
    end = np.concatenate([[2 * n], np.arange(n) * 2 + 1]).astype(np.int64)
    assert parents_of(start, end).tolist() == [-1] + [0] * n
    deep = np.arange(n, dtype=np.int64)
    parent = parents_of(deep, 3 * n - deep)
    assert parent.tolist() == list(range(-1, n - 1))
    assert depths(parent).tolist() == list(range(n))
