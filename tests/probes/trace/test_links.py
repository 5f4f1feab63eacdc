"""Joins between kernels, calls and operators, against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import kernels
from probes.trace.columns import ABSENT, Group, Table, wanted
from probes.trace.links import Links, enclosing, groups, latest, parents
from tests.trace_files import TraceFile, read

SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 15), st.integers(0, 1)), max_size=25
)  # start, length, thread


def table(spans: list[tuple[int, int, int]]) -> Table:
    spans = sorted(spans, key=lambda s: (s[0], -s[1]))
    return Table({
        "start": np.array([s for s, _, _ in spans], np.int64), "dur": np.array([d for _, d, _ in spans], np.int64),
        "pid": np.zeros(len(spans), np.int32), "tid": np.array([t for _, _, t in spans], np.int32),
    })  # fmt: skip


@given(SPANS, SPANS)
def test_innermost_range_around_each_start(
    inner: list[tuple[int, int, int]], outer: list[tuple[int, int, int]]
) -> None:
    a, b = table(inner), table(outer)
    # only what nests: partial overlaps are read as a stack reads them, and have no innermost
    nested = [
        i for i in range(len(b))
        if all(b["tid"][j] != b["tid"][i] or b.end[j] >= b.end[i] or b.end[j] <= b.start[i] for j in range(i))
    ]  # fmt: skip
    b = b.take(np.array(nested, np.int64))
    for i, found in enumerate(enclosing(a, b).tolist()):
        around = [
            j for j in range(len(b))
            if b["tid"][j] == a["tid"][i] and b.start[j] <= a.start[i] < b.end[j]
        ]  # fmt: skip
        assert found == (around[-1] if around else -1)


def test_parents_are_of_the_same_thread() -> None:
    spans = table([(0, 10, 0), (1, 4, 0), (2, 2, 0), (2, 5, 1), (6, 1, 0)])
    assert parents(spans).tolist() == [-1, 0, -1, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=20), st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 20)), max_size=20))  # fmt: skip
def test_the_last_call_of_an_id_that_starts_before(calls: list[tuple[int, int]], rows: list[tuple[int, int]]) -> None:
    calls = sorted(calls, key=lambda c: c[1])
    keys = np.array([k for k, _ in rows], np.int64)
    keys[keys == -1] = ABSENT
    found = latest(keys, np.array([at for _, at in rows], np.int64), np.array([k for k, _ in calls], np.int64),
                   np.array([at for _, at in calls], np.int64))  # fmt: skip
    for (key, at), got in zip(rows, found.tolist(), strict=True):
        same = [i for i, (k, _) in enumerate(calls) if k == key]
        if not same or (key == 0 and len(same) > 1):  # 0 that several bear is no id
            assert got == -1
        else:
            assert got == max((i for i in same if calls[i][1] <= at), default=same[0])


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_groups_part_the_rows(keys: list[int]) -> None:
    found = groups(np.array(keys, np.int64))
    assert sorted(i for rows in found for i in rows.tolist()) == list(range(len(keys)))
    assert all(rows.tolist() == [i for i, k in enumerate(keys) if k == keys[rows[0]]] for rows in found)
    assert len(found) == len(set(keys))


def test_kernels_find_their_operators_by_call_and_by_external_id() -> None:
    file = (TraceFile().op("aten::linear", 0, 20).op("aten::addmm", 2, 15, external=7).launch(5, 3, correlation=1)
            .kernel("a", 30, 5, correlation=1).kernel("b", 40, 5, correlation=99, external=7).kernel("c", 50, 5, correlation=98))  # fmt: skip
    trace = read(file, kernels.NEEDS)
    names = [trace.strings[trace[Group.OP].name[i]] if i >= 0 else "" for i in Links(trace).op.tolist()]
    assert names == ["aten::addmm", "aten::addmm", ""]


def test_only_the_first_kernel_of_a_graph_is_first_of_its_call() -> None:
    file = TraceFile().launch(0, 5, correlation=3, name="cudaGraphLaunch")
    for start in (10, 20, 30):
        file.kernel("k", start, 5, correlation=3)
    trace = read(file.kernel("lone", 40, 5, correlation=8), wanted(gpu="correlation", runtime="correlation"))
    assert Links(trace).first_of_call.tolist() == [True, False, False, True]
