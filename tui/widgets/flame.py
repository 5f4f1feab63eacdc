"""A flame graph: callers above, what they call below, as wide as the time it takes. Zoomed by keys and mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from assistant.render.cells import pad, width
from tui.tones import Tone, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from textual import events

    from assistant.trace.icicle import Box, Icicle

WHOLE = -1  # as assistant.trace.icicle.WHOLE, whose import can wait
# What a box is, by the theme's colour that it is washed with: what runs on the GPU has one, Python has one.
WASHES = {
    "python": "plot-1", "module": "plot-1", "frame": "plot-1", "mark": "plot-2", "op": "plot-4", "runtime": "faint",
    "kernel": "plot-3", "copy": "plot-3", "root": "rule",
}  # fmt: skip
_NAMED = 5  # columns from which a name is cut rather than left out
_CALM, _FOUND, _FADED = 0.34, 0.85, 0.13  # how much of that colour


class Flame(ScrollView, can_focus=True):
    """The boxes of one call tree."""

    DEFAULT_CSS = """
    Flame { height: 1fr; margin: 0 1; scrollbar-gutter: stable; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k,up", "step(-1)", "Caller", show=False),
        Binding("j,down", "step(1)", "Called", show=False),
        Binding("h,left", "side(-1)", "Left", show=False),
        Binding("l,right", "side(1)", "Right", show=False),
        Binding("enter", "zoom", "Zoom"),
        Binding("backspace", "back", "Back"),
        Binding("g,home", "whole", "Whole", show=False),
        Binding("n", "next(1)", "Next found", show=False),
        Binding("N", "next(-1)", "Last found", show=False),
        Binding("escape", "forget", "Clear", show=False),
    ]

    class Moved(Message):
        """Another frame is under the cursor, or is to be seen larger (WHOLE: none)."""

        def __init__(self, flame: Flame, frame: int) -> None:
            super().__init__()
            self.flame, self.frame = flame, frame

        @property
        def control(self) -> Flame:
            """The graph."""
            return self.flame

    def __init__(self, *, id: str | None = None, empty: str = "") -> None:
        super().__init__(id=id)
        self.empty = empty
        self._tree: Icicle | None = None
        self._cursor, self._focus = WHOLE, WHOLE
        self._past: list[int] = []  # what was looked at before, for the way back
        self._hover: int | None = None
        self._words, self._found, self._time = "", frozenset[int](), 0
        self._rows: list[list[Box]] = []
        self._for = (0, WHOLE)  # columns and focus that the rows were laid out for
        self._looks: dict[tuple[str, float], Style] = {}

    # --- what is in it --------------------------------------------------------------------

    def load(self, tree: Icicle | None) -> None:
        """Another tree, or none."""
        self._tree = tree
        self._past = []
        self._cursor = tree.below.get(WHOLE, [WHOLE])[0] if tree is not None else WHOLE
        self._focus, self._hover = WHOLE, None
        self._for = (0, WHOLE)
        self.search(self._words)
        self._lay_out()
        self.scroll_to(y=0, animate=False)
        self.post_message(self.Moved(self, self._cursor))

    @property
    def icicle(self) -> Icicle | None:
        """The tree that is drawn."""
        return self._tree

    @property
    def cursor(self) -> int:
        """The frame under the cursor; WHOLE where there is none."""
        return self._cursor

    @property
    def pointed(self) -> int:
        """The frame under the mouse, else under the cursor."""
        return self._cursor if self._hover is None else self._hover

    @property
    def focus_at(self) -> int:
        """The frame that takes the whole width; WHOLE: all of them."""
        return self._focus

    @property
    def words(self) -> str:
        """What was searched."""
        return self._words

    @property
    def found(self) -> tuple[int, int]:
        """How many frames the search found, and how much time they take."""
        return len(self._found), self._time

    @property
    def rows(self) -> list[list[Box]]:
        """The boxes of each line."""
        return self._rows

    def _lay_out(self) -> None:
        columns = self.scrollable_content_region.width or self.size.width
        if self._tree is None:
            self._rows = []
        elif self._for != (columns, self._focus):
            from assistant.trace.icicle import rows

            self._rows, self._for = rows(self._tree, columns, self._focus), (columns, self._focus)
        self.virtual_size = Size(max(1, columns), max(1, len(self._rows)))
        self.refresh()

    # --- moving ---------------------------------------------------------------------------

    def point(self, frame: int) -> None:
        """Put the cursor on a frame that is drawn."""
        if self._tree is None or frame == WHOLE:
            return
        self._cursor, self._hover = frame, None
        y = next((n for n, row in enumerate(self._rows) for box in row if box.frame == frame), 0)
        self.scroll_to_region(Region(0, y, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self, frame))

    def zoom(self, frame: int) -> None:
        """Give a frame the whole width; WHOLE: show all."""
        if self._tree is None or frame == self._focus:
            return
        self._past.append(self._focus)
        self._show(frame)

    def _show(self, frame: int) -> None:
        self._focus = frame
        self._lay_out()
        seen = {box.frame for row in self._rows for box in row}
        self.point(self._cursor if self._cursor in seen else frame)

    def search(self, words: str) -> None:
        """Set off the frames whose name holds these words."""
        self._words = " ".join(words.split())
        if self._tree is not None:
            from assistant.trace.icicle import search

            self._found, self._time = search(self._tree, self._words)
        self.refresh()
        self.post_message(self.Moved(self, self._cursor))

    def action_step(self, by: int) -> None:
        """To the caller, or to the largest of what is called."""
        if self._tree is None or self._cursor == WHOLE:
            return
        if by < 0:
            self.point(self._tree.frames[self._cursor].parent)
            return
        seen = {box.frame for row in self._rows for box in row}
        self.point(next((n for n in self._tree.below.get(self._cursor, ()) if n in seen), WHOLE))

    def action_side(self, by: int) -> None:
        """Along the line."""
        from assistant.trace.icicle import beside

        self.point(beside(self._rows, self._cursor, by))

    def action_zoom(self) -> None:
        """The frame under the cursor over the whole width."""
        self.zoom(self._cursor)

    def action_back(self) -> None:
        """As it was before; at last all of it."""
        if self._past:
            self._show(self._past.pop())
        elif self._focus != WHOLE:
            self._show(WHOLE)

    def action_whole(self) -> None:
        """All of it."""
        self.zoom(WHOLE)

    def action_next(self, by: int) -> None:
        """To the next frame that the search found, in the order in which they are drawn."""
        places = [box.frame for row in self._rows for box in row if box.frame in self._found]
        if places:
            here = places.index(self._cursor) if self._cursor in places else (-1 if by > 0 else 0)
            self.point(places[(here + by) % len(places)])

    def action_forget(self) -> None:
        """Search no more."""
        self.search("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape ends a search; without one it is not ours."""
        del parameters
        return bool(self._words) if action == "forget" else True

    # --- mouse ----------------------------------------------------------------------------

    def _under(self, event: events.MouseEvent) -> int | None:
        from assistant.trace.icicle import at

        where = event.get_content_offset(self)
        return None if where is None else at(self._rows, where.x, where.y + round(self.scroll_y))

    def on_click(self, event: events.Click) -> None:
        """Zooms to what was clicked."""
        frame = self._under(event)
        if frame is not None:
            self._cursor = frame
            if frame == self._focus:
                self.point(frame)
            else:
                self.zoom(frame)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tells what is under the mouse."""
        self._hovered(self._under(event))

    def on_leave(self) -> None:
        """It went away."""
        self._hovered(None)

    def _hovered(self, frame: int | None) -> None:
        if frame != self._hover:
            self._hover = frame
            self.post_message(self.Moved(self, self.pointed))

    # --- drawing --------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Another width."""
        self._lay_out()

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._looks = {}

    def render_line(self, y: int) -> Strip:
        """One depth."""
        base, room = self.rich_style, self.size.width
        line = y + round(self.scroll_y)
        if line >= len(self._rows):
            text = "  " + self.empty if not self._rows and y == 1 else ""
            return Strip([Segment(pad(clip(text, room), room), base + styles(self.app.theme_variables)[Tone.DIM])])
        parts, x = [], 0
        for box in self._rows[line]:
            if box.x > x:
                parts.append(Segment(" " * (box.x - x), base))
            parts += self._drawn(box)
            x = box.x + box.width
        return Strip(parts).adjust_cell_length(room, base)

    def _drawn(self, box: Box) -> list[Segment]:
        assert self._tree is not None
        frame = self._tree.frames[box.frame]
        style = self._style(box.frame, frame.kind)
        ground = Style(color=self.app.theme_variables["background"])
        room = box.width - 1
        label = clip(frame.label, room) if room >= _NAMED or width(frame.label) <= room else ""
        return [Segment("▏", style + ground), Segment(pad(label, room), style)]

    def _style(self, frame: int, kind: str) -> Style:
        variables = self.app.theme_variables
        if frame == self._cursor:
            if self.has_focus:
                return Style(color=variables["background"], bgcolor=variables["foreground"], bold=True)
            return self._wash(kind, _CALM) + Style(bold=True, underline=True)
        if self._words:
            return self._wash(kind, _FOUND if frame in self._found else _FADED)
        return self._wash(kind, _FADED if self._above(frame) else _CALM)

    def _above(self, frame: int) -> bool:
        """Whether it calls what has the whole width."""
        return (
            self._tree is not None
            and self._focus != WHOLE
            and self._tree.frames[frame].depth < self._tree.frames[self._focus].depth
        )

    def _wash(self, kind: str, strength: float) -> Style:
        found = self._looks.get((kind, strength))
        if found is None:
            found = self._looks[kind, strength] = washed(self.app.theme_variables, kind, strength)
        return found


def washed(variables: dict[str, str], kind: str, strength: float = _CALM) -> Style:
    """A box of that kind: the theme's ground with some of the kind's colour, and letters that can be read on it."""
    ground = Color.parse(variables["background"])
    colour = Color.parse(variables.get(WASHES.get(kind, "rule"), variables["foreground"]))
    front = (
        variables["background"]
        if strength == _FOUND
        else variables["faint"]
        if strength == _FADED
        else variables["foreground"]
    )
    return Style(color=front, bgcolor=ground.blend(colour, strength).hex)
