"""How many nodes are in which state, and which: one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import MARKS, Tone, of_state, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from assistant.nodes import Node

FEW = 36  # columns that the names of a state take at most: they are all there, or left out


class StateLine(Widget):
    """Marks, numbers and words; names of those that need somebody, where there is room; a remark on the right."""

    DEFAULT_CSS = "StateLine { height: 1; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.trouble = ""
        self._groups: dict[str, list[str]] = {}
        self._remark, self._quiet = "", False

    def show(self, nodes: Sequence[Node], now: int, remark: str = "", *, quiet: bool = False) -> None:
        """Other nodes, as they are `now` (ns UTC). `quiet`: the remark is no warning."""
        from assistant.nodes import by_state

        groups = by_state(nodes, now)
        if (groups, remark, quiet) != (self._groups, self._remark, self._quiet):
            self._groups, self._remark, self._quiet = groups, remark, quiet
            self.refresh()

    def render(self) -> RenderableType:
        """The worst first."""
        from assistant.nodes import folded
        from assistant.nodes.page import state_word
        from tui.app import desk_of

        lang, look, room = desk_of(self.app).lang, styles(self.app.theme_variables), self.size.width
        remark = clip(self._remark.partition("\n")[0], max(12, room // 2))
        room -= width(remark) + 2
        plain = {
            state: f"{_mark(state)} {len(hosts)} {state_word(state, lang)}" for state, hosts in self._groups.items()
        }
        spare = room - sum(width(text) + 3 for text in plain.values())
        line = Line(no_wrap=True)
        for state, text in plain.items():
            if line.cell_len:
                line.append("   ")
            line.append(text, style=look[_tone(state)])
            names = "" if state in ("ok", "old") else folded(self._groups[state])
            if names and width(names) < min(FEW, spare):
                line.append(" " + names, style=look[Tone.DIM])
                spare -= width(names) + 1
        line.append(" " * max(1, self.size.width - line.cell_len - width(remark)))
        line.append(remark, style=look[Tone.DIM if self._quiet else Tone.WARNING])
        return line


def _tone(state: str) -> Tone:
    return {"": Tone.DIM, "old": Tone.STALE}.get(state) or of_state(state)


def _mark(state: str) -> str:
    return MARKS.get(_tone(state), "–")
