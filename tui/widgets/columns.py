"""What a table is made of: cells, rows and columns; how wide each column is, in which order rows stand, and how a line is put
together."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len as width
from rich.cells import set_cell_size
from rich.segment import Segment

from tui.tones import Tone

if TYPE_CHECKING:
    from rich.style import Style

GAP = 2  # columns between two cells
_MEASURED = 400  # rows at either end whose cells decide how wide a column is
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), " ")  # a tab or a line break would break the table


class Cell(NamedTuple):
    """One value. `sort` is what it is sorted by: its text when None; rows without a value stand last either way."""

    text: str
    tone: Tone = Tone.PLAIN
    sort: Any = None


class Column(NamedTuple):
    """One column. `keep`: 0 is always shown; of the others the highest is left out first where there is no room."""

    key: str
    title: str
    least: int = 3  # columns of the terminal that it needs
    most: int = 0  # that it takes; 0: as many as its cells have
    right: bool = False  # numbers
    keep: int = 0
    stretch: bool = False  # takes what is left; where there is too little it gives way first


class Row(NamedTuple):
    """One row. `key` is its identity: the cursor stays on it whatever comes and goes."""

    key: str
    cells: tuple[Cell | str, ...]
    data: Any = None
    tone: Tone = Tone.PLAIN  # of cells that have none


def measured(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """How wide each column would like to be."""
    some = rows if len(rows) <= 2 * _MEASURED else [*rows[:_MEASURED], *rows[-_MEASURED:]]
    out = []
    for i, column in enumerate(columns):
        widest = max((width(plain(r.cells[i])) for r in some), default=0)
        out.append(max(column.least, widest, width(column.title) + 2))  # the mark of the order stands beside it
    return out


def fitted(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """How wide each is, 0 where it is left out: all of them if they fit; then the stretching one gives way; then the least
    needed are left out."""
    kept = list(range(len(columns)))
    while True:
        sizes = [min(natural[i], c.most) if c.most else natural[i] for i, c in enumerate(columns)]
        over = sum(sizes[i] for i in kept) + GAP * (len(kept) - 1) - room
        for i in sorted(kept, key=lambda i: (not columns[i].stretch, -sizes[i])):
            if over <= 0:
                break
            floor = columns[i].least if columns[i].stretch else sizes[i]
            given = min(over, max(0, sizes[i] - floor))
            sizes[i] -= given
            over -= given
        droppable = [i for i in kept if columns[i].keep]
        if over <= 0 or not droppable:
            break
        kept.remove(max(droppable, key=lambda i: (columns[i].keep, i)))
    for i in sorted(kept, key=lambda i: (not columns[i].stretch, -sizes[i])):  # narrower than anybody needs
        given = min(max(0, over), sizes[i] - 1)
        sizes[i] -= given
        over -= given
    spare = -over
    stretching = [i for i in kept if columns[i].stretch]
    if spare > 0 and stretching:
        sizes[stretching[-1]] += spare
    return [sizes[i] if i in kept else 0 for i in range(len(columns))]


def ordered(rows: Sequence[Row], column: int, reverse: bool) -> list[Row]:
    """By a column; rows without a value stand last either way."""
    known = [(_comparable(value), r) for r in rows if (value := _sort(r.cells[column])) is not None]
    known.sort(key=lambda pair: pair[0], reverse=reverse)
    return [*(r for _, r in known), *(r for r in rows if _sort(r.cells[column]) is None)]


class Runs:
    """A line in the making: neighbours of one style are one segment, for every segment costs on its way to the terminal."""

    __slots__ = ("_segments", "_style", "_text")

    def __init__(self, text: str, style: Style) -> None:
        self._segments: list[Segment] = []
        self._text, self._style = text, style

    def add(self, text: str, style: Style) -> None:
        """More of the line."""
        if style is self._style or not text:
            self._text += text
            return
        self._segments.append(Segment(self._text, self._style))
        self._text, self._style = text, style

    def done(self) -> list[Segment]:
        """The line."""
        return [*self._segments, Segment(self._text, self._style)]


def aligned(text: str, size: int, right: bool, style: Style, blank: Style) -> list[Segment]:
    """`text` in `size` columns."""
    room = Segment(" " * max(0, size - width(text)), blank)
    return [room, Segment(text, style)] if right else [Segment(text, style), room]


def plain(cell: Cell | str) -> str:
    """The text of a cell, in one line."""
    text = cell if isinstance(cell, str) else cell.text
    return text if text.isprintable() else text.translate(_CONTROLS)


def _sort(cell: Cell | str) -> Any:
    if isinstance(cell, str):
        return cell or None
    value = cell.sort if cell.sort is not None else (cell.text or None)
    return None if isinstance(value, float) and isnan(value) else value


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers before words: a column may hold both."""
    return (0, value) if isinstance(value, int | float) else (1, str(value).casefold())


def clip(text: str, columns: int) -> str:
    """`text` in at most `columns`, an ellipsis in place of what is left out."""
    if width(text) <= columns:
        return text
    return set_cell_size(text, columns - 1) + "…" if columns > 1 else "…"[:columns]
