"""One time base: clocks that drift or are set, counters with gaps and resets, gauges within windows, a real profiler's trace."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.readings import timebase
from probes.capture.readings.timebase import Base, Pair
from tests.live_jobs import ROOT, Job, torch_python

EPOCH = 1_795_277_700_000_000_000
TIMES = st.lists(st.integers(0, 10**12), min_size=1, max_size=40, unique=True).map(sorted)


def bases(drift: st.SearchStrategy[int]) -> st.SearchStrategy[Base]:
    """A second to an hour, with realtime gaining `drift` ns."""

    def build(span: int, gained: int) -> Base:
        first = Pair(EPOCH, 10**12, 10**12 + 5, 200)
        return Base(first, Pair(EPOCH + span + gained, 10**12 + span, 10**12 + span + 5, 300))

    return st.builds(build, st.integers(10**9, 3600 * 10**9), drift)


# --- clocks -------------------------------------------------------------------------------


def test_the_clocks_of_this_machine() -> None:
    one, two = timebase.pair(), timebase.pair()
    assert one.monotonic <= two.monotonic
    assert one.error < 10_000_000
    base = Base(one, two)
    assert abs(int(base.from_realtime(one.realtime)) - one.monotonic) <= base.error
    assert base.slept == 0


@given(bases(st.integers(-400_000, 400_000)))
def test_the_ends_are_mapped_onto_themselves(base: Base) -> None:
    mapped = base.from_realtime([base.first.realtime, base.last.realtime])
    if base.stepped:
        return
    assert abs(int(mapped[0]) - base.first.monotonic) <= 1
    assert abs(int(mapped[1]) - base.last.monotonic) <= 1


@given(
    bases(st.integers(-400_000, 400_000)), st.lists(st.integers(0, 3600 * 10**9), min_size=2, max_size=20).map(sorted)
)
def test_order_survives(base: Base, gone: list[int]) -> None:
    mapped = base.from_realtime(np.array(gone) + EPOCH)
    assert np.all(np.diff(mapped) >= -1)  # rounding to whole ns


@given(bases(st.integers(10**10, 10**15) | st.integers(-(10**15), -(10**10))))
def test_a_clock_that_was_set_is_said(base: Base) -> None:
    assert base.stepped
    assert base.error >= abs(base.drift)
    assert int(base.from_realtime(EPOCH + 1000)) == base.first.monotonic + 1000  # as the clocks stood at the begin


def test_a_machine_that_slept_is_said() -> None:
    base = Base(Pair(EPOCH, 10**9, 10**9), Pair(EPOCH + 10**9, 2 * 10**9, 62 * 10**9))
    assert base.slept == 60 * 10**9
    assert int(base.from_boottime(10**9 + 5)) == 10**9 + 5


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x, max_size=3) | st.dictionaries(
    st.sampled_from(["realtime", "monotonic", "boottime", "error"]), x, max_size=4), max_leaves=12))  # fmt: skip
def test_clocks_of_any_document(clocks: object) -> None:
    found = timebase.base(clocks)
    assert found is None or found.span >= 0


MARKS = """
import json, sys, time
import torch
from torch.profiler import profile, record_function, ProfilerActivity
sys.path.insert(0, sys.argv[2])
from probes.capture.readings import timebase
marks, first = [], timebase.pair()
with profile(activities=[ProfilerActivity.CPU]) as p:
    for i in range(20):
        before = time.monotonic_ns()
        with record_function("mark"):
            torch.ones(4).sum()
        marks.append([before, time.monotonic_ns()])
        time.sleep(0.01)
last = timebase.pair()
p.export_chrome_trace(sys.argv[1])
as_plain = lambda c: {n: getattr(c, n) for n in ("realtime", "monotonic", "boottime", "error")}
print("marks", json.dumps([marks, [as_plain(first), as_plain(last)]]))
print("ready")
time.sleep(600)
"""


@pytest.mark.machine
def test_a_real_trace_lands_on_the_monotonic_clock(tmp_path: Path) -> None:
    numpy = subprocess.run([torch_python(), "-c", "import importlib.util as u; print(u.find_spec('numpy') is not None)"],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    if numpy != "True\n":
        pytest.skip("torch's interpreter has no numpy")
    script = tmp_path / "mark.py"
    script.write_text(MARKS)
    trace_file = tmp_path / "trace.json"
    with Job(str(script), str(trace_file), str(ROOT), interpreter=torch_python()) as job:
        (said,) = (line for line in job.output.splitlines() if line.startswith("marks "))
    marks, clocks = json.loads(said.removeprefix("marks "))
    base = timebase.base(clocks)
    assert base is not None
    found = sorted(
        (e["ts"], e["dur"])
        for e in json.loads(trace_file.read_text())["traceEvents"]
        if e.get("name") == "mark" and e.get("ph") == "X"
    )
    base_ns = json.loads(trace_file.read_text()).get("baseTimeNanoseconds", 0)
    begun = np.rint(np.array([ts for ts, _ in found]) * 1000).astype(np.int64)
    mapped, error = base.from_trace(begun, base_ns)
    assert len(mapped) == len(marks)
    for at, (before, after) in zip(mapped.tolist(), marks, strict=True):
        assert before - error <= at <= after + error


# --- joins --------------------------------------------------------------------------------


@given(TIMES, st.data())
def test_the_increments_of_a_counter_add_up(at: list[int], data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(0, 10**9), min_size=len(at), max_size=len(at)))
    counter = np.cumsum(steps).tolist()
    cuts = sorted(data.draw(st.lists(st.integers(0, 10**12), max_size=6)))
    edges = [at[0], *[c for c in cuts if at[0] < c < at[-1]], at[-1]]
    parts = timebase.increments(at, counter, list(pairwise(edges)))
    if len(at) > 1:
        assert np.nansum(parts) == pytest.approx(counter[-1] - counter[0], abs=1e-3)


@given(TIMES, st.data())
def test_a_counter_grows_though_it_is_reset_and_has_gaps(at: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | st.integers(0, 10**9), min_size=len(at), max_size=len(at)))
    known = [(t, v) for t, v in zip(at, values, strict=True) if v is not None]
    (found,) = timebase.increments(at, values, [(at[0], at[-1])])
    if len(known) < 2:
        assert np.isnan(found)
        return
    expected = sum(b - a if b >= a else b for (_, a), (_, b) in pairwise(known))
    assert found == pytest.approx(expected, abs=1e-3)


@given(TIMES, st.data())
def test_a_mean_lies_between_the_values(at: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | st.integers(0, 2000), min_size=len(at), max_size=len(at)))
    ends = sorted(data.draw(st.lists(st.integers(0, 2 * 10**12), min_size=2, max_size=8, unique=True)))
    found = timebase.means(at, values, timebase.windows(ends))
    assert len(found) == len(ends) - 1
    known = [v for v in values if v is not None]
    for one in found[np.isfinite(found)]:
        assert min(known) <= one <= max(known)


@given(st.integers(0, 2000), TIMES)
def test_the_mean_of_what_does_not_change(value: int, at: list[int]) -> None:
    found = timebase.means(at, [value] * len(at), [(at[0], at[-1] + 10)])
    assert found[0] == value


def test_the_clock_during_the_slowest_iteration() -> None:
    ends = [0, 100, 200, 500, 600]
    at = list(range(0, 700, 50))
    clock = [1980 if t < 200 or t >= 500 else 900 for t in at]
    number = timebase.slowest(ends)
    assert number == 2
    found = timebase.means(at, clock, timebase.windows(ends))
    assert found.tolist() == [1980, 1980, 900, 1980]


def test_iterations_shorter_than_the_samples() -> None:
    found = timebase.means([0, 100], [10, 20], [(20, 30), (90, 110), (500, 501)])
    assert found.tolist() == [10, 15, 20]
    assert np.isnan(timebase.means([100], [1], [(0, 50)])[0])  # nothing was known yet
    assert timebase.increments([0, 100], [0, 50], [(20, 40), (200, 300)])[0] == 10


@pytest.mark.parametrize("nothing", [[], None, {"status": "denied", "detail": "x"}, "x"])
def test_what_could_not_be_read_is_no_number(nothing: object) -> None:
    values = timebase.column(nothing, 3)
    at = [1, 2, 3]
    assert np.isnan(timebase.means(at, values, [(1, 3)])).all()
    assert np.isnan(timebase.increments(at, values, [(1, 3)])).all()
    assert np.isnan(timebase.rates(at, values, [(1, 3)])).all()
    assert timebase.covered(at, values, [(1, 3)]).tolist() == [0]
    assert timebase.windows([]).shape == (0, 2)
    assert timebase.slowest([5]) is None


def test_times_that_go_backwards_are_none() -> None:
    assert len(timebase.times([3, 2])) == 0
    assert len(timebase.times([1, "2"])) == 0
    assert timebase.times([1, 1, 2]).tolist() == [1, 1, 2]
