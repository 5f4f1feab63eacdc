"""One plot among several: what it shows, where it stands, and how its lines are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from assistant.render.cells import width
from tui.tones import Tone, styles
from tui.widgets.braille import Scale, char, curve, known
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST, MOST = 27, 60  # cells that a panel is wide
LOW, HIGH = 4, 14  # lines that it takes, with its title
TIGHT = 3  # where there is no room for two above each other otherwise, and for a bar
LOOSE = 6  # from so many on one of them is left blank
GAP = 3  # columns between two panels
_INK = ("plot-1", "plot-2")  # variables of the theme: first and second curve
_LIMIT, _SHADE, _SILENT, _MARK = "┈", "·", "?", "▼"
_TINT = 0.16  # of the warning's colour in the ground of a time in which something held the value down
Lines = list[list[Segment]]


class Graph(NamedTuple):
    """One panel. Curves have two values to a cell; cells are counted from the left."""

    key: str
    title: str
    now: str = ""  # the value now
    tone: Tone = Tone.PLAIN  # of it
    edge: str = ""  # what the upper edge, or the line, stands for; beside two curves the value of the second
    curves: tuple[tuple[float | None, ...], ...] = ()
    scale: Scale = Scale(0.0, 1.0)
    limit: float | None = None  # a line; what stands at or above it is drawn in `over`
    over: Tone = Tone.PLAIN
    shaded: frozenset[int] = frozenset()  # cells in which something held it down
    silent: frozenset[int] = frozenset()  # cells in which the source did not tell
    marks: Mapping[int, Tone] = {}  # cells in which something happened
    note: str = ""  # why there is nothing to draw
    gauge: float | None = None  # of one moment: the share that a bar shows instead of a curve
    say: Callable[[float], str] = str  # how a value is written
    other: str = ""  # what the second curve is

    @property
    def frame(self) -> tuple[object, ...]:
        """What the lines below the title hang on, without the curves."""
        return (
            self.scale,
            self.limit,
            self.over,
            self.shaded,
            self.silent,
            self.marks,
            self.note,
            self.gauge,
            self.tone,
        )

    def value(self, cell: int, number: int = 0) -> float | None:
        """What a curve says in a cell: the higher of its two values."""
        pair = self.curves[number][2 * cell : 2 * cell + 2] if number < len(self.curves) else ()
        return max(known(pair), default=None)


class Panels(NamedTuple):
    """What is to be shown."""

    graphs: tuple[Graph, ...]
    begin: int = 0  # ns UTC at the left edge
    end: int = 0  # at the right one; the same: one moment
    left: str = ""  # words of the axis
    right: str = ""


class Place(NamedTuple):
    """Where a panel stands."""

    x: int
    y: int
    cells: int
    lines: int  # with the title, without the blank line below


def arranged(count: int, columns: int, lines: int, tight: bool = False) -> tuple[Place, ...]:
    """Places for as many of `count` panels as `columns` by `lines` hold; none may be too small to be read. `tight`: they are
    bars, which take no more lines where there are more."""
    if count <= 0 or columns < 10 or lines < 2:
        return ()
    beside = max(1, min(count, (columns + GAP) // (LEAST + GAP)))
    under = max(1, min(-(-count // beside), lines // (LOW if lines >= 2 * LOW and not tight else TIGHT)))
    beside = max(1, min(beside, -(-count // under)))
    cells = min(MOST, (columns - GAP * (beside - 1)) // beside)
    each = min(TIGHT if tight else HIGH, lines // under)
    shown = min(count, beside * under)
    return tuple(
        Place((i % beside) * (cells + GAP), (i // beside) * each, cells, each - 1 if each >= LOOSE or tight else each)
        for i in range(shown)
    )


def needed(count: int, columns: int) -> int:
    """Lines that all panels and the axis take, at their least."""
    beside = max(1, min(count, (columns + GAP) // (LEAST + GAP)))
    return -(-count // beside) * LOW + 1


class Pen:
    """Draws in the colours of a theme, on a ground. `plain`: without colour, so that signs say what colours would."""

    def __init__(self, variables: Mapping[str, str], base: Style, plain: bool) -> None:
        self.base, self.plain = base, plain
        self._variables = variables
        self.look = {tone: base + style for tone, style in styles(variables).items()}
        self.ink = tuple(base + _coloured(variables.get(name, "")) for name in _INK)

    @cached_property
    def _tint(self) -> Style:
        """The ground of a time in which something held the value down."""
        from textual.color import Color

        ground, warning = self._variables.get("background", ""), self._variables.get("text-warning", "")
        if self.plain or not (ground.startswith("#") and warning.startswith("#")):
            return Style()
        return Style(bgcolor=Color.parse(ground).blend(Color.parse(warning), _TINT).hex)

    @cached_property
    def _fill(self) -> Style:
        """The ground below a curve."""
        return Style() if self.plain else _coloured(self._variables.get("surface", ""), ground=True)

    @cached_property
    def _point(self) -> Style:
        """The ground of the cursor."""
        return _coloured(self._variables.get("block-cursor-background", ""), ground=True)

    def axis(self, panels: Panels, cells: int) -> list[Segment]:
        """From when to when."""
        room = cells - width(panels.left) - width(panels.right)
        text = f"{panels.left}{' ' * room}{panels.right}" if room > 1 else clip(panels.left, cells)
        return [Segment(text, self.look[Tone.DIM])]

    def title(self, graph: Graph, cells: int, cell: int | None, here: bool) -> list[Segment]:
        """Name, value, and what the edge stands for. `cell`: the cursor. `here`: the panel has the keys."""
        now, tone, edge = graph.now, graph.tone, graph.edge
        if cell is not None and graph.curves:
            value, second = graph.value(cell), graph.value(cell, 1)
            now, tone = (graph.say(value) if value is not None else "–"), Tone.ACCENT
            edge = f"{graph.other} {graph.say(second) if second is not None else '–'}" if graph.other else edge
        style = self.look[Tone.STRONG] + (Style(underline=True) if here else Style())
        title = clip(graph.title, max(4, cells - width(now) - 1))
        now = clip(now, max(0, cells - width(title) - 1))
        two = len(graph.curves) > 1
        parts = [
            Segment(title, style), Segment(" ", self.base),
            Segment(now, self.ink[0] if two and tone is Tone.PLAIN else self.look[tone]),
        ]  # fmt: skip
        room = cells - width(title) - 1 - width(now)
        edge = clip(edge, room - 1) if edge and room > 5 else ""
        if edge:
            parts += [
                Segment(" " * (room - width(edge)), self.base),
                Segment(edge, self.ink[1] if two else self.look[Tone.DIM]),
            ]
        return parts

    def body(self, graph: Graph, place: Place, cell: int | None, dots: Sequence[Sequence[int]]) -> Lines:
        """The lines below the title. `dots`: the heights of each curve."""
        rows = place.lines - 1
        if rows <= 0:
            return []
        if graph.note:
            return [[Segment(clip(graph.note, place.cells), self.look[Tone.DIM])]]
        if graph.gauge is not None:
            return [self._gauge(graph, place.cells)]
        return self._plot(graph, place.cells, rows, cell, dots)

    def _gauge(self, graph: Graph, cells: int) -> list[Segment]:
        filled, dim = "━" * round(max(0.0, min(1.0, graph.gauge or 0.0)) * cells), self.look[Tone.DIM]
        over = graph.over is not Tone.PLAIN and graph.tone is graph.over
        parts = [Segment(filled, self.look[graph.over] if over else self.ink[0])]
        rest = cells - len(filled)
        if graph.limit is not None and graph.scale.high > graph.scale.low:
            at = round((graph.limit - graph.scale.low) / (graph.scale.high - graph.scale.low) * cells)
            if len(filled) <= at < cells:
                parts.append(Segment("─" * (at - len(filled)) + "┃", dim))
                rest = cells - at - 1
        return [*parts, Segment("─" * rest, dim)]

    def _plot(self, graph: Graph, cells: int, rows: int, cell: int | None, dots: Sequence[Sequence[int]]) -> Lines:
        drawn = [curve(places, rows) for places in dots]
        line = None if graph.limit is None else rows - 1 - graph.scale.dot(graph.limit, 4 * rows) // 4
        over, under = above(graph), _under(drawn, cells, rows)
        out: Lines = []
        for y in range(rows):
            runs: list[Segment] = []
            text, style = "", self.base
            for x in range(cells):
                sign, look = self._cell(graph, drawn, x, y, y == line, y == rows - 1, x in over)
                if x == cell:
                    look += self._point
                    sign = "│" if sign == " " and self.plain else sign
                elif x in graph.shaded:
                    look += self._tint
                elif y >= under[x]:
                    look += self._fill
                if look != style and text:
                    runs.append(Segment(text, style))
                    text = ""
                text, style = text + sign, look
            out.append([*runs, Segment(text, style)])
        return out

    def _cell(
        self, graph: Graph, drawn: Sequence[Sequence[Sequence[int]]], x: int, y: int, line: bool, last: bool, over: bool
    ) -> tuple[str, Style]:  # fmt: skip
        """What stands in a cell, the most telling first: an event, a curve, silence, the limit."""
        if y == 0 and x in graph.marks:
            return _MARK, self.look[graph.marks[x]]
        first = drawn[0][y][x] if drawn and x < len(drawn[0][y]) else 0
        second = drawn[1][y][x] if len(drawn) > 1 and x < len(drawn[1][y]) else 0
        if first or second:
            ink = self.look[graph.over] if over and first else self.ink[0 if first else 1]
            return char(first | second), ink
        if last and x in graph.silent:
            return _SILENT, self.look[Tone.UNKNOWN]
        if line:
            return _LIMIT, self.look[Tone.DIM]
        return (_SHADE if self.plain and x in graph.shaded else " "), self.base


def above(graph: Graph) -> frozenset[int]:
    """Cells in which the first curve stands at its limit or above."""
    if graph.limit is None or graph.over is Tone.PLAIN or not graph.curves:
        return frozenset()
    limit = graph.limit
    return frozenset(i // 2 for i, v in enumerate(graph.curves[0]) if v is not None and v >= limit)


def _under(drawn: Sequence[Sequence[Sequence[int]]], cells: int, rows: int) -> list[int]:
    """For each cell the first row below the upper end of the first curve; `rows` where there is none."""
    out = [rows] * cells
    if drawn:
        for x in range(min(cells, len(drawn[0][0]))):
            out[x] = next((y + 1 for y in range(rows) if drawn[0][y][x]), rows)
    return out


def _coloured(colour: str, *, ground: bool = False) -> Style:
    """Themes may say "auto 87%", which only their style sheets understand."""
    if not colour.startswith("#"):
        return Style()
    return Style(bgcolor=colour) if ground else Style(color=colour)


def joined(parts: Iterable[tuple[int, list[Segment]]], base: Style, columns: int) -> Strip:
    """Segments at their places, from left to right, blanks between them: a line of `columns`."""
    out: list[Segment] = []
    x = 0
    for begin, segments in parts:
        if begin > x:
            out.append(Segment(" " * (begin - x), base))
        out += segments
        x = begin + sum(s.cell_length for s in segments)
    if x < columns:
        out.append(Segment(" " * (columns - x), base))
        x = columns
    return Strip(out, x).crop(0, columns) if x > columns else Strip(out, x)
