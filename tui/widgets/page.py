"""A sheet on the screen: the same parts, in the same words, as every other surface prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.sheet import Code, Heading, text_part
from tui.tones import Tone, styles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.style import Style
    from textual.geometry import Size

    from assistant.render.sheet import Part

WIDEST = 100  # columns that running text takes: longer lines are hard to read


class Page(Widget):
    """A title and parts, laid out for the width there is."""

    DEFAULT_CSS = "Page { height: auto; padding: 0 1; }"

    def __init__(
        self, title: str = "", parts: Sequence[Part] = (), *, tone: Tone = Tone.STRONG, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._title, self._parts, self._tone = title, tuple(parts), tone
        self._made: tuple[int, list[tuple[str, Tone]]] | None = None  # its lines at a width: asked for thrice a frame

    def show(self, title: str, parts: Sequence[Part], tone: Tone = Tone.STRONG) -> None:
        """Another sheet."""
        self._title, self._parts, self._tone, self._made = title, tuple(parts), tone, None
        self.refresh(layout=True)

    def lines(self, columns: int) -> list[tuple[str, Tone]]:
        """What stands there, line by line."""
        columns = max(20, min(columns, WIDEST))
        if self._made is None or self._made[0] != columns:
            self._made = (columns, self._lines(columns))
        return self._made[1]

    def _lines(self, columns: int) -> list[tuple[str, Tone]]:
        from assistant.render.cells import width, wrap

        out = [(line, self._tone) for line in wrap(self._title, columns)] if self._title else []
        for part in self._parts:
            tone = Tone.STRONG if isinstance(part, Heading) else Tone.ACCENT if isinstance(part, Code) else Tone.PLAIN
            made = text_part(part, columns)
            if isinstance(part, Code):  # a long command goes on below: what is cut off cannot be read
                made = [
                    x
                    for line in made
                    for x in (wrap(line.strip(), columns, "    ", "      ") if width(line) > columns else [line])
                ]
            out += [*([("", Tone.PLAIN)] if out and made else []), *((line, tone) for line in made)]
        return out

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the parts take."""
        return max(1, len(self.lines(width)))

    def render(self) -> RenderableType:
        """The lines in their tones."""
        look = styles(self.app.theme_variables)
        return Group(
            *(Line(line, style=_bold(look[tone], tone), no_wrap=True) for line, tone in self.lines(self.size.width))
        )


def _bold(style: Style, tone: Tone) -> Style:
    from rich.style import Style

    return style + Style(bold=True) if tone not in (Tone.PLAIN, Tone.DIM, Tone.ACCENT) else style
