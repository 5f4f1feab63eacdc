"""The line of the player: what happened in a recording, where it stands, how fast it plays.

The time stands on the right, below the readings that change with it: Textual composes anew what lies in a box around all that
is drawn again, and the conversation on the left is to stay out of it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import MARKS, Tone, of_severity, styles

if TYPE_CHECKING:
    from rich.style import Style
    from textual import events

    from assistant.live.timeline import Timeline
    from tui.player import Player

_ORDER = ("info", "warning", "error", "critical")


def clock(ns: int, date: bool = False) -> str:
    """``12:03:20`` UTC."""
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):{'%m-%d ' if date else ''}%H:%M:%S}"


class _Drawn(NamedTuple):
    """What the line says."""

    time: str
    rest: str  # what stands behind it
    cell: int  # of the moment
    timeline: object
    room: int  # columns of all of it


class ReplayBar(Widget):
    """One line; it is there only while a recording with an extent is looked at."""

    DEFAULT_CSS = """
    ReplayBar { height: 1; display: none; background: $panel; padding: 0 1; }
    ReplayBar.-there { display: block; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cells = 0  # of the line
        self._drawn: _Drawn | None = None
        self._look: dict[Tone, Style] = {}
        self._marked: tuple[Timeline, int, dict[int, Tone]] | None = None

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
        before, now = self._drawn, self._now(player)
        self._drawn = now
        if (
            before is None
            or before._replace(time=now.time, cell=now.cell) != now
            or width(before.time) != width(now.time)
        ):
            self.refresh()
            return
        parts = []
        if now.time != before.time:
            parts.append(Region(self._cells + 2, 0, width(now.time), 1))
        if now.cell != before.cell:
            first, last = sorted((before.cell, now.cell))
            parts.append(Region(first, 0, last - first + 1, 1))
        if parts:
            self.refresh(*parts)

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._look = {}

    def _now(self, player: Player) -> _Drawn:
        from tui.app import desk_of

        t = desk_of(self.app).t
        days = player.timeline.end - player.timeline.begin > 86400 * 10**9
        time = f"{'▶' if player.playing else '‖'} {clock(player.moment, days)}"
        keys = t("space < > [ ] + -", "空格 < > [ ] + -") if self.size.width >= 70 else ""
        rest = f" / {clock(player.timeline.end, days)}  ×{player.speed}" + (f"  {keys}" if keys else "")
        self._cells = max(5, self.size.width - width(time) - width(rest) - 2)
        return _Drawn(time, rest, self._at(player, player.moment), player.timeline, self.size.width)

    def _at(self, player: Player, moment: int) -> int:
        span = max(1, player.timeline.end - player.timeline.begin)
        return max(0, min(self._cells - 1, (moment - player.timeline.begin) * (self._cells - 1) // span))

    def render_line(self, y: int) -> Strip:
        """The line with its marks; time, end, speed."""
        player, base = self.player, self.rich_style
        if player is None or y:
            return Strip.blank(self.size.width, base)
        if not self._look:
            self._look = {tone: base + style for tone, style in styles(self.app.theme_variables).items()}
        if self._drawn is None or self._drawn.room != self.size.width:
            self._drawn = self._now(player)
        look, now = self._look, self._drawn
        marks, here = self._marks(player), now.cell
        runs, x = [], 0
        for cell in sorted({*marks, here}):
            passed = cell <= here
            runs.append(Segment(("━" if passed else "─") * (cell - x), look[Tone.ACCENT if passed else Tone.DIM]))
            tone = marks.get(cell, Tone.PLAIN)
            runs.append(Segment("●", look[Tone.STRONG]) if cell == here else Segment(MARKS.get(tone, "·"), look[tone]))
            x = cell + 1
        runs += [
            Segment("─" * (self._cells - x) + "  ", look[Tone.DIM]),
            Segment(now.time, look[Tone.STRONG]),
            Segment(now.rest, look[Tone.DIM]),
        ]
        return Strip(runs).adjust_cell_length(self.size.width, base)

    def _marks(self, player: Player) -> dict[int, Tone]:
        """For each cell of the line the worst of what happened in it."""
        key = (player.timeline, self._cells)
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
        player, cells, cell = self.player, self._cells, event.x - 1
        if player is not None and 0 <= cell < cells:
            span = player.timeline.end - player.timeline.begin
            player.seek(player.timeline.begin + span * cell // max(1, cells - 1))
