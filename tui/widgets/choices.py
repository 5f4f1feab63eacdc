"""A line of names of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.message import Message
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import Tone, styles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual import events

_GAP = 3


class Choices(Widget):
    """Names side by side; a click chooses."""

    DEFAULT_CSS = "Choices { height: 1; padding: 0 1; }"

    class Picked(Message):
        """One was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names: tuple[tuple[str, str], ...] = ()
        self._chosen = ""
        self._places: list[tuple[int, int, str]] = []

    def show(self, names: Sequence[tuple[str, str]], chosen: str) -> None:
        """These, as (key, name)."""
        if (tuple(names), chosen) != (self._names, self._chosen):
            self._names, self._chosen = tuple(names), chosen
            self.refresh()

    def render(self) -> RenderableType:
        """The names; where there is no room for all, those around the chosen one."""
        look = styles(self.app.theme_variables)
        names = list(self._names)
        gap = _GAP if sum(width(n) for _, n in names) + _GAP * (len(names) - 1) <= self.size.width else 2
        while len(names) > 1 and sum(width(n) for _, n in names) + gap * (len(names) - 1) > self.size.width:
            names.pop(0 if names[0][0] != self._chosen and names[-1][0] == self._chosen else -1)
        line, self._places = Line(no_wrap=True), []
        for key, name in names:
            if self._places:
                line.append(" " * gap)
            begun = line.cell_len
            here = key == self._chosen
            line.append(name, style=look[Tone.STRONG] + look[Tone.ACCENT] if here else look[Tone.DIM])
            if here:
                line.stylize("underline", begun)
            self._places.append((begun, line.cell_len, key))
        return line

    def on_click(self, event: events.Click) -> None:
        """That one."""
        for begun, ended, key in self._places:
            if begun <= event.x - 1 < ended:
                self.post_message(self.Picked(key))
