"""Laws of the plots: every sample is seen where it belongs, what is missing is seen as missing, and nothing is drawn twice."""

from __future__ import annotations

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.braille import SILENT, Bins, Scale, char, curve, heights, known
from tui.widgets.panel import GAP, LEAST, arranged, needed

values = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(SILENT)), min_size=1, max_size=120)


def _lit(masks: list[list[int]], column: int) -> set[int]:
    """Rows of dots, from below, that are lit in a column."""
    bits = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))[column % 2]
    rows = len(masks)
    return {4 * (rows - 1 - y) + d for y in range(rows) for d in range(4) if masks[y][column // 2] & bits[d]}


@given(values, st.integers(1, 8))
def test_each_value_has_its_dot_and_what_has_none_has_no_dot(told: list[float | None], rows: int) -> None:
    scale = Scale(-1e6, 1e6)
    places = heights(told, rows, scale)
    masks = curve(places, rows)
    for i, (value, place) in enumerate(zip(told, places, strict=True)):
        lit = _lit(masks, i)
        if value is None or isnan(value):
            assert not lit
        else:
            assert place in lit


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60), st.integers(1, 8))
def test_a_curve_has_no_holes(told: list[float], rows: int) -> None:
    masks = curve(heights(told, rows, Scale(0, 1)), rows)
    for i in range(1, len(told)):
        before, here = _lit(masks, i - 1), _lit(masks, i)
        assert here == set(range(min(here), max(here) + 1))
        assert max(here) >= min(before) - 1
        assert max(before) >= min(here) - 1


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.integers(1, 20))
def test_higher_values_never_stand_lower(a: float, b: float, rows: int) -> None:
    scale = Scale(-1e9, 1e9)
    low, high = sorted((a, b))
    assert 0 <= scale.dot(low, 4 * rows) <= scale.dot(high, 4 * rows) < 4 * rows


samples = st.lists(st.tuples(st.integers(0, 500), st.one_of(st.none(), st.floats(0, 100))), max_size=80)


@given(samples, st.integers(1, 40), st.integers(1, 30), st.sampled_from(["max", "min", "mean"]))
def test_columns_hold_what_was_told_in_their_time(
    told: list[tuple[int, float | None]], width: int, count: int, fold: str
) -> None:
    bins = Bins(width, count, fold)
    told = sorted(told, key=lambda s: s[0])
    for at, value in told:
        bins.add(at, value)
    if bins.last is None:
        return
    columns = bins.columns(bins.last, count)
    assert len(columns) == count
    for i, column in enumerate(columns):
        number = bins.last - count + 1 + i
        inside = [v for at, v in told if at // width == number]
        real = known(inside)
        if not inside:
            assert column is None
        elif not real:
            assert column is SILENT
        else:
            assert column is not None
            expected = {"max": max(real), "min": min(real), "mean": sum(real) / len(real)}[fold]
            assert abs(column - expected) < 1e-6


@given(samples, st.integers(1, 40), st.integers(1, 30))
def test_adding_as_time_goes_is_the_same_as_adding_what_is_left(
    told: list[tuple[int, float | None]], width: int, count: int
) -> None:
    one, other = Bins(width, count), Bins(width, count)
    told = sorted(told, key=lambda s: s[0])
    for at, value in told:
        one.add(at, value)
    last = told[-1][0] // width if told else 0
    for at, value in told:
        if at // width > last - count:
            other.add(at, value)
    assert one.columns(last, count) == other.columns(last, count)


@given(st.integers(0, 20), st.integers(0, 250), st.integers(0, 90), st.booleans())
def test_panels_never_overlap_nor_leave_the_room(count: int, columns: int, lines: int, tight: bool) -> None:
    places = arranged(count, columns, lines, tight)
    assert len(places) <= count
    taken: set[tuple[int, int]] = set()
    for p in places:
        assert p.x + p.cells <= columns
        assert p.y + p.lines <= lines
        cells = {(x, y) for x in range(p.x, p.x + p.cells) for y in range(p.y, p.y + p.lines)}
        assert not cells & taken
        taken |= cells
    if len(places) > 1 and places[1].y == 0:
        assert all(p.cells >= LEAST for p in places)
        assert places[1].x - places[0].x == places[0].cells + GAP


@given(st.integers(1, 12), st.integers(30, 250))
def test_with_the_lines_that_are_needed_all_panels_are_shown(count: int, columns: int) -> None:
    assert len(arranged(count, columns, needed(count, columns) - 1)) == count


def test_a_cell_without_a_dot_is_a_blank() -> None:
    assert char(0) == " "
    assert char(0xFF) == "⣿"
