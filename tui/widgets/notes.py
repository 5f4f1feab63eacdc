"""A few lines of text, each in its tone, wrapped to the width there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text as Line
from textual.widget import Widget

from tui.tones import Tone, styles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Size


class Note(NamedTuple):
    """One piece of text. Of one that takes more than `most` lines the rest is left out."""

    text: str
    tone: Tone = Tone.PLAIN
    most: int = 1


class Notes(Widget):
    """Notes, one below the other. Repainted only when they are others."""

    DEFAULT_CSS = "Notes { height: auto; padding: 0 1; }"

    def __init__(self, notes: Sequence[Note] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._notes = tuple(notes)

    def show(self, notes: Sequence[Note]) -> None:
        """Other notes."""
        if tuple(notes) != self._notes:
            self._notes = tuple(notes)
            height = self.styles.height
            self.refresh(layout=height is None or height.is_auto)  # where the height is given, nothing else moves

    def lines(self, columns: int) -> list[tuple[str, Tone]]:
        """What stands there."""
        from assistant.render.cells import wrap
        from tui.widgets.columns import clip

        out: list[tuple[str, Tone]] = []
        for note in self._notes:
            made = wrap(note.text, max(8, columns), rest="  ") if note.text else [""]
            if len(made) > note.most:
                made = [*made[: note.most - 1], f"{made[note.most - 1]} …"]
            out += [(clip(line, columns), note.tone) for line in made]
        return out

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as they take."""
        return len(self.lines(width))

    def render(self) -> RenderableType:
        """The lines in their tones."""
        look = styles(self.app.theme_variables)
        return Group(*(Line(text, style=look[tone], no_wrap=True) for text, tone in self.lines(self.size.width)))
