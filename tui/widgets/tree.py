"""A tree to read: nodes of several lines, folded and walked by keys and mouse. Only what is seen is drawn.

Textual's Tree has one line a node; a clause has its value beside it, and a raw line of a log below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from assistant.render.cells import pad, width, wrap
from tui.tones import Tone, over_cursor, styles
from tui.widgets.walk import WALK

INDENT = 2  # columns a level
OPEN, FOLDED = "▾", "▸"
WIDEST = 110  # columns of a line: what is longer is hard to read


class Piece(NamedTuple):
    """Words in one tone."""

    text: str
    tone: Tone = Tone.PLAIN


class Branch(NamedTuple):
    """One node. Those that follow with a greater depth stand below it."""

    key: str  # its identity: cursor and folding stay with it whatever comes and goes
    depth: int
    text: Piece
    mark: Piece = Piece("")
    right: tuple[Piece, ...] = ()  # at the end of the first line; below it where there is no room
    below: tuple[Piece, ...] = ()  # each begins a line of its own
    leads: bool = False  # others stand below it
    folded: bool = False  # at first
    gap: bool = False  # a blank line stands above it
    data: Any = None


class _Line(NamedTuple):
    branch: int  # place among the shown ones; -1: a blank line
    pieces: tuple[Piece, ...]


class TreeView(ScrollView, can_focus=True):
    """Branches below each other."""

    DEFAULT_CSS = """
    TreeView { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *WALK,
        Binding("h,left", "fold", "Fold", show=False),
        Binding("l,right", "unfold", "Unfold", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another branch (None: there is none)."""

        def __init__(self, tree: TreeView, branch: Branch | None) -> None:
            super().__init__()
            self.tree, self.branch = tree, branch

        @property
        def control(self) -> TreeView:
            """The tree."""
            return self.tree

    class Chosen(Moved):
        """Enter, or a second click on the branch under the cursor."""

    def __init__(self, *, id: str | None = None, empty: str = "") -> None:
        super().__init__(id=id)
        self.empty = empty
        self._every: Sequence[Branch] = ()
        self._shown: list[Branch] = []
        self._folds: dict[str, bool] = {}  # what was folded and unfolded by hand
        self._lines: list[_Line] = []
        self._first: list[int] = []  # first line of each shown branch
        self._at = 0
        self._styles: dict[Tone, Style] = {}

    # --- what stands in it ----------------------------------------------------------------

    def load(self, branches: Iterable[Branch], *, anew: bool = False) -> None:
        """These branches instead of all there were. `anew`: they are about something else, so nothing stays."""
        before = self.branch
        self._every = tuple(branches)
        if anew:
            self._folds, self._at, before = {}, 0, None
            self.scroll_to(y=0, animate=False, force=True)
        self._arrange(before)

    def _arrange(self, before: Branch | None = None) -> None:
        shown: list[Branch] = []
        hidden = -1  # what is deeper is folded away
        for b in self._every:
            if 0 <= hidden < b.depth:
                continue
            hidden = b.depth if b.leads and self.is_folded(b) else -1
            shown.append(b)
        self._shown = shown
        if before is not None:
            self._at = next((n for n, b in enumerate(shown) if b.key == before.key), self._at)
        self._at = max(0, min(self._at, len(shown) - 1))
        self._lay()
        if self.branch != before:
            self.post_message(self.Moved(self, self.branch))
        self.refresh()

    def is_folded(self, branch: Branch) -> bool:
        """Whether what stands below it is hidden."""
        return self._folds.get(branch.key, branch.folded)

    # --- what is asked of it --------------------------------------------------------------

    @property
    def branch(self) -> Branch | None:
        """The branch under the cursor."""
        return self._shown[self._at] if 0 <= self._at < len(self._shown) else None

    @property
    def shown(self) -> Sequence[Branch]:
        """Those that are not folded away."""
        return self._shown

    def select(self, key: str) -> bool:
        """Put the cursor on a branch; False when it is not shown."""
        at = next((n for n, b in enumerate(self._shown) if b.key == key), None)
        if at is None:
            return False
        self._go(at)
        return True

    def toggle(self, branch: Branch) -> None:
        """Fold what is unfolded, and the opposite."""
        if branch.leads:
            self._folds[branch.key] = not self.is_folded(branch)
            self._arrange(self.branch)

    # --- walking --------------------------------------------------------------------------

    def _go(self, at: int) -> None:
        at = max(0, min(at, len(self._shown) - 1))
        if at != self._at:
            self._at = at
            self.post_message(self.Moved(self, self.branch))
        self.scroll_to_cursor()
        self.refresh()

    def scroll_to_cursor(self) -> None:
        """Bring the branch under the cursor into view: its end if it has room, and its beginning in any case."""
        if not self._laid:
            return
        first, last = self._span(self._at)
        first = 0 if self._at == 0 else first
        top, room = round(self.scroll_y), max(1, self.size.height)
        if last >= top + room:
            top = last - room + 1
        top = min(top, first)
        if top != round(self.scroll_y):
            self.scroll_to(y=top, animate=False, force=True)

    @property
    def _laid(self) -> bool:
        """Whether there is something, and it has lines: while it is not in view it has none."""
        return self._at < min(len(self._shown), len(self._first))

    def _span(self, at: int) -> tuple[int, int]:
        """First and last line of a shown branch."""
        end = self._first[at + 1] if at + 1 < len(self._first) else len(self._lines)
        return self._first[at], end - 1

    def action_move(self, by: int) -> None:
        """Up or down; over a branch that is longer than the view line by line."""
        if self._laid:
            first, last = self._span(self._at)
            top, room = round(self.scroll_y), max(1, self.size.height)
            if (by > 0 and last >= top + room) or (by < 0 and first < top):
                self.scroll_to(y=top + by, animate=False, force=True)
                return
        self._go(self._at + by)

    def action_page(self, by: int) -> None:
        """A page up or down."""
        if not self._laid:
            return
        wanted = self._first[self._at] + by * max(1, self.size.height - 2)
        wanted = max(0, min(wanted, len(self._lines) - 1))
        self._go(max(n for n, first in enumerate(self._first) if first <= wanted or n == 0))

    def action_end(self, which: int) -> None:
        """To the first or the last branch."""
        self._go(0 if which < 0 else len(self._shown) - 1)

    def action_fold(self) -> None:
        """Fold the branch; to the one above it when there is nothing to fold."""
        b = self.branch
        if b is None:
            return
        if b.leads and not self.is_folded(b):
            self.toggle(b)
            return
        above = next((n for n in range(self._at - 1, -1, -1) if self._shown[n].depth < b.depth), None)
        if above is not None:
            self._go(above)

    def action_unfold(self) -> None:
        """Unfold the branch; into it when it is unfolded."""
        b = self.branch
        if b is None or not b.leads:
            return
        if self.is_folded(b):
            self.toggle(b)
        else:
            self._go(self._at + 1)

    def action_choose(self) -> None:
        """Open the branch."""
        if self.branch is not None:
            self.post_message(self.Chosen(self, self.branch))

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there, on the sign folds, twice opens."""
        where = event.get_content_offset(self)
        if where is None:
            return
        y = where.y + round(self.scroll_y)
        if y >= len(self._lines) or self._lines[y].branch < 0:
            return
        at = self._lines[y].branch
        branch, on_sign = self._shown[at], where.x <= self._shown[at].depth * INDENT + 2
        again = at == self._at
        self._go(at)
        if branch.leads and on_sign and y == self._first[at] + branch.gap:
            self.toggle(branch)
        elif again and event.chain > 1:
            self.action_choose()

    # --- drawing --------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Another width: other lines."""
        self._lay()
        self.call_after_refresh(self.scroll_to_cursor)

    def _lay(self) -> None:
        """Break everything that is shown into lines."""
        room = self.size.width - 3
        self._lines, self._first = [], []
        if room > 10:
            for n, b in enumerate(self._shown):
                self._first.append(len(self._lines))
                if b.gap and self._lines:
                    self._lines.append(_Line(-1, ()))
                self._lines += [_Line(n, pieces) for pieces in laid(b, room, self._sign(b))]
        self.virtual_size = Size(max(1, self.size.width), max(1, len(self._lines)))

    def _sign(self, branch: Branch) -> str:
        if not branch.leads:
            return ""
        return FOLDED if self.is_folded(branch) else OPEN

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        """One line of a branch, or blank."""
        if not self._styles:
            self._styles = styles(self.app.theme_variables)
        base, size = self.rich_style, self.size.width
        at = y + round(self.scroll_y)
        if not self._shown and y == 1:
            return Strip([Segment(pad("  " + self.empty, size)[:size], base + self._styles[Tone.DIM])])
        if at >= len(self._lines):
            return Strip.blank(size, base)
        line = self._lines[at]
        over = Style()
        if line.branch == self._at and line.branch >= 0 and self.has_focus:
            base += Style(bgcolor=self.app.theme_variables["block-cursor-background"])
            over = over_cursor(self.app.theme_variables)
        parts = [Segment(" ", base), *(Segment(p.text, base + self._styles[p.tone] + over) for p in line.pieces)]
        return Strip(parts).adjust_cell_length(size, base)


def laid(b: Branch, room: int, sign: str) -> list[tuple[Piece, ...]]:
    """A branch as lines of at most `room` columns."""
    wide = min(room, WIDEST)
    lead, head, mark = " " * (b.depth * INDENT), f"{sign or ' '} ", f"{b.mark.text} " if b.mark.text else ""
    inner = len(lead) + width(head) + width(mark)
    hang = " " * inner
    lines = _broken(b.text.text, wide - inner) or [""]
    first = [Piece(lead + head, Tone.DIM), *([Piece(mark, b.mark.tone)] if mark else []), Piece(lines[0], b.text.tone)]
    gap = wide - inner - width(lines[0]) - sum(width(p.text) for p in b.right) - 2 * max(0, len(b.right) - 1)
    beside = bool(b.right) and len(lines) == 1 and gap >= 3
    if beside:
        first += [Piece(" " * gap), *_spaced(b.right)]
    out = [tuple(first), *((Piece(hang), Piece(line, b.text.tone)) for line in lines[1:])]
    if b.right and not beside:
        out += _under(b.right, hang, wide)
    for piece in b.below:
        out += [(Piece(hang), Piece(line, piece.tone)) for line in _broken(piece.text, wide - inner)]
    return out


def _spaced(pieces: Sequence[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for p in pieces:
        out += [*([Piece("  ")] if out else []), p]
    return out


def _under(pieces: Sequence[Piece], hang: str, room: int) -> list[tuple[Piece, ...]]:
    """What should stand to the right, below: in one line if it fits, else each in its own."""
    if len(hang) + sum(width(p.text) + 2 for p in pieces) <= room:
        return [(Piece(hang), *_spaced(pieces))]
    return [(Piece(hang), Piece(line, p.tone)) for p in pieces for line in _broken(p.text, room - len(hang))]


def _broken(text: str, room: int) -> list[str]:
    """Lines of at most `room` columns; a word that is longer, a path or a mask, is broken as well."""
    out: list[str] = []
    for line in wrap(text, max(8, room)):
        while width(line) > max(8, room):
            cut = next(n for n in range(len(line), 0, -1) if n == 1 or width(line[:n]) <= max(8, room))
            out.append(line[:cut])
            line = line[cut:]
        out.append(line)
    return out
