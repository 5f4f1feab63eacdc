"""History plots: several curves beside and under each other over one axis of time, in one widget.

A widget of its own for each plot would cost a layout each; here all are lines of one, made again only where what they
show is another. A cursor in time runs through all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.braille import heights
from tui.widgets.panel import Graph, Lines, Panels, Pen, Place, above, arranged, joined

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual import events


class _Made(NamedTuple):
    """A panel as it was drawn, and what it was drawn from."""

    named: object
    title: list[Segment]
    frame: object
    curves: object
    dots: tuple[tuple[int, ...], ...]
    over: frozenset[int]
    body: Lines


class Plots(Widget, can_focus=True):
    """The panels. `feed` gives what they show for the cells that each has; of those out of sight only that they are."""

    DEFAULT_CSS = "Plots { height: 1fr; width: 1fr; background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "time(-1)", "Earlier", show=False),
        Binding("l,right", "time(1)", "Later", show=False),
        Binding("H,shift+left", "time(-10)", show=False),
        Binding("L,shift+right", "time(10)", show=False),
        Binding("g,home", "edge(-1)", show=False),
        Binding("G,end", "edge(1)", show=False),
        Binding("j,down", "panel(1)", "Next plot", show=False),
        Binding("k,up", "panel(-1)", "Plot before", show=False),
        Binding("escape", "leave", show=False),
    ]

    class Pointed(Message):
        """Another panel, or another time in it."""

        def __init__(self, plots: Plots) -> None:
            super().__init__()
            self.plots = plots

    def __init__(self, feed: Callable[[int, range], Panels], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._feed = feed
        self._panels = Panels(())
        self._places: tuple[Place, ...] = ()
        self._made: list[_Made] = []
        self._lines: list[Strip] = []
        self._parts: list[list[tuple[int, list[Segment]]]] = []  # what each line was joined from
        self._pen: Pen | None = None
        self._here = 0  # the panel with the cursor
        self._first = 0  # the first one that is in sight
        self._at: int | None = None  # ns UTC: the cursor
        self.tight = False  # they are bars
        self.count = 1  # how many panels there will be; the width of each hangs on it

    # --- what is asked of it --------------------------------------------------------------

    @property
    def graph(self) -> Graph | None:
        """The panel with the cursor."""
        return self._panels.graphs[self._here] if self._here < len(self._panels.graphs) else None

    @property
    def hidden(self) -> int:
        """Panels that are out of sight."""
        return max(0, self.count - len(self._places)) if self._places else 0

    @property
    def at(self) -> int | None:
        """The cursor, ns UTC; None: at what is now."""
        return self._at

    @property
    def panels(self) -> Panels:
        """What is shown."""
        return self._panels

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the panels stand."""
        return self._places

    def value(self) -> float | None:
        """What the first curve of the panel says at the cursor; None when it says nothing there."""
        graph, cell = self.graph, self._cell()
        return graph.value(cell) if graph is not None and cell is not None else None

    def select(self, key: str) -> bool:
        """Go to the panel called `key`."""
        for i, graph in enumerate(self._panels.graphs):
            if graph.key == key:
                self._here = i
                self.update()
                return True
        return False

    # --- keys and mouse -------------------------------------------------------------------

    def action_time(self, by: int) -> None:
        """The cursor a cell on."""
        cells = self._cells
        if cells <= 0 or self._panels.end <= self._panels.begin:
            return
        cell = self._cell()
        self._point(cells - 1 if cell is None else max(0, min(cells - 1, cell + by)))

    def action_edge(self, which: int) -> None:
        """To the oldest, or back to now."""
        if which < 0 and self._panels.end > self._panels.begin:
            self._point(0)
        else:
            self._moved(None)

    def action_panel(self, by: int) -> None:
        """The next panel."""
        self._here = max(0, min(self.count - 1, self._here + by))
        self._moved(self._at)

    def action_leave(self) -> None:
        """Take the cursor away; where there is none the key is somebody else's."""
        if self._at is None:
            raise SkipAction
        self._moved(None)

    def _point(self, cell: int) -> None:
        step = (self._panels.end - self._panels.begin) / max(1, self._cells)
        self._moved(round(self._panels.begin + (cell + 0.5) * step))

    def _moved(self, at: int | None) -> None:
        self._at = at
        self.update()
        self.post_message(self.Pointed(self))

    def on_click(self, event: events.Click) -> None:
        """The cursor to where one points."""
        for i, place in enumerate(self._places):
            if place.x <= event.x < place.x + place.cells and place.y <= event.y < place.y + place.lines:
                self._here = min(self._first + i, len(self._panels.graphs) - 1)
                if event.y > place.y and self._panels.end > self._panels.begin:
                    self._point(event.x - place.x)
                else:
                    self._moved(self._at)

    def on_focus(self) -> None:
        """The title of the panel is set off."""
        self.update()

    def on_blur(self) -> None:
        """And no longer."""
        self.update()

    def on_resize(self) -> None:
        """Other places."""
        self._made, self._lines, self._parts = [], [], []
        self.update()

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._pen, self._made, self._lines, self._parts = None, [], [], []

    # --- drawing --------------------------------------------------------------------------

    @property
    def _cells(self) -> int:
        return self._places[0].cells if self._places else 0

    def _cell(self) -> int | None:
        """The cell of the cursor; None when it is out of sight, or there is none."""
        span = self._panels.end - self._panels.begin
        if self._at is None or span <= 0 or not self._cells:
            return None
        cell = (self._at - self._panels.begin) * self._cells // span
        return cell if 0 <= cell < self._cells else None

    def update(self) -> None:
        """Ask for what is to be shown, and draw the lines that differ."""
        if not self.is_attached or self.size.width <= 0:
            return
        self._places = arranged(self.count, self.size.width, self.size.height - 1, self.tight)
        self._here = max(0, min(self._here, self.count - 1))
        self._scroll()
        shown = range(self._first, self._first + len(self._places))
        self._panels = self._feed(self._cells, shown) if self._places else Panels(())
        lines = self._drawn()
        changed = [y for y, line in enumerate(lines) if y >= len(self._lines) or self._lines[y] is not line]
        self._lines = lines
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _scroll(self) -> None:
        """Bring the panel with the cursor into sight, whole lines of panels at a time."""
        beside = max(1, sum(p.y == 0 for p in self._places))
        line, shown = self._here // beside, max(1, -(-len(self._places) // beside))
        most = max(0, -(-self.count // beside) - shown)
        first = max(0, min(most, self._first // beside))
        first = min(line, max(first, line - shown + 1))
        self._first = first * beside

    def _drawn(self) -> list[Strip]:
        """All lines; those whose parts are the same as before are the very same."""
        height, columns = self.size.height, self.size.width
        if self._pen is None:
            self._pen = Pen(self.app.theme_variables, self.rich_style, self.app.no_color)
        pen, cell = self._pen, self._cell()
        parts: list[list[tuple[int, list[Segment]]]] = [[] for _ in range(height)]
        shown = list(zip(self._places, self._panels.graphs[self._first :], strict=False))
        self._made = self._made[: len(shown)]
        for i, (place, graph) in enumerate(shown):
            made = self._panel(pen, i, place, graph, cell)
            self._made[i : i + 1] = [made]
            for y, segments in enumerate((made.title, *made.body), place.y):
                if y < height:
                    parts[y].append((place.x, segments))
        if shown and self._panels.end > self._panels.begin and height:
            bottom = min(height - 1, max(p.y + p.lines for p in self._places))
            axis = pen.axis(self._panels, self._cells)
            before = self._parts[bottom] if bottom < len(self._parts) else []
            old = before[0][1] if before else None
            parts[bottom] += [(p.x, old if old == axis else axis) for p in self._places if p.y == 0]
        lines = [
            self._lines[y] if y < len(self._parts) and _same(self._parts[y], row) and y < len(self._lines)
            else joined(row, pen.base, columns)
            for y, row in enumerate(parts)
        ]  # fmt: skip
        self._parts = parts
        return lines

    def _panel(self, pen: Pen, number: int, place: Place, graph: Graph, cell: int | None) -> _Made:
        """A panel; what of it is the same as before is not drawn again."""
        made = self._made[number] if number < len(self._made) else None
        here = self._first + number == self._here and self.has_focus
        pointed = (graph.value(cell), graph.value(cell, 1)) if cell is not None else None
        named = (
            graph.title,
            graph.now,
            graph.tone,
            graph.edge,
            len(graph.curves),
            place.cells,
            cell is None,
            pointed,
            here,
        )
        title = made.title if made is not None and made.named == named else pen.title(graph, place.cells, cell, here)
        frame = (graph.frame, place, cell)
        same = made is not None and made.frame == frame
        if made is not None and same and made.curves == graph.curves:
            return made._replace(named=named, title=title)
        rows = max(1, place.lines - 1)
        dots = tuple(heights(values, rows, graph.scale) for values in graph.curves)
        if made is not None and same and made.dots == dots and (graph.limit is None or above(graph) == made.over):
            return made._replace(named=named, title=title, curves=graph.curves)
        body = pen.body(graph, place, cell, dots)
        if made is not None and len(made.body) == len(body):
            body = [old if old == new else new for old, new in zip(made.body, body, strict=True)]
        return _Made(named, title, frame, graph.curves, dots, above(graph), body)

    def render_line(self, y: int) -> Strip:
        """A line as it was drawn."""
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self.rich_style)


def _same(before: list[tuple[int, list[Segment]]], now: list[tuple[int, list[Segment]]]) -> bool:
    """Whether a line is made of the very same parts."""
    return len(before) == len(now) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(before, now, strict=True))
