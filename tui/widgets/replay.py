"""The line of the player: where a recording stands, what happened in it, how fast it plays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import MARKS, Tone, of_severity, styles

if TYPE_CHECKING:
    from textual import events

    from assistant.live.timeline import Timeline
    from tui.player import Player

_ORDER = ("info", "warning", "error", "critical")


def clock(ns: int, date: bool = False) -> str:
    """``12:03:20`` UTC."""
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):{'%m-%d ' if date else ''}%H:%M:%S}"


class ReplayBar(Widget):
    """One line; it is there only while a recording with an extent is looked at."""

    DEFAULT_CSS = """
    ReplayBar { height: 1; display: none; background: $panel; padding: 0 1; }
    ReplayBar.-there { display: block; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._bar = (0, 0)  # where the line begins, and how many cells it has
        self._drawn: object = None
        self._marked: tuple[Timeline, tuple[int, int], dict[int, Tone]] | None = None

    @property
    def player(self) -> Player | None:
        """The player of what is looked at."""
        from tui.app import desk_of

        return desk_of(self.app).player

    def update(self) -> None:
        """The moment, the speed or the recording is another one: drawn again where that shows."""
        player = self.player
        there = player is not None and not player.still
        if there != self.has_class("-there"):
            self.set_class(there, "-there")
        if player is None or not there:
            return
        now = (self._head(player), self._tail(player), self._cell(player), id(player))
        if now != self._drawn:
            self._drawn = now
            self.refresh()

    def _head(self, player: Player) -> str:
        days = player.timeline.end - player.timeline.begin > 86400 * 10**9
        return f"{'▶' if player.playing else '‖'} {clock(player.moment, days)}"

    def _tail(self, player: Player) -> str:
        from tui.app import desk_of

        t = desk_of(self.app).t
        days = player.timeline.end - player.timeline.begin > 86400 * 10**9
        keys = t("space < > [ ] + -", "空格 < > [ ] + -") if self.size.width >= 70 else ""
        return f"{clock(player.timeline.end, days)}  ×{player.speed}" + (f"  {keys}" if keys else "")

    def _cell(self, player: Player) -> int:
        return self._at(player, player.moment)

    def _at(self, player: Player, moment: int) -> int:
        span = max(1, player.timeline.end - player.timeline.begin)
        return max(0, min(self._bar[1] - 1, (moment - player.timeline.begin) * (self._bar[1] - 1) // span))

    def render_line(self, y: int) -> Strip:
        """Time, line with marks, end, speed."""
        player, base = self.player, self.rich_style
        if player is None or y:
            return Strip.blank(self.size.width, base)
        look = {tone: base + style for tone, style in styles(self.app.theme_variables).items()}
        head, tail = self._head(player), self._tail(player)
        cells = max(5, self.size.width - width(head) - width(tail) - 4)
        self._bar = (width(head) + 2, cells)
        marks, here = self._marks(player), self._cell(player)
        runs, x = [Segment(f"{head}  ", look[Tone.STRONG])], 0
        for cell in sorted({*marks, here}):
            passed = cell <= here
            runs.append(Segment(("━" if passed else "─") * (cell - x), look[Tone.ACCENT if passed else Tone.DIM]))
            tone = marks.get(cell, Tone.PLAIN)
            runs.append(Segment("●", look[Tone.STRONG]) if cell == here else Segment(MARKS.get(tone, "·"), look[tone]))
            x = cell + 1
        runs.append(Segment(f"{'─' * (cells - x)}  {tail}", look[Tone.DIM]))
        return Strip(runs).adjust_cell_length(self.size.width, base)

    def _marks(self, player: Player) -> dict[int, Tone]:
        """For each cell of the line the worst of what happened in it."""
        key = (player.timeline, self._bar)
        if self._marked is not None and self._marked[0] is key[0] and self._marked[1] == key[1]:
            return self._marked[2]
        marks: dict[int, Tone] = {}
        for mark in player.timeline.marks:
            cell = self._at(player, mark.at)
            if cell not in marks or _ORDER.index(mark.severity) > _ORDER.index(marks[cell]):
                marks[cell] = of_severity(mark.severity)
        self._marked = (*key, marks)
        return marks

    def on_click(self, event: events.Click) -> None:
        """To that time."""
        player, (begin, cells) = self.player, self._bar
        cell = event.x - 1 - begin
        if player is not None and 0 <= cell < cells:
            span = player.timeline.end - player.timeline.begin
            player.seek(player.timeline.begin + span * cell // max(1, cells - 1))
