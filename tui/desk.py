"""The desk: what the app is about (a machine, or a recording of one), and what is known of it.

It lives in the thread of the app. Its work is done in threads that only post; what they bring replaces the picture
at once, and a look that fails leaves the last one standing, with its age.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from assistant.session.state import Origin
from knowledge.language import Text
from knowledge.record import dataclass
from tui.messages import PictureChanged, SourceChanged

if TYPE_CHECKING:
    import argparse

    from textual.app import App

    from assistant.config import Settings
    from assistant.diagnosis import Diagnosis
    from assistant.live.timeline import Timeline
    from assistant.live.track import Track
    from assistant.machine import Wish
    from assistant.session.inventory import Inventory
    from assistant.session.state import Seen
    from probes.runner import Progress
    from rules.loader import RuleSet
    from tui.feed import Feed
    from tui.player import Player
    from tui.talk import Talk
    from tui.work import Job, Jobs

ROUND = 60.0  # seconds between two looks at a live machine


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of the source. The fields of the last look that ended well stay while the next is under way."""

    origin: Origin = field(default_factory=Origin)
    host: str = ""
    diagnosis: Diagnosis | None = None
    seen: Seen | None = None  # what it rests on
    at: float | None = None  # time.time() at the end of that look
    looking: tuple[str, ...] | None = None  # probes under way ("" for a file that is read); None: nothing is
    begun: float = 0.0  # time.monotonic() when the look that is under way began
    trouble: str = ""  # why the last look failed
    moment: int | None = None  # ns UTC: as a recording was then; None: all of it

    @property
    def age(self) -> float | None:
        """Seconds since the machine was read; None for recordings and where nothing was read."""
        return time.time() - self.at if self.at is not None and self.origin.live else None


class Desk:
    """The source, the picture, and the talk about it."""

    def __init__(self, app: App[Any], jobs: Jobs, args: argparse.Namespace) -> None:
        from assistant.commands.ask import origin_of
        from assistant.inventory.target import reachable
        from tui.feed import Feed
        from tui.talk import Talk

        self.app, self.jobs, self.args = app, jobs, args
        self.others = reachable(args)  # the machines that can be looked at beside this one
        self.settings: Settings = args.settings
        self.lang: str = self.settings.output.lang
        self.origin: Origin = origin_of(args)
        self.before: Origin | None = None  # what `jump` goes back to
        self.here: Picture | None = None  # the newest of this machine, whatever is looked at now
        self.opened: dict[str, Picture] = {}  # recordings that were read, by the paths of their bundles; all of each
        self.picture = Picture(self.origin)
        self.paused = False  # no round begins by itself
        self._rules: RuleSet | None = None
        self._inventory: Inventory | None = None
        self._look: Job | None = None
        self.talk: Talk = Talk(self)
        self.feed: Feed = Feed(self)
        self.player: Player | None = None  # of a recording that was read
        self._timed: Seen | None = None  # of which the timeline was made, or is
        self._moment: Job | None = None
        self._wanted: int | None = None  # the moment that is to be shown

    def t(self, en: str, zh: str) -> str:
        """A word of ours in the language of the app."""
        return Text(en, zh).in_(self.lang)

    # --- knowledge that costs something to load: asked for in threads --------------------

    def ruleset(self) -> RuleSet:
        """The rules in force, loaded once."""
        if self._rules is None:
            from assistant.commands.rules import ruleset

            self._rules = ruleset(self.args, self.settings)
        return self._rules

    def inventory(self) -> Inventory:
        """The nodes that are known."""
        if self._inventory is None:
            from assistant.session.inventory import known

            self._inventory = known(self.settings, others=self.others)
        return self._inventory

    # --- the source -----------------------------------------------------------------------

    def open(self, origin: Origin) -> None:
        """Look at something else."""
        if origin == self.origin:
            return
        self.before, self.origin = self.origin, origin
        self.picture = Picture(origin)
        for job in (self._look, self._moment):
            if job is not None:
                job.stop()
        self._close_player()
        self.feed.clear()
        self.app.post_message(SourceChanged())
        self.app.post_message(PictureChanged(self.picture))
        self.look()

    def jump(self) -> bool:
        """Between the node and the recording, or whatever was looked at before; False when there was nothing."""
        there = self.before if self.before is not None else (None if self.origin.here else Origin())
        if there is None:
            return False
        self.open(there)
        return True

    # --- looking --------------------------------------------------------------------------

    def look(self) -> None:
        """Read the source again, beside the screen. One look at a time: a second wish while one is under way is the same."""
        if (
            self.picture.looking is not None
            and self._look is not None
            and self._look.running
            and not self._look.stopped
        ):
            return
        self._set(replace(self.picture, looking=(), begun=time.monotonic()))
        self._look = self.jobs.start("look", self._read, self._look_broke)

    def cancel_look(self) -> None:
        """Give up the look that is under way; what was known stays."""
        if self._look is not None:
            self._look.stop()
        self._set(replace(self.picture, looking=None))

    def tick(self) -> None:
        """Once a second: begin a round when one is due."""
        p = self.picture
        if self.paused or not self.origin.live or p.looking is not None:
            return
        if p.at is None or time.time() - p.at >= ROUND:
            self.look()

    def _read(self, job: Job) -> None:
        """In a thread: the whole look, from the probes to the diagnosis."""
        origin = self.origin
        found = self._looked(job, origin)
        if origin == self.origin:
            job.post(Brought(found))

    def _look_broke(self, job: Job, said: str) -> None:
        """What was known stays."""
        job.post(Brought(replace(self.picture, trouble=said, looking=None)))

    def _looked(self, job: Job, origin: Origin) -> Picture:
        from assistant.session.concluding import concluded
        from assistant.session.driver import Eyes
        from assistant.session.state import State
        from assistant.session.steps import Collect, Collected
        from assistant.session.talk import session_of
        from knowledge.errors import InputError

        def told(progress: Progress) -> None:
            job.check()
            if progress.waiting != self.picture.looking and origin == self.origin:
                job.post(Brought(replace(self.picture, looking=progress.waiting)))

        eyes = Eyes(
            self.settings, self.ruleset(), self.wish(), told, job.check, history=not self.args.no_history,
            others=self.others,
        )  # fmt: skip
        eyes.given = origin
        state, numbers = State(), []
        names = self._probes() if origin.live else ()
        try:
            for _ in range(2):
                job.check()
                event = eyes.do(Collect(origin, names, eyes.budget))
                assert isinstance(event, Collected)
                if event.seen.lost and not event.seen.observations:
                    raise InputError(
                        event.seen.lost.in_(self.lang)
                    )  # another machine that cannot be reached: what was known stays
                state, number = state.looked(event.seen)
                numbers.append(number)
                names = event.seen.offers
                if origin.live or not names:
                    break
        finally:
            eyes.hang_up()
        job.check()
        diagnosis = concluded(session_of(eyes), state, numbers, ())
        seen = _merged([state.seen[n] for n in numbers])
        return Picture(origin, seen.host, diagnosis, seen, time.time())

    def wish(self) -> Wish:
        """Which probes, and how long they may take."""
        from assistant.commands.check import wish

        return wish(self.args)

    def _probes(self) -> tuple[str, ...]:
        from probes.runner import select

        w = self.wish()
        return tuple(s.name for s in select(w.only, w.extra, w.without))

    def brought(self, picture: Picture) -> None:
        """In the app's thread: what a look brought."""
        if picture.origin == self.origin:
            self._set(picture)
            if picture.seen is not None and picture.looking is None and picture.seen is not self._timed:
                self._timed = picture.seen
                self.jobs.start("timeline", lambda job: self._time(job, picture))

    def _set(self, picture: Picture) -> None:
        if picture.origin.here and picture.diagnosis is not None and picture.looking is None:
            self.here = picture
        if (
            picture.origin.bundle
            and picture.diagnosis is not None
            and picture.looking is None
            and picture.moment is None
        ):
            self.opened[str(Path(picture.origin.folder, picture.origin.bundle))] = picture
        self.picture = picture
        self.app.post_message(PictureChanged(picture))

    # --- time -----------------------------------------------------------------------------

    def _time(self, job: Job, picture: Picture) -> None:
        """In a thread: what happened when, and the readings that a recording holds."""
        from assistant.live.recording import frames_of
        from assistant.live.timeline import Timeline
        from assistant.live.track import Track
        from knowledge.errors import GpudiagError

        origin, seen = picture.origin, picture.seen
        assert seen is not None
        trouble = ""
        try:
            frames = frames_of(str(Path(origin.folder, origin.bundle))) if origin.bundle else []
        except GpudiagError as error:
            frames, trouble = [], error.in_(self.lang)
        job.check()
        timeline = Timeline.of(seen, frames, self.lang)
        job.post(Timed(picture, timeline, Track.of(timeline.frames), trouble))

    def time_again(self) -> None:
        """The marks in the words of another language."""
        whole = self.player.whole if self.player is not None else self.picture
        if whole.seen is not None and whole.seen is self._timed:
            self.jobs.start("timeline", lambda job: self._time(job, whole))

    def timed(self, message: Timed) -> None:
        """In the app's thread: the recording can be looked at over time."""
        from tui.player import Player

        if message.picture.origin != self.origin or message.picture.seen is not self._timed:
            return
        if self.origin.here:
            self.feed.marks = message.timeline.marks
            return
        before = (
            self.player.moment if self.player is not None and self.player.moment < self.player.timeline.end else None
        )
        self._close_player()
        self.player = Player(self, message.timeline, message.track, message.picture)
        self.feed.opened(message.timeline, message.track)
        self.player.seek(self.player.timeline.end if before is None else before)

    def _close_player(self) -> None:
        if self.player is not None:
            self.player.close()
        self.player, self._wanted = None, None

    def show_moment(self, moment: int | None) -> None:
        """The picture as of a moment (ns UTC) of the recording, concluded beside the screen; None: all of it again."""
        self._wanted = moment
        if moment is None:
            if self.player is not None and self.picture.moment is not None:
                self._set(self.player.whole)
        elif self._moment is None or not self._moment.running or self._moment.stopped:
            self._moment = self.jobs.start("moment", self._as_of, self._moment_broke)

    def _as_of(self, job: Job) -> None:
        """In a thread: what follows from what was known at the moment that is wanted."""
        player, moment = self.player, self._wanted
        if player is not None and moment is not None:
            job.post(AsOf(self._known_at(job, player, moment)))

    def _moment_broke(self, job: Job, said: str) -> None:
        """Nothing is known of that moment."""
        if (player := self.player) is not None:
            job.post(AsOf(replace(player.whole, moment=self._wanted, diagnosis=None, trouble=said)))

    def _known_at(self, job: Job, player: Player, moment: int) -> Picture:
        from assistant.session.concluding import concluded
        from assistant.session.driver import Eyes
        from assistant.session.state import State
        from assistant.session.talk import session_of

        seen = player.timeline.at(moment)
        job.check()
        eyes = Eyes(self.settings, self.ruleset(), self.wish(), history=False)
        eyes.given = player.whole.origin
        state, number = State().looked(seen)
        return replace(
            player.whole, seen=seen, diagnosis=concluded(session_of(eyes), state, [number], ()), moment=moment
        )

    def as_of(self, picture: Picture) -> None:
        """In the app's thread: the picture of a moment. While another one is wanted already, that one is next."""
        if picture.origin != self.origin or self.player is None or self._wanted is None:
            return
        self._set(picture)
        if picture.moment != self._wanted:
            self._moment = self.jobs.start("moment", self._as_of, self._moment_broke)


class Brought(Message):
    """From the thread of a look; the app hands it to `Desk.brought`, which tells the screens."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.picture = picture


class Timed(Message):
    """From a thread: the recording over time; the app hands it to `Desk.timed`."""

    def __init__(self, picture: Picture, timeline: Timeline, track: Track, trouble: str = "") -> None:
        super().__init__()
        self.picture, self.timeline, self.track, self.trouble = picture, timeline, track, trouble


class AsOf(Message):
    """From a thread: the picture of a moment; the app hands it to `Desk.as_of`."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.picture = picture


def _merged(rounds: list[Seen]) -> Seen:
    """Several rounds of looking at one recording as one."""
    first, *others = rounds
    for r in others:
        first = replace(
            first, observations=(*first.observations, *r.observations), probes=(*first.probes, *r.probes), offers=(),
            notes=tuple(dict.fromkeys((*first.notes, *r.notes))), sources=tuple(dict.fromkeys((*first.sources, *r.sources))),
            cut=tuple(dict.fromkeys((*first.cut, *r.cut))), host=first.host or r.host, as_of=r.as_of or first.as_of,
            whole=first.whole or r.whole, boot_id=first.boot_id or r.boot_id, seconds=first.seconds + r.seconds,
        )  # fmt: skip
    return first
