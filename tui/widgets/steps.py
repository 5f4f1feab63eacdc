"""How long each step took, as columns of its parts; those out of the ordinary are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.style import Style
from rich.text import Text as Line
from textual.message import Message
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import MARKS, Tone, styles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual import events

COLOURS = ("plot-3", "plot-4", "plot-1", "faint")
SHADES = ("█", "▓", "▒", "░")  # computing, exposed communication, copies, idle: they differ without colour too
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_AXIS = 9  # columns of the numbers on the left
_THICK = 6  # columns of one step at most


class Step(NamedTuple):
    """One step."""

    key: str
    title: str  # its number
    total: int  # ns
    parts: tuple[int, ...]  # ns of each of `SHADES`; nothing where only the whole is known
    odd: bool = False  # out of the ordinary


class Steps(Widget):
    """The columns, with a cursor that others move."""

    DEFAULT_CSS = "Steps { height: 11; padding: 0 1; }"

    class Picked(Message):
        """A column was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._steps: tuple[Step, ...] = ()
        self._median, self._cursor = 0, ""
        self._median_said = ""

    def load(self, steps: Sequence[Step], median: int, said: str) -> None:
        """These steps. `said`: the word for the median."""
        self._steps, self._median, self._median_said = tuple(steps), median, said
        self.refresh()

    def point(self, key: str) -> None:
        """The step that is spoken of."""
        if key != self._cursor:
            self._cursor = key
            self.refresh()

    def _columns(self) -> tuple[list[list[Step]], int]:
        """The steps of each column, and its thickness with the gap."""
        return columns(self._steps, max(1, self.size.width - _AXIS))

    def render(self) -> RenderableType:
        """Marks, columns, numbers."""
        if not self._steps:
            return ""
        from assistant.render.trace_units import duration

        groups, thick = self._columns()
        tall = [max(g, key=lambda s: s.total) for g in groups]
        top = max(s.total for s in tall) or 1
        height = max(3, self.size.height - 2)
        variables = self.app.theme_variables
        look = styles(variables)
        colours = [Style(color=variables[c]) for c in COLOURS]
        here = next((n for n, g in enumerate(groups) if any(s.key == self._cursor for s in g)), -1)
        level = round(self._median / top * height) - 1 if self._median else -1
        out = [self._marks(tall, thick, look)]
        stacks = [cells(s.parts or (s.total,), top, height) for s in tall]
        for row in range(height - 1, -1, -1):
            said = (
                duration(top)
                if row == height - 1
                else duration(self._median)
                if row == level
                else "0"
                if row == 0
                else ""
            )
            line = Line(" " * max(0, _AXIS - 2 - width(said)) + said + " ", style=look[Tone.DIM], no_wrap=True)
            line.append("┤" if said else "│", style=look[Tone.DIM])
            for n, stack in enumerate(stacks):
                part, mark = stack[row]
                drawn = max(1, thick - 1) if thick > 1 else 1
                if part < 0:
                    line.append(("┄" if row == level else " ") * thick, style=look[Tone.DIM])
                    continue
                style = colours[part] + Style(bold=True) if n == here else colours[part]
                line.append(mark * drawn, style=style)
                line.append(" " * (thick - drawn))
            out.append(line)
        out.append(self._numbers(tall, thick, here, look))
        return Group(*out)

    def _marks(self, tall: Sequence[Step], thick: int, look: dict[Tone, Style]) -> Line:
        line = Line(" " * _AXIS, no_wrap=True)
        for step in tall:
            line.append((MARKS[Tone.WARNING] if step.odd else " ") + " " * (thick - 1), style=look[Tone.WARNING])
        return line

    def _numbers(self, tall: Sequence[Step], thick: int, here: int, look: dict[Tone, Style]) -> Line:
        """Numbers where they have room; under the cursor always."""
        line = Line(" " * _AXIS, no_wrap=True)
        end = 0
        for n, step in enumerate(tall):
            x = n * thick
            free = x >= end and (here < 0 or n >= here or x + width(step.title) + 1 <= here * thick)
            if n == here or free:
                if x < line.cell_len - _AXIS:
                    continue
                line.append(" " * (x - (line.cell_len - _AXIS)))
                line.append(step.title, style=look[Tone.STRONG if n == here else Tone.DIM])
                end = x + width(step.title) + (1 if thick > width(step.title) else 5)
        return line

    def on_click(self, event: events.Click) -> None:
        """The step of that column."""
        groups, thick = self._columns()
        n = (event.x - 1 - _AXIS) // thick if event.x > _AXIS else -1
        if 0 <= n < len(groups):
            self.post_message(self.Picked(max(groups[n], key=lambda s: s.total).key))


def columns(steps: Sequence[Step], room: int) -> tuple[list[list[Step]], int]:
    """Steps by column, none left out, and how thick a column is: several steps share one where there is no room."""
    if len(steps) <= room:
        return [[s] for s in steps], max(1, min(_THICK, room // max(1, len(steps))))
    return [list(steps[i * len(steps) // room : (i + 1) * len(steps) // room]) for i in range(room)], 1


def cells(parts: Sequence[int], top: int, height: int) -> list[tuple[int, str]]:
    """A column from below: which part fills each cell (-1: none) and its character; the uppermost to an eighth where it is whole."""
    whole = sum(parts)
    eighths = max(1, round(whole / top * height * 8)) if whole else 0
    full, rest = divmod(eighths, 8)
    ends, done = [], 0
    for ns in parts:
        done += ns
        ends.append(done)
    last = next((n for n in range(len(parts) - 1, -1, -1) if parts[n]), 0)
    if last and rest:  # a shade has no eighths: it fills the cell or does not
        full, rest = full + (rest >= 4 or not full), 0
    out = []
    for row in range(height):
        if row > full or (row == full and not rest):
            out.append((-1, " "))
            continue
        middle = (row + 0.5) * top / height
        part = next((n for n, end in enumerate(ends) if middle <= end), last)
        out.append((part, SHADES[part] if row < full else _EIGHTHS[rest]))
    return out
