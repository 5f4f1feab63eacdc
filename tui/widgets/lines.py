"""A few lines of words in tones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text as Line
from textual.widget import Widget

from assistant.render import cells
from tui.tones import Tone, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Size

Spoken = Sequence[tuple[str, Tone]]  # one line: pieces with their tones


class Lines(Widget):
    """Lines one below the other. What `show` is given again is not painted again."""

    DEFAULT_CSS = "Lines { height: auto; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[tuple[tuple[str, Tone], ...], ...] = ()

    def show(self, *lines: Spoken) -> None:
        """Other words."""
        new = tuple(tuple(line) for line in lines)
        if new != self._lines:
            before, self._lines = len(self._laid(self.size.width)), new
            self.refresh(layout=len(self._laid(self.size.width)) != before)

    @property
    def text(self) -> str:
        """What stands there."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many as there are at this width."""
        return len(self._laid(width))

    def _laid(self, columns: int) -> list[Spoken]:
        """A line in one tone goes on below where it is too long; of one in several the end is clipped."""
        out: list[Spoken] = []
        for pieces in self._lines:
            if len(pieces) == 1 and columns > 0 and cells.width(pieces[0][0]) > columns:
                out += [((part, pieces[0][1]),) for part in cells.wrap(pieces[0][0], columns)]
            else:
                out.append(pieces)
        return out

    def render(self) -> RenderableType:
        """In the tones of the theme."""
        look, room = styles(self.app.theme_variables), self.size.width
        out = []
        for pieces in self._laid(room):
            line = Line(no_wrap=True)
            for text, tone in pieces:
                line.append(clip(text, max(0, room - line.cell_len)), style=look[tone])
            out.append(line)
        return Group(*out)
