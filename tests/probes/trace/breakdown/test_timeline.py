"""Levels of detail keep what they summarise: the number of events and the time that they cover."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import timeline, utilisation
from probes.trace.breakdown.levels import Level
from probes.trace.breakdown.timeline import Tint
from probes.trace.columns import ABSENT, BASE, I64, Cat, Group, Strings, Table
from probes.trace.intervals import union
from probes.trace.model import Window
from probes.trace.reading.reader import Trace, read
from tests.trace_files import comm_bound, data_bound

EVENTS = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(0, 900), st.integers(0, 3), st.integers(0, 1)),
    min_size=1,
    max_size=120,
)


def table(strings: Strings, rows: list[tuple[int, int, int, int]], cat: Cat, origin: int = 10**15) -> Table:
    """Events (start, duration, name, stream or thread) as a table in the reader's order."""
    rows = sorted(rows, key=lambda r: (r[0], -r[1]))
    lanes = [strings.id(f"lane {r[3]}") for r in rows]
    base = {"start": [origin + r[0] for r in rows], "dur": [r[1] for r in rows], "name": [strings.id(f"name {r[2]}") for r in rows],
            "cat": [cat] * len(rows), "pid": [strings.id("1")] * len(rows), "tid": lanes}  # fmt: skip
    columns = {name: np.array(values, BASE[name]) for name, values in base.items()}
    columns |= {"device": np.full(len(rows), 0, np.int64), "stream": np.array(lanes, np.int32)}
    return Table(columns)


def trace(gpu: list[tuple[int, int, int, int]], ops: list[tuple[int, int, int, int]]) -> Trace:
    strings = Strings()
    tables = {Group.GPU: table(strings, gpu, Cat.KERNEL), Group.OP: table(strings, ops, Cat.OP)}
    return Trace("t.json", strings, tables)


def by_row(level: Level, values: I64, rows: int) -> list[int]:
    return [int(values[level.offsets[r] : level.offsets[r + 1]].sum()) for r in range(rows)]


@given(EVENTS, EVENTS, st.integers(8, 60))
def test_no_level_loses_time_or_events(
    gpu: list[tuple[int, int, int, int]], ops: list[tuple[int, int, int, int]], budget: int
) -> None:
    t = trace(gpu, ops)
    line = timeline.timeline(t, budgets=(budget, 3 * budget, 10_000))
    rows = sum(lane.rows for lane in line.lanes)
    assert line.exact
    exact = line.levels[-1]
    assert len(exact) == line.events == len(gpu) + len(ops)
    for level in line.levels:
        assert len(level.offsets) == rows + 1
        assert by_row(level, level.count, rows) == by_row(exact, exact.count, rows)
        assert by_row(level, level.busy, rows) == by_row(exact, exact.busy, rows)
        assert (level.end >= level.start).all()
        assert (level.busy <= level.end - level.start).all()
        assert (level.count >= 1).all()
        for r in range(rows):
            assert (np.diff(level.start[level.offsets[r] : level.offsets[r + 1]]) >= 0).all()


@given(EVENTS, EVENTS)
def test_a_lane_covers_what_its_events_cover(
    gpu: list[tuple[int, int, int, int]], ops: list[tuple[int, int, int, int]]
) -> None:
    t = trace(gpu, ops)
    for lane in timeline.timeline(t).lanes:
        own = gpu if lane.kind == "gpu" else ops
        name = lane.stream or lane.thread
        rows = np.array([(s, s + d) for s, d, _, k in own if f"lane {k}" == name], np.int64)
        assert lane.events == len(rows)
        assert lane.busy_ns == union(rows[:, 0], rows[:, 1]).total


@given(EVENTS, st.integers(1, 37))
def test_bins_add_up_to_the_union(gpu: list[tuple[int, int, int, int]], bins: int) -> None:
    t = trace(gpu, [(0, 1, 0, 0)])
    row = utilisation.rank_row(t, "all", bins=bins)
    assert row is not None
    edges = row.edges
    assert edges[0] == row.start_ns
    assert edges[-1] == row.end_ns
    assert (np.diff(edges) >= 0).all()
    assert sum(row.busy_ns) == union(t.gpu.start, t.gpu.end).total
    assert all(0 <= s <= 1 for s in row.share)
    for one in utilisation.heat(t, bins=bins):
        which = np.array([t.strings[int(i)] == one.label.split("/", 1)[1] for i in t.gpu.ids("stream")])
        assert sum(one.busy_ns) == union(t.gpu.start[which], t.gpu.end[which]).total


def test_budgets_hold_and_the_longest_name_speaks() -> None:
    events = [(i * 10, 4, 0, 0) for i in range(5_000)] + [(i * 10 + 5, 2, 1, 0) for i in range(5_000)]
    line = timeline.timeline(trace(events, [(0, 1, 2, 1)]), budgets=(200, 2_000))
    assert [len(lv) <= most for lv, most in zip(line.levels, (200, 2_000), strict=True)] == [True, True]
    assert line.levels[0].resolution_ns > line.levels[1].resolution_ns > 0
    assert not line.exact
    first = line.levels[0]
    gpu = next(lane for lane in line.lanes if lane.kind == "gpu")
    names = {line.names[int(i)] for i in first.name[first.offsets[gpu.row] : first.offsets[gpu.row + 1]]}
    assert names == {"name 0"}
    (detail,) = line.details
    assert detail.resolution_ns == 0
    assert (detail.count == 1).all()


def test_details_follow_the_windows_of_interest() -> None:
    events = [(i * 10, 4, 0, 0) for i in range(20_000)]
    origin = 10**15
    line = timeline.timeline(trace(events, [(0, 1, 2, 1)]), budgets=(50,), focus=[(origin + 1_000, origin + 2_000)])
    (detail,) = line.details
    assert (detail.start_ns - origin, detail.end_ns - origin) == (1_000, 2_000)
    assert len(detail) == 100


def test_events_far_away_are_counted_and_left_out() -> None:
    t = trace([(0, 100, 0, 0)], [(0, 10, 0, 0), (10**13, 10, 0, 0)])
    line = timeline.timeline(t)
    assert line.left_out == 1
    assert line.events == 2
    assert line.end_ns - line.start_ns <= 2 * 10**9


def test_without_events_there_is_nothing() -> None:
    line = timeline.timeline(Trace("t.json", Strings(), {Group.GPU: Table.empty(["device", "stream"])}))
    assert (line.lanes, line.events) == ((), 0)
    assert utilisation.heat(Trace("t.json", Strings(), {Group.GPU: Table.empty(["device", "stream"])})) == ()


def test_lanes_and_colours_of_a_job(tmp_path: Path) -> None:
    line = timeline.timeline(read(comm_bound().save(tmp_path / "t.json"), timeline.NEEDS))
    kinds = [lane.kind for lane in line.lanes]
    host = [k for k in kinds if not k.startswith("gpu")]
    assert kinds == [k for k in kinds if k.startswith("gpu")] + host  # devices first
    assert host[:3] == ["mark", "op", "runtime"]  # of the thread what contains above what is contained
    assert len({lane.stream for lane in line.lanes if lane.kind == "gpu"}) == 2
    assert {Tint.COMPUTE, Tint.COMMUNICATION, Tint.OPERATOR, Tint.RUNTIME, Tint.MARK} <= set(
        line.levels[-1].tint.tolist()
    )


def test_the_data_loader_stands_out(tmp_path: Path) -> None:
    line = timeline.timeline(read(data_bound(0.6).save(tmp_path / "t.json"), timeline.NEEDS))
    level = line.levels[-1]
    names = {line.names[int(n)] for n in level.name[level.tint == Tint.LOADER]}
    assert names
    assert all("DataLoader" in n for n in names)


def test_the_view_is_the_window_with_a_little_room() -> None:
    t = trace([(100, 100, 0, 0), (5_000, 100, 0, 0)], [(0, 9_000, 0, 0)])
    origin = 10**15
    line = timeline.timeline(t, Window("trace", origin + 1_000, origin + 2_000))
    assert line.start_ns < line.view_ns[0] <= origin + 1_000
    assert origin + 2_000 <= line.view_ns[1] < line.end_ns


@pytest.mark.parametrize("name", ["\x1b[31mred", "x" * 5_000, "\u202ereverse"])
def test_names_of_strangers_are_cleaned_and_cut(name: str) -> None:
    t = trace([(0, 10, 0, 0)], [(0, 10, 0, 0)])
    t.strings.texts[t.strings.find("name 0")] = name
    for shown in timeline.timeline(t).names:
        assert len(shown) <= timeline.NAMES
        assert shown.isprintable()


def test_a_missing_device_is_no_number() -> None:
    t = trace([(0, 10, 0, 0)], [(0, 10, 0, 0)])
    t.gpu.columns["device"] = np.full(1, ABSENT, np.int64)
    assert [lane.device for lane in timeline.timeline(t).lanes if lane.kind == "gpu"] == [""]
    assert utilisation.heat(t)[0].label.startswith("?/")


def test_names_beyond_counting_share_one() -> None:
    t = trace([(i * 10, 5, i % 2, 0) for i in range(20)], [(0, 1, 2, 0), (10, 1, 3, 0)])
    line = timeline.timeline(t, distinct=3)
    assert len(line.names) == 4
    assert line.names[-1] == "..."
    assert {"name 0", "name 1"} <= set(line.names)
    level = line.levels[-1]
    assert level.name.max() == 3


@given(st.lists(st.tuples(st.integers(-3, 3) | st.sampled_from([ABSENT, 2**62]), st.integers(-1, 4)), max_size=40))
def test_pairs_are_those_that_occur(rows: list[tuple[int, int]]) -> None:
    a, b = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64)
    one, two, which = utilisation.pairs(a, b)
    assert [(int(one[w]), int(two[w])) for w in which] == rows
    assert len(one) == len(set(rows))
    groups = list(utilisation.members(which, len(one)))
    assert sorted(int(i) for g in groups for i in g) == list(range(len(rows)))


def test_streams_are_shown_however_many_threads_there_are() -> None:
    strings = Strings()
    ops = [(i, 1, 0, i % 100) for i in range(1_000)]
    t = Trace(
        "t.json",
        strings,
        {Group.GPU: table(strings, [(5, 10, 1, 0), (7, 1, 1, 1)], Cat.KERNEL), Group.OP: table(strings, ops, Cat.OP)},
    )
    line = timeline.timeline(t)
    assert [lane.kind for lane in line.lanes[:2]] == ["gpu", "gpu"]
    assert len(line.lanes) == timeline.LANES
    assert line.events + line.left_out == len(ops) + 2
