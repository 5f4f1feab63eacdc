"""Call trees laid out: frames lie within their callers, side by side, and no time is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.report import jobs, parts
from assistant.report.charts import on_plot, scalars
from assistant.report.inputs import Flame
from assistant.report.markup import Column, bullets, table
from probes.trace.model import Iteration, Roofline, Side, Work
from probes.trace.reading.reader import read
from probes.trace.trees.calltree import CallTree, Kind
from tests.trace_files import comm_bound

NODES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000), st.integers(0, 5)), min_size=1, max_size=60)


def tree_of(nodes: list[tuple[int, int, int]]) -> CallTree:
    """Each node hangs below one before it, or stands at the top."""
    parent = [(-1 if i == 0 else seed % (i + 1) - 1) for i, (seed, _, _) in enumerate(nodes)]
    n = len(nodes)
    return CallTree(
        [f"frame {k}" for k in range(6)], np.array(parent, np.int32), np.array([k for _, _, k in nodes], np.int32), np.full(n, Kind.OP, np.uint8),
        np.array([t for _, t, _ in nodes], np.int64), np.zeros(n, np.int64), np.ones(n, np.int64),
    )  # fmt: skip


def callers(f: Flame) -> list[int]:
    """The caller of each frame, from depths alone."""
    above: list[int] = []
    found = []
    for i, depth in enumerate(f.depth):
        assert depth <= len(above)
        del above[depth:]
        found.append(above[-1] if above else -1)
        above.append(i)
    return found


@given(NODES)
def test_frames_lie_within_their_callers(nodes: list[tuple[int, int, int]]) -> None:
    tree = tree_of(nodes)
    f = parts.flame(tree, "cpu")
    assert f.total_ns == sum(t for _, t, _ in nodes)
    ends: dict[int, int] = {}
    for i, caller in enumerate(callers(f)):
        low, high = (0, f.total_ns) if caller < 0 else (f.x0[caller], f.x0[caller] + f.width[caller])
        assert low <= f.x0[i] <= f.x0[i] + f.width[i] <= high
        assert f.x0[i] >= ends.get(caller, 0)
        ends[caller] = f.x0[i] + f.width[i]


@given(NODES)
def test_no_time_is_lost(nodes: list[tuple[int, int, int]]) -> None:
    f = parts.flame(tree_of(nodes), "cpu")
    own = {name: time for time, name in jobs._frames(f)}
    assert sum(own.values()) == f.total_ns  # what is too narrow stands in its caller
    if f.lost_ns == 0:
        expected = {f"frame {k}": sum(t for _, t, n in nodes if n == k) for k in range(6)}
        assert own == {name: time for name, time in expected.items() if time}


def test_a_graph_is_bounded() -> None:
    n = 50_000
    tree = CallTree([f"frame {i}" for i in range(n)], np.full(n, -1, np.int32), np.arange(n, dtype=np.int32), np.full(n, Kind.KERNEL, np.uint8),
                    np.zeros(n, np.int64), np.arange(n, dtype=np.int64) + 10**6, np.ones(n, np.int64))  # fmt: skip
    f = parts.flame(tree, "gpu")
    assert len(f.depth) <= parts.FRAMES
    assert f.lost_ns + sum(f.width) == f.total_ns


def test_the_parts_of_a_job(tmp_path: Path) -> None:
    trace = read(comm_bound().save(tmp_path / "t.json"), parts.NEEDS)
    made = parts.parts(trace)
    assert [t.time for t in made.trees] == ["gpu", "cpu"]
    assert made.trees[0].total_ns == int(trace.gpu.dur.sum())
    assert 5 in made.trees[0].kind  # communication has its own colour
    assert made.kernels
    assert made.ops
    assert made.timeline.events == sum(
        len(t) for g, t in trace.tables.items() if g.name in ("GPU", "RUNTIME", "OP", "MARK")
    )


def test_numbers_that_are_none_sort_last_and_break_nothing() -> None:
    page = table([Column("x", "code"), Column("y", "float"), Column("z", "share"), Column("t", "time")],
                 [("a", float("nan"), float("inf"), None), ("b", 1.5, 0.25, 10**6)], caption="c")  # fmt: skip
    assert 'data-v="nan"' not in page
    assert 'data-v="inf"' not in page
    assert 'data-v="1.5"' in page


@pytest.mark.parametrize(
    ("line", "said"), [("no trace of 4 ranks", "No trace"), ("aten::mm is slow", "aten::mm"), ("<b>", "&lt;b&gt;")]
)
def test_sentences_begin_with_a_capital_and_names_do_not(line: str, said: str) -> None:
    assert said in bullets([line])


def test_what_has_no_place_on_a_log_plot_is_left_out() -> None:
    def work(intensity: float, tflops: float) -> Work:
        return Work("aten::mm", "", "bf16", 1, 1, 1, 1, intensity, tflops, 1.0, Side.MEMORY, None, 0.1)

    roof = Roofline(
        "",
        None,
        None,
        None,
        (work(1, 2), work(0, 1), work(float("inf"), 1), work(float("nan"), 1)),
        0,
        None,
        None,
        None,
        0.0,
    )
    assert len(on_plot(roof)) == 1


def test_losses_are_drawn_where_they_were_recorded() -> None:
    def step(number: int, loss: float | None) -> Iteration:
        return Iteration(number, "", 0, 10, 1, 0, 0, 0, 9, 0, 1, loss=loss)

    assert scalars([step(1, None), step(2, 0.5)], "en") is None
    drawn = scalars([step(1, 0.7), step(2, 0.5), step(3, float("nan"))], "en")
    assert drawn is not None
    assert drawn["data"][0]["y"] == [0.7, 0.5]
