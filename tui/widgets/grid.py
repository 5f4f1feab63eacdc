"""A table for any number of rows: only what is seen is drawn. Sorted, filtered, walked by keys and mouse.

Textual's DataTable keeps styles and sizes of every cell, which 10,000 log lines at 1 Hz do not allow. Here a row is a
tuple; its line is made when it comes into view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len as width
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.tones import Tone, over_cursor, styles
from tui.widgets.columns import GAP, Column, Row, Runs, aligned, clip, fitted, measured, ordered, plain
from tui.widgets.walk import WALK

if TYPE_CHECKING:
    from textual.geometry import Offset


class Grid(ScrollView, can_focus=True):
    """Rows under a header."""

    DEFAULT_CSS = """
    Grid { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *WALK,
        Binding("h,left", "side(-1)", "Left", show=False),
        Binding("l,right", "side(1)", "Right", show=False),
        Binding("s", "sort", "Sort", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another row (None: there is none)."""

        def __init__(self, grid: Grid, row: Row | None) -> None:
            super().__init__()
            self.grid, self.row = grid, row

        @property
        def control(self) -> Grid:
            """The grid."""
            return self.grid

    class Chosen(Moved):
        """Enter, or a click on the row under the cursor."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None, empty: str = "") -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.empty = empty  # what stands there while there are no rows
        self.follow = False  # stays at the last row, as long as the cursor is there
        self.marked: Callable[[Row], bool] | None = None  # rows that are drawn as found
        self.faded: Callable[[Row], bool] | None = None  # rows that may be left unread, whatever their tones
        self._rows: list[Row] = []
        self._shown: list[Row] = []
        self._words: dict[str, str] = {}  # what a row is searched by
        self._filter = ""
        self._terms: list[str] = []
        self._before: Row | None = None  # where the cursor stood when other columns came
        self._order: tuple[str, bool] | None = None
        self._at, self._column = 0, 0
        self._sizes: list[int] = []  # width of each column; 0: left out
        self._natural: list[int] = []
        self._styles: dict[Tone, Style] = {}
        self._base = Style()

    # --- what stands in it ----------------------------------------------------------------

    def load(self, rows: Iterable[Row]) -> None:
        """These rows instead of all there were; cursor, order and filter stay."""
        before, self._before = self.row or self._before, None
        self._rows = list(rows)
        self._words = {}
        self._natural = measured(self.columns, self._rows)
        self._arrange(before)

    def append(self, rows: Iterable[Row], limit: int = 0) -> None:
        """More rows below. With `limit` the oldest ones are let go."""
        new = list(rows)
        if not new:
            return
        before, last = self.row, self._at >= len(self._shown) - 1
        over = max(0, len(self._rows) + len(new) - limit) if limit else 0
        self._natural = [
            max(a, b)
            for a, b in zip(self._natural or measured(self.columns, ()), measured(self.columns, new), strict=True)
        ]
        if self._order is None and not over:
            self._grow(new, to_end=self.follow and last)
            return
        every = [*self._rows, *new]
        for gone in every[:over]:
            self._words.pop(gone.key, None)
        self._rows = every[over:]
        self._arrange(None if self.follow and last else before, last=self.follow and last)

    def _grow(self, new: Sequence[Row], *, to_end: bool) -> None:
        """More rows below, and nothing else changes: 10,000 of them are not gone through for each one that comes."""
        before, held = self.row, len(self._shown)
        if self._shown is not self._rows:
            self._shown.extend(self._found(new))
        self._rows.extend(new)
        added = len(self._shown) > held
        if to_end and added:
            self._at = len(self._shown) - 1
        self._fit()
        if self.row is not before:
            self.post_message(self.Moved(self, self.row))
        if to_end and added:
            self._scroll(len(self._shown))
        if to_end or held < round(self.scroll_y) + self.size.height:
            self.refresh()

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Other columns (another language): the rows are to be loaded again; the cursor finds its row among them."""
        self._before = self.row or self._before
        self.columns = tuple(columns)
        self._rows, self._shown, self._words, self._natural = [], [], {}, []
        self._column = min(self._column, len(self.columns) - 1)
        if self._order is not None and self._order[0] not in {c.key for c in self.columns}:
            self._order = None
        self._fit()
        self.refresh()

    def _arrange(self, before: Row | None, *, last: bool = False) -> None:
        shown = self._found(self._rows) if self._terms else self._rows
        if self._order is not None:
            column = next((n for n, c in enumerate(self.columns) if c.key == self._order[0]), 0)
            shown = ordered(shown, column, self._order[1])
        drawn, sizes, stood, self._shown = self._shown, self._sizes, self._at, shown
        at = self._at
        if last:
            at = len(shown) - 1
        elif before is not None and not (at < len(shown) and shown[at].key == before.key):
            at = next((n for n, r in enumerate(shown) if r.key == before.key), at)
        self._at = max(0, min(at, len(shown) - 1))
        self._fit()
        if self.row != before or last:
            self.post_message(self.Moved(self, self.row))
        if last:
            self._scroll(len(shown))
        same = stood == self._at and sizes == self._sizes and drawn is not shown and len(drawn) == len(shown) > 0
        if last or not same or self.marked is not None or self.faded is not None:
            self.refresh()
        else:
            self._draw_others(drawn)

    def _draw_others(self, drawn: Sequence[Row]) -> None:
        """Draw the lines in view that are not as `drawn`: readings come each second, and few of them are others."""
        top = round(self.scroll_y)
        seen = range(top, min(top + max(0, self.size.height - 1), len(drawn)))
        other = [n for n in seen if drawn[n].cells != self._shown[n].cells or drawn[n].tone is not self._shown[n].tone]
        if other:
            self.refresh(*(Region(0, 1 + n - top, self.size.width, 1) for n in other))

    def _found(self, rows: Sequence[Row]) -> list[Row]:
        """Those of `rows` that hold every word of the filter."""
        words, found = self._words, list(rows)
        for row in found:
            if row.key not in words:
                words[row.key] = " ".join(map(plain, row.cells)).casefold()
        for term in self._terms:
            found = [row for row in found if term in words[row.key]]
        return found

    # --- what is asked of it --------------------------------------------------------------

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._shown[self._at] if 0 <= self._at < len(self._shown) else None

    @property
    def at(self) -> int:
        """Where the cursor stands among the rows that are shown."""
        return self._at

    @property
    def column(self) -> Column:
        """The column under the cursor."""
        return self.columns[self._column]

    @property
    def shown(self) -> Sequence[Row]:
        """The rows that the filter lets through, in their order."""
        return self._shown

    @property
    def rows(self) -> Sequence[Row]:
        """All rows."""
        return self._rows

    @property
    def order(self) -> tuple[str, bool] | None:
        """Key of the column that it is sorted by, and whether from the greatest."""
        return self._order

    @property
    def filtered(self) -> str:
        """The filter."""
        return self._filter

    def filter(self, text: str) -> None:
        """Show rows that hold each of these words."""
        before, self._terms = self.row, text.casefold().split()
        self._filter = " ".join(self._terms)
        self._arrange(before)

    def sort_by(self, key: str | None, reverse: bool = False) -> None:
        """Sort by a column; None: as loaded."""
        before, self._order = self.row, (key, reverse) if key else None
        self._arrange(before)
        self.scroll_to_cursor()

    def select(self, key: str) -> bool:
        """Put the cursor on a row; False when it is not shown."""
        at = next((n for n, r in enumerate(self._shown) if r.key == key), None)
        if at is None:
            return False
        if at != self._at:
            self._go(at)
        else:
            self.scroll_to_cursor()
        return True

    def text(self, row: Row | None = None) -> str:
        """A row as text to copy."""
        row = row or self.row
        return "  ".join(t for c in row.cells if (t := plain(c))) if row else ""

    # --- walking --------------------------------------------------------------------------

    def _go(self, at: int) -> None:
        at = max(0, min(at, len(self._shown) - 1))
        if at != self._at:
            self._at = at
            self.post_message(self.Moved(self, self.row))
        self.scroll_to_cursor()
        self.refresh()

    def scroll_to_cursor(self) -> None:
        """Bring the cursor into view."""
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True, spacing=None)

    def scroll_to_region(self, region: Region, **_: Any) -> Any:
        """Only lines below the header count as seen."""
        room, top = max(1, self.size.height - 1), round(self.scroll_y)
        if region.y < top:
            self._scroll(region.y)
        elif region.y >= top + room:
            self._scroll(region.y - room + 1)
        return None

    def _scroll(self, y: int) -> None:
        """Now, so that the next key counts from there; the bar may not have been laid out yet."""
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        if not self.show_vertical_scrollbar:
            self.call_after_refresh(self._place_bar)

    def _place_bar(self) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def action_move(self, by: int) -> None:
        """Up or down."""
        self._go(self._at + by)

    def action_page(self, by: int) -> None:
        """A page up or down."""
        self._go(self._at + by * max(1, self.size.height - 2))

    def action_end(self, which: int) -> None:
        """To the first or the last row."""
        self._go(0 if which < 0 else len(self._shown) - 1)

    def action_side(self, by: int) -> None:
        """To the next column that is shown."""
        seen = [i for i, size in enumerate(self._sizes) if size]
        if seen:
            here = seen.index(self._column) if self._column in seen else 0
            self._column = seen[max(0, min(len(seen) - 1, here + by))]
            self.refresh()

    def action_sort(self) -> None:
        """By the column under the cursor: from the greatest, then from the least, then as loaded."""
        key = self.column.key
        if self._order is None or self._order[0] != key:
            self.sort_by(key, True)
        elif self._order[1]:
            self.sort_by(key, False)
        else:
            self.sort_by(None)

    def action_choose(self) -> None:
        """Open the row."""
        if self.row is not None:
            self.post_message(self.Chosen(self, self.row))

    def on_click(self, event: events.Click) -> None:
        """A click on the header sorts, on a row puts the cursor there, on the cursor opens it."""
        where = event.get_content_offset(self)
        if where is None:
            return
        column = self._column_at(where)
        if where.y == 0:
            if column is not None:
                self._column = column
                self.action_sort()
            return
        at = where.y - 1 + round(self.scroll_y)
        if at >= len(self._shown):
            return
        again = at == self._at
        if column is not None:
            self._column = column
        self._go(at)
        if again and event.chain > 1:
            self.action_choose()

    def _column_at(self, where: Offset) -> int | None:
        x = 1
        for i, size in enumerate(self._sizes):
            if size and x <= where.x < x + size + GAP:
                return i
            x += size + GAP if size else 0
        return None

    # --- drawing --------------------------------------------------------------------------

    def _fit(self) -> None:
        room = self.size.width - 2
        self.virtual_size = Size(max(1, self.size.width), len(self._shown) + 1)
        if room <= 0 or not self.columns:
            self._sizes = []
            return
        self._sizes = fitted(self.columns, self._natural or measured(self.columns, ()), room)
        if self._sizes and not self._sizes[self._column]:
            self._column = next((i for i, size in enumerate(self._sizes) if size), 0)

    def on_resize(self) -> None:
        """Another width: other columns may fit."""
        self._fit()
        self.call_after_refresh(self.scroll_to_cursor)

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        """The header, then the rows in view."""
        if not self._styles:
            self._styles = styles(self.app.theme_variables)
            self._base = self.rich_style
        base = self._base
        if y == 0:
            return self._header(base)
        at = y - 1 + round(self.scroll_y)
        if at < len(self._shown):
            return self._line(self._shown[at], at, base)
        text = self.empty if at == 0 or (not self._shown and y == 2) else ""
        if self._filter and not self._shown and self._rows and y == 2:
            text = f"/{self._filter}: 0 of {len(self._rows)}"
        shown = text if y == 2 else ""
        style = base + self._styles[Tone.DIM]
        return Strip([Segment(clip("  " + shown, self.size.width), style)]).adjust_cell_length(self.size.width, style)

    def _header(self, base: Style) -> Strip:
        style = base + self._styles[Tone.DIM]
        parts = [Segment(" ", style)]
        for i, (column, size) in enumerate(zip(self.columns, self._sizes, strict=False)):
            if not size:
                continue
            sign = ""
            if self._order is not None and self._order[0] == column.key:
                sign = "↓" if self._order[1] else "↑"
            title = clip(column.title + (" " + sign if sign else ""), size)
            here = style + Style(underline=True) if i == self._column and self.has_focus else style
            parts += [*aligned(title, size, column.right, here, style), Segment(" " * GAP, style)]
        return Strip(parts).adjust_cell_length(self.size.width, style)

    def _line(self, row: Row, at: int, base: Style) -> Strip:
        cursor, over = at == self._at, Style()
        if cursor and (self.has_focus or self.has_class("-steady")):
            base += Style(bgcolor=self.app.theme_variables["block-cursor-background"])
            over = over_cursor(self.app.theme_variables)
        elif self.marked is not None and self.marked(row):
            base += Style(bgcolor=self.app.theme_variables["panel"])
        runs, columns = Runs(" ", base), 1
        faded = self.faded is not None and self.faded(row)
        for i, (column, size) in enumerate(zip(self.columns, self._sizes, strict=False)):
            if not size:
                continue
            cell = row.cells[i]
            tone = cell.tone if not isinstance(cell, str) and cell.tone is not Tone.PLAIN else row.tone
            tone = Tone.DIM if faded else tone
            style = (base if tone is Tone.PLAIN else base + self._styles[tone]) + over
            if cursor and self.has_focus and i == self._column:
                style += Style(underline=True)
            text = clip(plain(cell), size)
            room = " " * (size - width(text))
            columns += size + GAP
            if column.right:
                runs.add(room, base)
            runs.add(text, style)
            runs.add(" " * GAP if column.right else room + " " * GAP, base)
        return Strip(runs.done(), columns).adjust_cell_length(self.size.width, base)
