"""The readings of the source: as a stream brings them, or as the moment of a player has them.

Everything here is called in the app's thread; the stream is a job that only posts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from textual.message import Message

from tui.messages import MomentChanged

if TYPE_CHECKING:
    from assistant.live.frames import Frame
    from assistant.live.timeline import Mark, Timeline
    from assistant.live.track import Track
    from tui.desk import Desk
    from tui.work import Job

EVERY = 1.0  # seconds between two readings


class FrameCame(Message):
    """From the stream: a reading of this machine."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame


class Feed:
    """What is to be shown of the GPUs: one frame, and the history up to it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._job: Job | None = None
        self.track: Track | None = None
        self.frame: Frame | None = None
        self.until = 0  # ns UTC: the right edge of plots
        self.every = round(EVERY * 1e9)  # ns between two readings
        self.marks: tuple[Mark, ...] = ()  # what happened, oldest first
        self.still = False  # one moment: there is no history to draw

    @property
    def live(self) -> bool:
        """Whether readings come by themselves: of this machine they do."""
        return self._desk.origin.here

    def clear(self) -> None:
        """Something else is looked at."""
        if self._job is not None:
            self._job.stop()
        self._job, self.track, self.frame, self.until, self.marks, self.still = None, None, None, 0, (), False

    # --- this machine ---------------------------------------------------------------------

    def start(self) -> None:
        """Read this machine once a second from now on; again is the same."""
        if self._desk.origin.here and self._job is None:
            self._job = self._desk.jobs.start("stream", self._stream)

    def _stream(self, job: Job) -> None:
        """In a thread: keeps the stream, which is a child process, as long as the job is wanted."""
        from assistant.live.stream import Stream

        stream = Stream(self._desk.settings, lambda frame: job.post(FrameCame(frame)), every=EVERY)
        stream.start()
        try:
            while not job.wait(3600):
                pass
        finally:
            stream.close()

    def came(self, frame: Frame) -> None:
        """A reading of this machine."""
        from assistant.live.track import Track

        if not self._desk.origin.here:
            return
        if self.track is None:
            self.track = Track()
        self.track.add(frame)
        self.frame, self.until = frame, frame.at
        self._desk.app.post_message(MomentChanged(frame, frame.at))

    # --- a recording ----------------------------------------------------------------------

    def opened(self, timeline: Timeline, track: Track) -> None:
        """A recording was read."""
        self.track, self.marks, self.still = track, timeline.marks, len(timeline.frames) <= 1
        times = [f.at for f in timeline.frames]
        gaps = sorted(b - a for a, b in pairwise(times))
        self.every = gaps[len(gaps) // 2] if gaps else round(EVERY * 1e9)

    def seek(self, timeline: Timeline, moment: int) -> None:
        """Show the recording as it was at `moment`."""
        from assistant.live.track import untold

        frame = timeline.frame(moment)
        if frame is None and timeline.frames:
            frame = untold(timeline.frames[0], moment)
        self.frame, self.until = frame, moment
        self._desk.app.post_message(MomentChanged(frame, moment))
