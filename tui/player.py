"""The player: a recording over time. It moves a moment; who shows something asks the desk what was known then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.timer import Timer

    from assistant.live.timeline import Mark, Timeline
    from assistant.live.track import Track
    from tui.desk import Desk, Picture

SPEEDS = (1, 2, 5, 10, 30, 60)
STEP = 10  # seconds that one key goes
SECOND = 10**9
SLOW, FAST = 1.0, 0.25  # seconds between two moves at speed 1, and above


class Player:
    """A moment that moves. Everything is called in the app's thread."""

    def __init__(self, desk: Desk, timeline: Timeline, track: Track, whole: Picture) -> None:
        self._desk = desk
        self.timeline, self.track, self.whole = timeline, track, whole
        self.moment = timeline.end  # ns UTC
        self.speed = 1
        self._timer: Timer | None = None
        self._moved = 0.0  # time.monotonic() of the last move while it plays
        self._stage: object = timeline.stage(timeline.end)

    @property
    def still(self) -> bool:
        """Whether there is nothing to play."""
        return self.timeline.still

    @property
    def playing(self) -> bool:
        """Whether time goes on."""
        return self._timer is not None

    def play(self) -> None:
        """From here; from the beginning where the end is reached."""
        if self.still or self.playing:
            return
        if self.moment >= self.timeline.end:
            self.seek(self.timeline.begin)
        self._moved = time.monotonic()
        self._timer = self._desk.app.set_interval(SLOW if self.speed == 1 else FAST, self.tick)
        self._told()

    def pause(self) -> None:
        """Stop here; what is known here is concluded, even where nothing has happened."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._conclude(True)
            self._told()

    def toggle(self) -> None:
        """Play, or pause."""
        if self.playing:
            self.pause()
        else:
            self.play()

    def close(self) -> None:
        """It is not looked at any more."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def tick(self) -> None:
        """Time has gone by."""
        now = time.monotonic()
        self.advance(now - self._moved)
        self._moved = now

    def advance(self, seconds: float) -> None:
        """Go on by `seconds` of the clock at the speed that is set."""
        moment = min(self.timeline.end, self.moment + round(seconds * self.speed * SECOND))
        self._go(moment)
        if moment >= self.timeline.end:
            self.pause()

    def seek(self, moment: int) -> None:
        """To a moment; beyond the ends to the end."""
        self._go(max(self.timeline.begin, min(self.timeline.end, moment)), exact=not self.playing)

    def step(self, seconds: float) -> None:
        """So many seconds on, or back."""
        self.seek(self.moment + round(seconds * SECOND))

    def mark(self, which: int) -> Mark | None:
        """To the next thing that happened (1), or to the one before (-1); None, and to the end or the beginning, without one."""
        found = self.timeline.next(self.moment) if which > 0 else self.timeline.previous(self.moment)
        self.seek(found.at if found is not None else self.timeline.end if which > 0 else self.timeline.begin)
        return found

    def faster(self, by: int) -> None:
        """The next speed, or the one before."""
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + by))]
        if self._timer is not None:
            self.tick()
        if self._timer is not None:
            self._timer.stop()
            self._timer = self._desk.app.set_interval(SLOW if self.speed == 1 else FAST, self.tick)
        self._told()

    def _go(self, moment: int, exact: bool = False) -> None:
        self.moment = moment
        self._desk.feed.seek(self.timeline, moment)
        self._conclude(exact)

    def _conclude(self, exact: bool) -> None:
        """Ask for the picture of this moment: while it plays only where it may be another one."""
        stage = self.timeline.stage(self.moment)
        if stage != self._stage or exact:
            self._stage = stage
            self._desk.show_moment(None if self.moment >= self.timeline.end else self.moment)

    def _told(self) -> None:
        self._desk.feed.seek(self.timeline, self.moment)
