"""The second line: the screens by their digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import width
from knowledge.language import Text
from tui.messages import Goto
from tui.screens import screens
from tui.tones import Tone, styles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual import events

CHAT = Text("Chat", "对话")


class ScreenTabs(Widget):
    """Names of all screens, the shown one set off; a click goes there."""

    DEFAULT_CSS = "ScreenTabs { height: 1; padding: 0 1; color: $foreground; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown = "chat"
        self._places: list[tuple[int, int, str]] = []

    def show(self, name: str) -> None:
        """The screen that has the keys."""
        self._shown = name
        self.refresh()

    def render(self) -> RenderableType:
        """Digits and names; where there is no room the names are cut to their beginnings."""
        from tui.app import desk_of

        lang, look = desk_of(self.app).lang, styles(self.app.theme_variables)
        every = [("chat", 1, CHAT.in_(lang)), *((s.name, s.place, s.title.in_(lang)) for s in screens())]
        room = self.size.width
        titles = [title for _, _, title in every]
        gap = 3 if sum(width(t) + 2 for t in titles) + 3 * (len(every) - 1) <= room else 1
        while sum(width(t) + 2 for t in titles) + gap * (len(every) - 1) > room and max(map(width, titles)) > 2:
            longest = max(range(len(titles)), key=lambda i: width(titles[i]))
            titles[longest] = titles[longest][:-1]
        line, self._places = Line(no_wrap=True), []
        for (name, place, _), title in zip(every, titles, strict=True):
            if self._places:
                line.append(" " * gap)
            begun = line.cell_len
            here = name == self._shown
            line.append(f"{place} ", style=look[Tone.ACCENT if here else Tone.DIM])
            line.append(title, style=look[Tone.STRONG] if here else look[Tone.DIM])
            self._places.append((begun, line.cell_len, name))
        return line

    def on_click(self, event: events.Click) -> None:
        """To that screen."""
        for begun, ended, name in self._places:
            if begun <= event.x - 1 < ended:
                self.post_message(Goto(name))
