"""Laws of the plot of steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.steps import Step, cells, columns


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=4), st.integers(1, 30), st.integers(0, 10**9))
def test_a_column_is_as_high_as_its_step_and_its_parts_stand_in_order(parts: list[int], height: int, more: int) -> None:
    top = max(1, sum(parts) + more)
    found = cells(parts, top, height)
    assert len(found) == height
    drawn = [part for part, _ in found if part >= 0]
    assert drawn == sorted(drawn)
    assert [part for part, _ in found[len(drawn) :]] == [-1] * (height - len(drawn))
    exact = sum(parts) / top * height
    assert exact - 1 <= len(drawn) <= exact + 1 + 1e-6
    assert bool(drawn) == bool(sum(parts))


@given(st.integers(0, 500), st.integers(1, 200))
def test_no_step_is_left_out_however_narrow_it_is(count: int, room: int) -> None:
    steps = [Step(str(n), str(n), n, ()) for n in range(count)]
    groups, thick = columns(steps, room)
    assert [s for g in groups for s in g] == steps
    assert all(groups)
    assert len(groups) * thick <= max(room, 1) or not steps
