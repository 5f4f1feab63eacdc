"""A page to read: text of any length that scrolls, with links that are followed by keys or a click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.tones import Tone, styles

if TYPE_CHECKING:
    from textual import events

    from assistant.find.browse import Linked

WIDEST = 96  # columns that running text takes: longer lines are hard to read


class _Link(NamedTuple):
    line: int
    start: int  # characters
    end: int
    topic: str


class Reader(ScrollView, can_focus=True):
    """One page."""

    DEFAULT_CSS = """
    Reader { height: 1fr; width: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "by(1)", show=False),
        Binding("k,up", "by(-1)", show=False),
        Binding("pagedown,ctrl+d", "leaf(1)", show=False),
        Binding("pageup,ctrl+u", "leaf(-1)", show=False),
        Binding("g,home", "edge(-1)", show=False),
        Binding("G,end", "edge(1)", show=False),
        Binding("n,l,right", "link(1)", "Next link", key_display="n"),
        Binding("N,h,left", "link(-1)", "Link before", show=False),
        Binding("enter", "follow", "Follow", show=False),
    ]

    class Followed(Message):
        """A link was followed."""

        def __init__(self, topic: str) -> None:
            super().__init__()
            self.topic = topic

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._page: Linked | None = None
        self._lines: list[tuple[str, Tone]] = []
        self._links: list[_Link] = []
        self._on: list[list[int]] = []  # by line, numbers of its links
        self._link = -1  # the one under the cursor; -1: none
        self._columns = 0
        self._styles: dict[Tone, Style] = {}

    @property
    def page(self) -> Linked | None:
        """What is read."""
        return self._page

    @property
    def link(self) -> str:
        """The topic that the link under the cursor leads to; empty when none is."""
        return self._links[self._link].topic if self._link >= 0 else ""

    def show(self, page: Linked | None) -> None:
        """Another page, from its beginning."""
        self._page, self._link = page, -1
        self._lay()
        self.scroll_to(y=0, animate=False, immediate=True)

    def _lay(self) -> None:
        """Lines for the width there is."""
        self._columns = max(20, min(self.size.width - 4, WIDEST))
        self._lines = _lines(self._page, self._columns) if self._page is not None else []
        self._links, self._on = [], []
        for n, (text, _) in enumerate(self._lines):
            found = [_Link(n, *span) for span in self._page.spans(text)] if self._page is not None else []
            self._on.append(list(range(len(self._links), len(self._links) + len(found))))
            self._links += found
        self._link = min(self._link, len(self._links) - 1)
        self.virtual_size = Size(max(1, self.size.width), len(self._lines))
        self.refresh()

    def on_resize(self) -> None:
        """Another width."""
        if max(20, min(self.size.width - 4, WIDEST)) != self._columns:
            self._lay()

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles = {}

    def text(self) -> str:
        """The page as text."""
        from assistant.find.browse import GLUE

        return "\n".join(line for line, _ in self._lines).replace(GLUE, " ")

    # --- keys -----------------------------------------------------------------------------

    def action_by(self, lines: int) -> None:
        """Up or down."""
        self.scroll_to(y=round(self.scroll_y) + lines, animate=False, immediate=True)

    def action_leaf(self, pages: int) -> None:
        """A page up or down."""
        self.action_by(pages * max(1, self.size.height - 2))

    def action_edge(self, which: int) -> None:
        """To the beginning or the end."""
        self.scroll_to(y=0 if which < 0 else len(self._lines), animate=False, immediate=True)

    def action_link(self, by: int) -> None:
        """To the next link, from what is in view on."""
        if not self._links:
            return
        top, bottom = round(self.scroll_y), round(self.scroll_y) + self.size.height
        if self._link >= 0 and top <= self._links[self._link].line < bottom:
            self._link = (self._link + by) % len(self._links)
        else:
            ahead = [n for n, link in enumerate(self._links) if (link.line >= top if by > 0 else link.line < bottom)]
            self._link = (ahead or range(len(self._links)))[0 if by > 0 else -1]
        line = self._links[self._link].line
        if not top <= line < bottom:
            self.scroll_to(y=max(0, line - self.size.height // 3), animate=False, immediate=True)
        self.refresh()

    def action_follow(self) -> None:
        """Open it."""
        if self.link:
            self.post_message(self.Followed(self.link))

    def on_click(self, event: events.Click) -> None:
        """A click on a link opens it."""
        where = event.get_content_offset(self)
        n = where.y + round(self.scroll_y) if where is not None else -1
        if where is None or not 0 <= n < len(self._on):
            return
        for number in self._on[n]:
            link, text = self._links[number], self._lines[n][0]
            start = 1 + Segment(text[: link.start]).cell_length
            if start <= where.x < start + Segment(text[link.start : link.end]).cell_length:
                self._link = number
                self.refresh()
                self.action_follow()

    # --- drawing --------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """The lines in view."""
        if not self._styles:
            self._styles = styles(self.app.theme_variables)
        base, n = self.rich_style, y + round(self.scroll_y)
        if n >= len(self._lines):
            return Strip.blank(self.size.width, base)
        text, tone = self._lines[n]
        style = base + self._styles[tone]
        parts, at = [Segment(" ", base)], 0
        for number in self._on[n]:
            link = self._links[number]
            look = base + self._styles[Tone.ACCENT]
            if number == self._link and self.has_focus:
                look += self._cursor()
            parts += [Segment(_shown(text[at : link.start]), style), Segment(_shown(text[link.start : link.end]), look)]
            at = link.end
        parts.append(Segment(_shown(text[at:]), style))
        return Strip(parts).adjust_cell_length(self.size.width, base)

    def _cursor(self) -> Style:
        variables = self.app.theme_variables
        colour, ground = variables.get("block-cursor-foreground", ""), variables.get("block-cursor-background", "")
        plain = not (colour.startswith("#") and ground.startswith("#"))
        return (
            Style(reverse=True) if plain or self.app.no_color else Style(color=colour, bgcolor=ground, underline=True)
        )


def _broken(line: str, columns: int) -> list[str]:
    """A word that is longer than a line, such as an address, goes on in the next one."""
    out, lead = [], " " * (len(line) - len(line.lstrip(" -")))
    while cell_len(line) > columns and len(lead) < columns - 8:
        cut = max(len(lead) + 1, next(n for n in range(len(line), 0, -1) if cell_len(line[:n]) <= columns))
        out.append(line[:cut])
        line = lead + line[cut:]
    return [*out, line]


def _shown(text: str) -> str:
    return text.replace("\u00a0", " ")


def _lines(page: Any, columns: int) -> list[tuple[str, Tone]]:
    from assistant.render.cells import wrap
    from assistant.render.sheet import Code, Heading, text_part

    out = [(line, Tone.STRONG) for line in wrap(page.title, columns)] if page.title else []
    for part in page.parts:
        tone = Tone.STRONG if isinstance(part, Heading) else Tone.PLAIN
        if isinstance(part, Code):
            made = [x for line in part.lines for x in wrap(line, columns, "    ", "      ")]
        else:
            made = text_part(part, columns)
        made = [
            piece for line in made for piece in _broken(line, columns + 2)
        ]  # a closing mark may stand over the edge
        gap = [("", Tone.PLAIN)] if out and made and not (out[-1][1] is Tone.STRONG and len(out) > 1) else []
        out += [*gap, *((line, tone) for line in made)]
    return out
