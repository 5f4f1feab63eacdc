"""Parts of a whole as bars under each other, between sentences; each line that has a key can be pointed at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from assistant.render.cells import pad, width
from tui.tones import Tone, styles
from tui.widgets.columns import clip
from tui.widgets.walk import WALK

if TYPE_CHECKING:
    from textual import events

WIDEST = 40  # columns of a bar
READABLE = 96  # of a sentence
_BAR = 12  # of the longest bar, before names give way


class Said(NamedTuple):
    """A sentence, or a heading. `key`: it can be pointed at. `lead`: what stands before its first line."""

    text: str
    tone: Tone = Tone.PLAIN
    key: str = ""
    lead: str = ""


class Part(NamedTuple):
    """A part of the whole."""

    key: str
    label: str
    value: str
    share: float | None
    said: str  # the share in words
    depth: int = 0
    colour: str = "plot-1"  # of the theme
    tone: Tone = Tone.PLAIN


Line = Said | Part
BLANK = Said("")


class Bars(ScrollView, can_focus=True):
    """Lines."""

    DEFAULT_CSS = """
    Bars { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *WALK,
    ]

    class Moved(Message):
        """The cursor stands on another line ("": on none)."""

        def __init__(self, bars: Bars, key: str) -> None:
            super().__init__()
            self.bars, self.key = bars, key

        @property
        def control(self) -> Bars:
            """The bars."""
            return self.bars

    class Chosen(Moved):
        """Enter, or a second click."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self._drawn: list[tuple[int, str]] = []  # of each line on the screen: whose it is, and what part of its text
        self._at = -1
        self._sizes: dict[
            int, tuple[int, int, int, int]
        ] = {}  # of name, value, share and bar, of each line that has one

    def load(self, lines: Iterable[Line]) -> None:
        """These lines; the cursor stays on the line of the same key."""
        before = self.key
        self._lines = tuple(lines)
        keys = [line.key for line in self._lines]
        self._at = keys.index(before) if before and before in keys else next((n for n, k in enumerate(keys) if k), -1)
        self._arrange()
        self.post_message(self.Moved(self, self.key))

    @property
    def key(self) -> str:
        """The line under the cursor."""
        return self._lines[self._at].key if 0 <= self._at < len(self._lines) else ""

    @property
    def lines(self) -> Sequence[Line]:
        """All lines."""
        return self._lines

    def text(self) -> str:
        """The line under the cursor, to copy."""
        if not self.key:
            return ""
        line = self._lines[self._at]
        return line.text if isinstance(line, Said) else f"{line.label}  {line.value}  {line.said}"

    def _arrange(self) -> None:
        from assistant.render.cells import wrap

        room = max(20, (self.scrollable_content_region.width or self.size.width) - 2)
        self._sizes = {}
        for block in _blocks(self._lines):
            self._sizes |= dict.fromkeys(block, _sized([self._lines[n] for n in block], room))
        self._drawn = []
        for n, line in enumerate(self._lines):
            if isinstance(line, Part):
                self._drawn.append((n, ""))
                continue
            for piece in wrap(line.text, min(room, READABLE), line.lead) or [""]:
                self._drawn.append((n, piece))
        self.virtual_size = Size(max(1, self.size.width), max(1, len(self._drawn)))
        self.refresh()

    # --- walking --------------------------------------------------------------------------

    def point(self, key: str) -> bool:
        """Put the cursor on a line; False when there is none of that key."""
        at = next((n for n, line in enumerate(self._lines) if line.key == key), -1)
        if at < 0:
            return False
        self._go(at)
        return True

    def _go(self, at: int) -> None:
        self._at = at
        places = [y for y, (n, _) in enumerate(self._drawn) if n == at]
        if places:
            first = at == next((n for n, line in enumerate(self._lines) if line.key), -1)
            top = 0 if first else places[0]
            self.scroll_to_region(Region(0, top, 1, places[-1] - top + 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self, self.key))

    def action_move(self, by: int) -> None:
        """To the next line that can be pointed at; where there is none the page moves."""
        places = [n for n, line in enumerate(self._lines) if line.key]
        if self._at in places and 0 <= places.index(self._at) + by < len(places):
            self._go(places[places.index(self._at) + by])
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """A page up or down."""
        places = [n for n, line in enumerate(self._lines) if line.key]
        if not places:
            self.scroll_relative(y=by * max(1, self.size.height - 1), animate=False)
            return
        here = places.index(self._at) if self._at in places else 0
        self._go(places[max(0, min(len(places) - 1, here + by * max(1, self.size.height - 2)))])

    def action_end(self, which: int) -> None:
        """The first or the last."""
        places = [n for n, line in enumerate(self._lines) if line.key]
        if places:
            self._go(places[0 if which < 0 else -1])

    def action_choose(self) -> None:
        """Open it."""
        if self.key:
            self.post_message(self.Chosen(self, self.key))

    def on_click(self, event: events.Click) -> None:
        """The cursor goes there; a second click opens."""
        where = event.get_content_offset(self)
        if where is None:
            return
        y = where.y + round(self.scroll_y)
        if y < len(self._drawn) and self._lines[self._drawn[y][0]].key:
            again = self._drawn[y][0] == self._at
            self._go(self._drawn[y][0])
            if again and event.chain > 1:
                self.action_choose()

    # --- drawing --------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Another width."""
        self._arrange()

    def render_line(self, y: int) -> Strip:
        """One line."""
        base, room = self.rich_style, self.size.width
        at = y + round(self.scroll_y)
        if at >= len(self._drawn):
            return Strip.blank(room, base)
        n, piece = self._drawn[at]
        line = self._lines[n]
        variables = self.app.theme_variables
        if n == self._at and self.has_focus:
            base += Style(
                bgcolor=variables["block-cursor-background"],
                bold=variables["block-cursor-text-style"] == "bold" or None,
            )
        look = styles(variables)
        parts = [Segment(" ", base)]
        if isinstance(line, Said):
            parts.append(Segment(piece, base + look[line.tone]))
        else:
            parts += self._bar(n, line, base, look[line.tone], look[Tone.DIM], Style(color=variables[line.colour]))
        return Strip(parts).adjust_cell_length(room, base)

    def _bar(self, n: int, line: Part, base: Style, tone: Style, dim: Style, colour: Style) -> list[Segment]:
        from assistant.render.trace_plots import bar

        name, value, said, room = self._sizes[n]
        label = pad(clip("  " * line.depth + line.label, name), name)
        shown = " " * (value - width(line.value)) + line.value, " " * (said - width(line.said)) + line.said
        drawn = bar(line.share, room)
        rest = dim if line.depth else tone
        return [
            Segment(f"{label}  ", base + rest), Segment(f"{shown[0]}  ", base + tone), Segment(f"{shown[1]}  ", base + rest),
            Segment(drawn, base + colour),
        ]  # fmt: skip


def _blocks(lines: Sequence[Line]) -> list[list[int]]:
    """The parts that stand directly under each other: they have their columns in common."""
    out: list[list[int]] = []
    for n, line in enumerate(lines):
        if isinstance(line, Part):
            if n and out and out[-1][-1] == n - 1:
                out[-1].append(n)
            else:
                out.append([n])
    return out


def _sized(lines: Sequence[Line], room: int) -> tuple[int, int, int, int]:
    """How wide name, value, share and bar are: a name gives way until the bar has a few columns."""
    parts = [line for line in lines if isinstance(line, Part)]
    value, said = max(width(p.value) for p in parts), max(width(p.said) for p in parts)
    left = room - value - said - 6
    name = max(8, min(max(width(p.label) + 2 * p.depth for p in parts), left - _BAR))
    return name, value, said, max(0, min(WIDEST, left - name))
