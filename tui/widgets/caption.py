"""A line, or a few: what stands below it on the left, what can be done on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import width, wrap
from tui.tones import Tone, marked, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from rich.console import RenderableType


class Caption(Widget):
    """Words, and a hint."""

    DEFAULT_CSS = "Caption { height: 1; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._said: tuple[str, str, Tone] = ("", "", Tone.PLAIN)

    def show(self, left: str, right: str = "", tone: Tone = Tone.PLAIN) -> None:
        """Say something else; the mark of a state stands before it."""
        said = (left, right, tone)
        if said == self._said:
            return
        self._said = said
        self.refresh()

    def needed(self, columns: int) -> int:
        """Lines that it takes to say it all; none for nothing."""
        left, _, tone = self._said
        return len(wrap(marked(tone, left), max(10, columns))) if left else 0

    def render(self) -> RenderableType:
        """Left, blanks, right; where there is no room the right side gives way. What has several lines is folded."""
        left, right, tone = self._said
        look = styles(self.app.theme_variables)
        if self.size.height > 1:
            return Group(
                *(Line(text, style=look[tone], no_wrap=True) for text in wrap(marked(tone, left), self.size.width))
            )
        left = clip(marked(tone, left), self.size.width)
        room = self.size.width - width(left) - width(right)
        line = Line(no_wrap=True)
        line.append(left, style=look[tone])
        if right and room >= 2:
            line.append(" " * room + right, style=look[Tone.DIM])
        return line
