"""The table that every screen uses: what it shows at which width, and where its cursor stays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tui.themes import THEMES
from tui.tones import Tone
from tui.widgets.columns import Cell, Column, Row, clip
from tui.widgets.grid import Grid

COLUMNS = (
    Column("gpu", "GPU", least=4),
    Column("name", "name", least=8, stretch=True),
    Column("power", "power", right=True, keep=1),
    Column("note", "note", least=6, most=12, keep=2),
)


class Table(App[None]):
    """A grid and nothing else."""

    def __init__(self, columns: Sequence[Column] = COLUMNS) -> None:
        super().__init__()
        self.grid = Grid(columns, empty="nothing here")
        self.told: list[str] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "dark"

    def compose(self) -> ComposeResult:
        yield self.grid

    def on_grid_moved(self, message: Grid.Moved) -> None:
        self.told.append(message.row.key if message.row else "")

    def on_grid_chosen(self, message: Grid.Chosen) -> None:
        self.told.append(f"open {message.row.key}" if message.row else "open")


def row(n: int, name: str = "", power: float | None = None) -> Row:
    shown = Cell("–", Tone.UNKNOWN) if power is None else Cell(f"{power:.0f} W", sort=power)
    if power is None:
        shown = Cell("", Tone.UNKNOWN)
    return Row(str(n), (f"{n:04d}", name or f"worker {n}", shown, "idle"), n)


@asynccontextmanager
async def table(
    rows: Sequence[Row], size: tuple[int, int] = (60, 12), columns: Sequence[Column] = COLUMNS
) -> AsyncIterator[tuple[Pilot[Any], Grid]]:
    app = Table(columns)
    async with app.run_test(size=size) as pilot:
        app.grid.load(rows)
        app.grid.focus()
        await pilot.pause()
        yield pilot, app.grid


def drawn(grid: Grid) -> list[str]:
    return ["".join(s.text for s in grid.render_line(y)).rstrip() for y in range(grid.size.height)]


# --- text in cells ------------------------------------------------------------------------


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_clipped_text_fits_and_keeps_its_beginning(text: str, columns: int) -> None:
    text = "".join(c for c in text if c.isprintable())
    shown = clip(text, columns)
    assert cell_len(shown) <= columns
    assert shown in (text, "") or shown.endswith("…")
    assert text.startswith(shown.removesuffix("…").rstrip()) or shown == text


async def test_wide_characters_and_control_characters_keep_the_columns_in_line() -> None:
    rows = [
        row(1, "训练任务 中文名称很长很长"),
        row(2, "tab\tand\nbreak"),
        row(3, "plain"),
        row(4, "e\u0301\u0301 👩‍🔬 ok"),
    ]
    async with table(rows) as (_, grid):
        for y in range(1, 5):
            strip = grid.render_line(y)
            assert strip.cell_length == grid.size.width
            before = "".join(s.text for s in strip).partition("idle")[0]
            assert cell_len(before) == cell_len(drawn(grid)[0].partition("note")[0])
        assert "tab and break" in drawn(grid)[2]


# --- widths -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [*range(1, 40), 60, 80, 200])
async def test_every_line_is_as_wide_as_the_table_and_the_least_needed_columns_go_first(width: int) -> None:
    async with table([row(n, "a name that is rather long", 100.0 * n) for n in range(1, 5)], size=(width, 8)) as (
        _,
        grid,
    ):
        assert all(grid.render_line(y).cell_length == grid.size.width for y in range(8))
        header = drawn(grid)[0]
        if "note" in header:  # what is needed least is never there without what is needed more
            assert "power" in header
        if width >= 40:
            assert "GPU" in header
            assert "name" in header
        if width >= 80:
            assert "note" in header


async def test_other_columns_may_be_more_or_fewer() -> None:
    async with table([row(1), row(2)]) as (pilot, grid):
        await pilot.press("l", "l", "l", "s", "j")
        fewer = (Column("a", "甲"), Column("b", "乙", stretch=True))
        grid.set_columns(fewer)
        await pilot.pause()
        grid.load([Row(str(n), (f"{n}", "x")) for n in range(1, 4)])
        await pilot.pause()
        assert "乙" in drawn(grid)[0]
        assert grid.row is not None
        assert grid.row.key == "2"  # the cursor found its row again
        assert grid.order is None
        grid.set_columns(COLUMNS)
        grid.load([row(1), row(2)])
        await pilot.pause()
        assert "note" in drawn(grid)[0]


# --- order and filter ---------------------------------------------------------------------


async def test_rows_without_a_value_stand_last_either_way() -> None:
    rows = [
        row(1, power=None),
        row(2, power=90.0),
        row(3, power=700.0),
        row(4, power=float("nan")),
        row(5, power=250.0),
    ]
    async with table(rows) as (pilot, grid):
        grid.sort_by("power", True)
        assert [r.key for r in grid.shown] == ["3", "5", "2", "1", "4"]
        grid.sort_by("power", False)
        assert [r.key for r in grid.shown] == ["2", "5", "3", "1", "4"]
        await pilot.press("l", "l", "s")
        assert grid.order == ("power", False) or grid.order is None
        grid.sort_by(None)
        assert [r.key for r in grid.shown] == ["1", "2", "3", "4", "5"]


async def test_s_goes_from_the_greatest_to_the_least_and_back() -> None:
    async with table([row(n, power=float(n)) for n in (2, 3, 1)]) as (pilot, grid):
        await pilot.press("s")
        assert [r.key for r in grid.shown] == ["3", "2", "1"]
        assert "GPU ↓" in drawn(grid)[0]
        await pilot.press("s")
        assert [r.key for r in grid.shown] == ["1", "2", "3"]
        await pilot.press("s")
        assert [r.key for r in grid.shown] == ["2", "3", "1"]


async def test_a_filter_wants_every_word_in_any_case_and_order() -> None:
    async with table([row(1, "Train LLM 训练"), row(2, "train vision"), row(3, "serve")]) as (pilot, grid):
        grid.filter("LLM  train")
        assert [r.key for r in grid.shown] == ["1"]
        grid.filter("训练")
        assert [r.key for r in grid.shown] == ["1"]
        grid.append([row(4, "训练 again"), row(5, "no")])
        assert [r.key for r in grid.shown] == ["1", "4"]
        grid.filter("nowhere")
        await pilot.pause()
        assert grid.row is None
        assert "0 of 5" in "\n".join(drawn(grid))
        grid.filter("")
        assert [r.key for r in grid.shown] == ["1", "2", "3", "4", "5"]


# --- the cursor ---------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=30), st.lists(st.integers(0, 40), unique=True, max_size=30),
    st.sampled_from(["", "worker 1", "3"]), st.sampled_from([None, "gpu", "name"]), st.booleans(),
)  # fmt: skip
def test_the_cursor_stays_on_its_row(
    before: list[int], after: list[int], words: str, key: str | None, reverse: bool
) -> None:
    grid = _Silent(COLUMNS)
    grid.load([row(n) for n in before])
    if before:
        grid.select(str(before[len(before) // 2]))
    stood = grid.row
    grid.sort_by(key, reverse)
    assert stood is None or (grid.row is not None and grid.row.key == stood.key)
    grid.load([row(n) for n in after])
    grid.filter(words)
    there = {r.key for r in grid.shown}
    if stood is not None and stood.key in {str(n) for n in after} and stood.key in there:
        assert grid.row is not None
        assert grid.row.key == stood.key
    assert (grid.row is None) == (not there)
    assert len(there) == sum(all(w in f"{n:04d} worker {n} idle" for w in words.split()) for n in after)


@given(
    st.lists(st.lists(st.integers(0, 500), max_size=12), max_size=8),
    st.integers(0, 25),
    st.sampled_from(["", "7"]),
    st.booleans(),
)
def test_appending_is_the_same_as_loading_all(batches: list[list[int]], limit: int, words: str, sort: bool) -> None:
    grown, loaded = _Silent(COLUMNS), _Silent(COLUMNS)
    every = [row(1000 * i + n) for i, batch in enumerate(batches) for n in dict.fromkeys(batch)]
    for grid in (grown, loaded):
        grid.filter(words)
        if sort:
            grid.sort_by("name", True)
    for i, batch in enumerate(batches):
        grown.append([row(1000 * i + n) for n in dict.fromkeys(batch)], limit)
    loaded.load(every[-limit:] if limit else every)
    assert [r.key for r in grown.rows] == [r.key for r in loaded.rows]
    assert [r.key for r in grown.shown] == [r.key for r in loaded.shown]


class _Silent(Grid):
    """A grid outside an app: it has no size, and tells nobody."""

    def post_message(self, message: Any) -> bool:
        return True

    def refresh(self, *regions: Any, **options: Any) -> Any:
        return self

    def scroll_to(self, *args: Any, **options: Any) -> None:
        return None

    def call_after_refresh(self, *args: Any, **options: Any) -> bool:
        return True


async def test_it_follows_what_comes_only_while_the_cursor_is_at_the_end() -> None:
    async with table([row(n) for n in range(50)]) as (pilot, grid):
        grid.follow = True
        await pilot.press("G")
        grid.append([row(n) for n in range(50, 60)])
        await pilot.pause()
        assert grid.row is not None
        assert grid.row.key == "59"
        assert "0059" in drawn(grid)[-1]
        await pilot.press("k")
        grid.append([row(60)])
        await pilot.pause()
        assert grid.row.key == "58"


async def test_a_limit_lets_the_oldest_go_and_the_cursor_with_them() -> None:
    async with table([row(n) for n in range(20)]) as (pilot, grid):
        await pilot.press("j", "j")
        grid.append([row(n) for n in range(20, 25)], limit=20)
        await pilot.pause()
        assert grid.rows[0].key == "5"
        assert grid.row is not None
        assert grid.row.key in {r.key for r in grid.shown}


async def test_keys_that_come_faster_than_the_screen_leave_the_cursor_in_view() -> None:
    async with table([row(n) for n in range(300)]) as (pilot, grid):
        grid.action_end(1)
        grid.action_end(-1)
        await pilot.pause()
        assert "0000" in drawn(grid)[1]
        grid.action_end(1)
        grid.action_move(-1)
        await pilot.pause()
        assert any("0298" in line for line in drawn(grid))


async def test_mouse_and_enter_open_a_row_and_a_header_sorts() -> None:
    async with table([row(n, power=float(n)) for n in range(5)]) as (pilot, grid):
        await pilot.click(grid, offset=(3, 3))
        assert grid.row is not None
        assert grid.row.key == "2"
        await pilot.press("enter")
        app = pilot.app
        assert isinstance(app, Table)
        assert app.told[-1] == "open 2"
        await pilot.click(grid, offset=(2, 0))
        assert grid.order == ("gpu", True)
        assert grid.row.key == "2"


async def test_what_is_not_there_is_said() -> None:
    async with table([]) as (_, grid):
        assert "nothing here" in "\n".join(drawn(grid))
        assert grid.row is None
        assert grid.text() == ""


# --- many rows ----------------------------------------------------------------------------


async def test_only_what_is_seen_is_drawn() -> None:
    made: list[int] = []

    class Counted(Grid):
        def render_line(self, y: int) -> Any:
            made.append(y)
            return super().render_line(y)

    app = Table()
    app.grid = Counted(COLUMNS)
    async with app.run_test(size=(80, 24)) as pilot:
        app.grid.focus()
        for start in range(0, 10_000, 1000):
            app.grid.append([row(n) for n in range(start, start + 1000)])
        await pilot.pause()
        made.clear()
        await pilot.press("G")
        await pilot.pause()
        assert app.grid.row is not None
        assert app.grid.row.key == "9999"
        assert "9999" in drawn(app.grid)[-1]
        made.clear()
        await pilot.press("j")  # already at the end
        app.grid.append([row(10_000)])
        await pilot.pause()
        assert len(made) <= 3 * 24
        app.grid.filter("worker 77")
        assert len(app.grid.shown) == sum("77" in str(n) for n in range(10_001))


async def test_faded_rows_lose_their_tones_and_marked_ones_stand_out() -> None:
    async with table([Row("1", ("a", "b", Cell("1 W", Tone.ERROR), "c")), row(2)]) as (pilot, grid):
        loud = grid.render_line(1)
        grid.faded = lambda r: r.key == "1"
        grid.marked = lambda r: r.key == "2"
        await pilot.press("j")
        assert [s.style for s in grid.render_line(1)] != [s.style for s in loud]
        assert grid.render_line(1).text == loud.text
