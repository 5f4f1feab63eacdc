"""What was said: turns one below the other, of which only those in view are drawn. Walked by keys and mouse."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.tones import Tone, styles
from tui.widgets.rows import LETTERED, LETTERS, NONE, Row, Stop, plain

if TYPE_CHECKING:
    from textual.selection import Selection

    from tui.app import GpudiagApp
    from tui.widgets.turns import Turn

MOST = 200  # turns that are kept on the screen
SIDE = 1  # columns of air on either side
NEAR = 4  # lines beyond the edge in which the next stop is gone to; before it the page is scrolled


class Transcript(ScrollView, can_focus=True):
    """All turns."""

    app: GpudiagApp
    DEFAULT_CSS = """
    Transcript { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
                 overflow-x: hidden; scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "walk(1)", "Down", show=False),
        Binding("k,up", "walk(-1)", "Up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(-1)", "First", show=False),
        Binding("G,end", "edge(1)", "Last", show=False),
        Binding("enter,l,right,h,left", "choose", "Open", key_display="⏎"),
        Binding("e", "explain", "Explain"),
        Binding("escape,i", "leave", "Type", show=False),
    ]

    class Chosen(Message):
        """Something in a turn was chosen that is not only to be folded."""

        def __init__(self, turn: Turn, stop: Stop) -> None:
            super().__init__()
            self.turn, self.stop_ = turn, stop

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.turns: list[Turn] = []
        self._rows: list[Row] = []
        self._heads: list[int] = []  # first row of each turn
        self._places: list[tuple[int, int, int]] = []  # (row, turn, stop): where each stop begins
        self._at: tuple[int, int] | None = None  # turn and stop under the cursor
        self._styles: dict[Tone, Style] = {}
        self._rest = 0  # where it was scrolled to by itself: whoever has left that reads something else

    # --- turns ------------------------------------------------------------------------------

    def add(self, turn: Turn) -> None:
        """One more turn; it comes into view unless somebody reads further up."""
        following = self.following
        self.turns.append(turn)
        if len(self.turns) > MOST:
            del self.turns[: len(self.turns) - MOST]
            self._at = None
        self._arrange()
        if following:
            self._follow()

    def insert(self, turn: Turn, before: Turn) -> None:
        """One more turn, above another."""
        self.turns.insert(self.turns.index(before), turn)
        self._arrange()

    def remove_turns(self, turns: list[Turn]) -> None:
        """Without these."""
        self.turns = [t for t in self.turns if t not in turns]
        self._at = None
        self._arrange()

    def changed(self, turn: Turn) -> None:
        """A turn says something else now."""
        following = self.following
        turn.changed()
        self._arrange()
        if following:
            self._follow()

    def clear(self) -> None:
        """No turns."""
        self.turns, self._at = [], None
        self._arrange()
        self.scroll_to(y=0, animate=False)

    def rebuild(self) -> None:
        """Another language."""
        for turn in self.turns:
            turn.changed()
        self._arrange()

    def tick(self) -> None:
        """Time has gone by: seconds stand beside a turn that is under way."""
        if any(not t.over and not t.waits for t in self.turns[-8:]):
            self._arrange()

    @property
    def _columns(self) -> int:
        """What rows are laid out for: the bar at the side has its place whether it is there or not."""
        return self.scrollable_content_region.width - 2 * SIDE

    @property
    def following(self) -> bool:
        """Whether the newest is in view, so that what comes may scroll the page."""
        y = round(self.scroll_y)
        return not self._rows or y >= self.max_scroll_y - 1 or y == self._rest

    def follow(self) -> None:
        """Somebody has asked: what comes now is what they want to see, wherever they read before."""
        self._rest = round(self.scroll_y)

    def _follow(self) -> None:
        """The end comes into view, or as much of the newest turn as there is room for, from its question on."""
        last = next((n for n in range(len(self.turns) - 1, -1, -1) if not self.turns[n].waits), len(self.turns) - 1)
        if not 0 <= last < len(self._heads):  # it is not in view, and has not been laid out
            return
        head = self._heads[last]
        self._rest = max(0, min(head - 1 if head else 0, self.max_scroll_y))
        self.scroll_to(y=self._rest, animate=False, force=True)

    def _arrange(self) -> None:
        columns = self._columns
        if columns <= 0:
            return
        lang, t = self.app.desk.lang, self.app.t
        newest = self.newest
        rows: list[Row] = []
        self._heads, self._places = [], []
        for n, turn in enumerate(self.turns):
            if rows:
                rows.append(())
            self._heads.append(len(rows))
            made, stops = turn.rows(columns, t, lang, live=turn is newest)
            self._places += _places(made, len(rows), n)
            rows += made
            if self._at is not None and self._at[0] == n and self._at[1] >= len(stops):
                self._at = None
        self._rows = rows
        self.virtual_size = Size(max(1, self.size.width), len(rows))
        self.refresh()

    # --- what is chosen ---------------------------------------------------------------------

    @property
    def stop_at(self) -> tuple[Turn, Stop] | None:
        """The turn and the stop under the cursor."""
        if self._at is None:
            return None
        turn = self.turns[self._at[0]]
        return turn, self._stops_of(turn)[self._at[1]]

    @property
    def newest(self) -> Turn | None:
        """The last answer, or what greets: its chips have letters."""
        return next((t for t in reversed(self.turns) if t.shown is not None or t.offers), None)

    def _stops_of(self, turn: Turn) -> list[Stop]:
        return turn.rows(self._columns, self.app.t, self.app.desk.lang, live=turn is self.newest)[1]

    def letter(self, letter: str) -> bool:
        """Choose the chip that has this letter; False when none has."""
        turn = self.newest
        if turn is None or letter not in LETTERS:
            return False
        chips = [s for s in self._stops_of(turn) if s.kind in LETTERED]
        number = LETTERS.index(letter)
        if number >= len(chips):
            return False
        self._choose(turn, chips[number])
        return True

    def action_walk(self, by: int) -> None:
        """To the next stop, if it is in view or close to it; else some lines on."""
        here = next((n for n, (_, t, s) in enumerate(self._places) if (t, s) == self._at), None)
        nxt = self._entering(by) if here is None else here + by
        if nxt is not None and not 0 <= nxt < len(self._places):
            nxt = None
        top, height = round(self.scroll_y), self.size.height
        if nxt is not None and top - NEAR <= self._places[nxt][0] < top + height + NEAR:
            self._go(nxt)
        elif (by > 0 and top < self.max_scroll_y) or (by < 0 and top > 0):
            self.scroll_to(y=top + 3 * by, animate=False, force=True)
        elif by > 0:
            self.app.workspace.chat.focus_input()

    def _entering(self, by: int) -> int | None:
        top, bottom = round(self.scroll_y), round(self.scroll_y) + self.size.height
        seen = [n for n, (row, _, _) in enumerate(self._places) if top <= row < bottom]
        return (seen[0] if by > 0 else seen[-1]) if seen else None

    def _go(self, place: int) -> None:
        row, turn, stop = self._places[place]
        self._at = (turn, stop)
        self._show(row)
        self.refresh()

    def _show(self, row: int) -> None:
        top, height = round(self.scroll_y), max(1, self.size.height)
        if row < top + 1:
            self.scroll_to(y=max(0, row - 1), animate=False, force=True)
        elif row >= top + height - 1:
            self.scroll_to(y=row - height + 2, animate=False, force=True)

    def on_focus(self) -> None:
        """The keys are here: the cursor stands on the last thing in view that can be chosen."""
        if self._at is None and (place := self._entering(-1)) is not None:
            self._go(place)

    def action_page(self, by: int) -> None:
        """A page up or down."""
        self.scroll_to(y=self.scroll_y + by * max(1, self.size.height - 2), animate=False, force=True)

    def action_edge(self, which: int) -> None:
        """To the beginning or the end."""
        self.scroll_to(y=0 if which < 0 else self.max_scroll_y, animate=False, force=True)

    def action_choose(self) -> None:
        """Open or close a fold, ask a suggestion, copy a command."""
        if (found := self.stop_at) is not None:
            self._choose(*found)

    def action_leave(self) -> None:
        """Back to the line; a turn that is under way is given up first."""
        if self.app.desk.talk.busy:
            self.app.workspace.action_back()
        else:
            self.app.workspace.chat.focus_input()

    def action_explain(self) -> None:
        """Ask about the finding under the cursor."""
        found = self.stop_at
        if found is not None and found[1].question:
            # Not as a screen asks: the talk goes on from what this answer rests on.
            self.post_message(self.Chosen(found[0], Stop("chip", found[1].question)))
        else:
            self.app.notify(self.app.t("There is nothing under the cursor to explain.", "光标处没有可解释的内容。"))

    def _choose(self, turn: Turn, stop: Stop) -> None:
        if stop.kind == "fold":
            turn.turned ^= {stop.value}
            turn.changed()
            self._arrange()
        else:
            self.post_message(self.Chosen(turn, stop))

    def on_click(self, event: events.Click) -> None:
        """A click chooses what it hits."""
        where = event.get_content_offset(self)
        if where is None or self.text_selection is not None:
            return
        at = where.y + round(self.scroll_y)
        if at >= len(self._rows):
            return
        x = SIDE
        for span in self._rows[at]:
            size = cell_len(span.text)
            if x <= where.x < x + size and span.stop != NONE:
                turn = self._turn_of(at)
                self._at = (turn, span.stop)
                self.refresh()
                self.action_choose()
                return
            x += size

    def _turn_of(self, row: int) -> int:
        return max(0, bisect_right(self._heads, row) - 1)

    def turn_here(self) -> Turn | None:
        """The turn under the cursor, else the last one with an answer."""
        if self._at is not None and self.has_focus:
            return self.turns[self._at[0]]
        return next((t for t in reversed(self.turns) if t.shown is not None), None)

    # --- drawing ----------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Another width: other lines. The turn at the top stays there."""
        following = self.following
        top = round(self.scroll_y)
        turn = self._turn_of(top) if self._heads and top < len(self._rows) else 0
        within = top - self._heads[turn] if self._heads else 0
        self._arrange()
        if following:
            self._follow()
        elif self._heads:
            self.scroll_to(y=self._heads[min(turn, len(self._heads) - 1)] + within, animate=False, force=True)

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        """A row in view."""
        if not self._styles:
            self._styles = styles(self.app.theme_variables)
        at = y + round(self.scroll_y)
        base = self.rich_style
        if at >= len(self._rows):
            return Strip.blank(self.size.width, base)
        turn = self._turn_of(at)
        here = self._at if self.has_focus else None
        parts = [Segment(" " * SIDE, base)]
        for span in self._rows[at]:
            style = base + self._styles[span.tone]
            if span.stop != NONE and (turn, span.stop) == here:
                style += self._cursor()
            parts.append(Segment(span.text, style))
        strip = Strip(parts).adjust_cell_length(self.size.width, base)
        if (selection := self.text_selection) is not None and (marked := selection.get_span(at)) is not None:
            strip = self._marked(strip, marked)
        return strip.apply_offsets(0, at)

    def _cursor(self) -> Style:
        variables = self.app.theme_variables
        return Style(bgcolor=variables["block-cursor-background"], bold=variables["block-cursor-text-style"] == "bold" or None,
                     underline=not self.app.theme_variables.get("block-cursor-background") or None)  # fmt: skip

    def _marked(self, strip: Strip, marked: tuple[int, int]) -> Strip:
        begin, end = marked
        style = self.screen.get_component_rich_style("screen--selection")
        whole = strip.cell_length
        end = whole if end == -1 else min(end, whole)
        before, inside, after = strip.crop(0, begin), strip.crop(begin, end), strip.crop(end, whole)
        return Strip.join([before, inside.apply_style(style), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What was marked with the mouse."""
        return selection.extract("\n".join(" " * SIDE + plain(row) for row in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """What is marked is drawn so."""
        self.refresh()


def _places(rows: list[Row], first: int, turn: int) -> list[tuple[int, int, int]]:
    """Where each stop of a turn begins, top to bottom."""
    seen: dict[int, int] = {}
    for n, row in enumerate(rows):
        for span in row:
            if span.stop != NONE:
                seen.setdefault(span.stop, first + n)
    return [(row, turn, stop) for stop, row in seen.items()]
