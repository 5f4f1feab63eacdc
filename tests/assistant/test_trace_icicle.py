"""Laws of the flame graph in characters: where boxes stand, what zooming shows, what a search counts."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.trace import child
from assistant.trace.icicle import WHOLE, Frame, Icicle, at, beside, hidden, icicle, rows, search
from tests.conftest import ROOT

STARVED = ROOT / "assistant" / "demos" / "data-starved" / "rank0.json.gz"
NAMES = ("forward", "aten::mm", "ncclAllReduce", "backward", "sm90_gemm", "optimizer")


@st.composite
def trees(draw: st.DrawFn) -> Icicle:
    """Any tree: of each frame its caller among those before it, and its own time."""
    own = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
    parents = [draw(st.integers(-1, n - 1)) for n in range(len(own))]
    totals = list(own)
    for n in range(len(own) - 1, -1, -1):
        if parents[n] != WHOLE:
            totals[parents[n]] += totals[n]
    depths: list[int] = []
    frames = []
    for n, parent in enumerate(parents):
        depths.append(0 if parent == WHOLE else depths[parent] + 1)
        name = draw(st.sampled_from(NAMES))
        frames.append(Frame(name, name, "op", parent, depths[n], totals[n], own[n], 1))
    return Icicle(tuple(frames), sum(own))


@given(trees(), st.integers(1, 200), st.data())
def test_boxes_never_overlap_and_stand_below_their_caller(tree: Icicle, columns: int, data: st.DataObject) -> None:
    focus = data.draw(st.integers(WHOLE, len(tree.frames) - 1))
    shown = rows(tree, columns, focus)
    place = {box.frame: box for row in shown for box in row}
    for row in shown:
        assert all(a.x + a.width <= b.x for a, b in pairwise(row))
        assert all(box.x >= 0 and box.width > 0 and box.x + box.width <= columns for box in row)
    for box in place.values():
        parent = tree.frames[box.frame].parent
        if parent != WHOLE:
            above = place[parent]
            assert above.x <= box.x
            assert box.x + box.width <= above.x + above.width


@given(trees(), st.integers(1, 200))
def test_what_is_a_column_wide_is_shown_as_wide_as_it_is(tree: Icicle, columns: int) -> None:
    shown = {box.frame: box.width for row in rows(tree, columns) for box in row}
    for n, frame in enumerate(tree.frames):
        exact = frame.total * columns / tree.total if tree.total else 0
        assert (n in shown) or exact < 1
        assert abs(shown.get(n, 0) - exact) < 1 + 1e-6
    assert not tree.total or hidden(tree, rows(tree, columns)) == len(tree.frames) - len(shown)


@given(trees(), st.integers(1, 120), st.data())
def test_zooming_shows_the_callers_over_the_whole_width_and_nothing_beside(
    tree: Icicle, columns: int, data: st.DataObject
) -> None:
    focus = data.draw(st.integers(0, len(tree.frames) - 1))
    shown = rows(tree, columns, focus)
    way = tree.way(focus)
    if not tree.total:
        assert shown == []
        return
    assert [[(b.frame, b.x, b.width) for b in row] for row in shown[: len(way)]] == [[(n, 0, columns)] for n in way]
    assert all(focus in tree.way(box.frame) for row in shown[len(way) :] for box in row)


@given(trees(), st.integers(1, 80), st.integers(0, 100), st.integers(0, 50))
def test_a_point_is_in_the_box_that_is_drawn_there(tree: Icicle, columns: int, x: int, y: int) -> None:
    shown = rows(tree, columns)
    found = at(shown, x, y)
    if found is not None:
        box = next(b for b in shown[y] if b.frame == found)
        assert box.x <= x < box.x + box.width
        assert beside(shown, found, 0) == found
        assert any(b.frame == beside(shown, found, 1) for b in shown[y])


@given(trees(), st.sampled_from(NAMES))
def test_a_search_counts_no_time_twice(tree: Icicle, name: str) -> None:
    found, time = search(tree, name.upper())
    assert found == {n for n, f in enumerate(tree.frames) if f.name == name}
    assert max((tree.frames[n].total for n in found), default=0) <= time <= tree.total
    own = sum(f.own for n, f in enumerate(tree.frames) if found & set(tree.way(n)))
    assert time == own


def test_nothing_is_found_by_nothing() -> None:
    tree = Icicle((Frame("a", "a", "op", WHOLE, 0, 3, 3, 1),), 3)
    assert search(tree, "  ") == (frozenset(), 0)


@pytest.mark.process
def test_a_real_trace_becomes_a_tree_of_its_time() -> None:
    told = child.run(("--format", "json", "trace", "flame", "--min-share", "0.001", str(STARVED)), lambda: None)
    tree = icicle(told.data()["ranks"][0])
    assert tree.total > 0
    assert tree.time == "gpu"
    assert any(f.kind == "kernel" for f in tree.frames)
    assert sum(tree.frames[n].total for n in tree.below[WHOLE]) <= tree.total
    for n, frame in enumerate(tree.frames):
        assert frame.own + sum(tree.frames[c].total for c in tree.below.get(n, ())) <= frame.total
    assert json.dumps([f._asdict() for f in tree.frames])


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"frames": [{"parent": 1}]},
        {"frames": [{"parent": 3, "path": ["a"], "kind": "op", "total": 1, "own": 1, "calls": 1}]},
    ],
)
def test_what_is_no_tree_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"call tree|caller"):
        icicle(said)


@pytest.mark.process
def test_a_folded_profile_is_a_tree_of_samples(tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text("main;train;step 7\nmain;load 3\n")
    told = child.run(("--format", "json", "trace", "flame", str(path)), lambda: None)
    tree = icicle(told.data()["ranks"][0])
    assert (tree.unit, tree.total, tree.time) == ("samples", 10, "cpu")
    assert {f.name: f.total for f in tree.frames}["train"] == 7
