"""What was known at a moment that somebody points at in a history of readings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.live.timeline import Timeline

if TYPE_CHECKING:
    from assistant.live.frames import Frame
    from assistant.live.track import Track
    from assistant.session.state import Seen


def seen_then(seen: Seen, track: Track, like: Frame, at: int) -> Seen | None:
    """What had been seen by `at` (ns UTC), with the readings of that moment; None where there are none. `seen`: the last
    look, which tells the events; `like`: a frame with the GPUs of the track."""
    frame = track.frame(like, at)
    if frame is None:
        return None
    # A second frame behind the moment: at its end a recording is told as a whole, and this one goes on.
    later = replace(frame, at=max(at, frame.at, seen.as_of or 0) + 1)
    return Timeline.of(seen, (frame, later)).at(max(at, frame.at))
