"""The frames of this machine over a time, for a recording."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from assistant.live.stream import Stream

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.live.frames import Frame

GIVE_UP = 10.0  # seconds without any word from the driver: nothing is worth waiting for
_LEAVE = 2.0  # seconds for the child to end


def gathered(
    settings: Settings, seconds: float, *, every: float = 1.0, told: Callable[[float], None] = lambda _: None
) -> list[Frame]:
    """What comes within `seconds` of the first frame, oldest first. Ends early where there is no GPU to read.

    `told` hears how many seconds have gone.
    """
    came: SimpleQueue[Frame] = SimpleQueue()
    stream = Stream(settings, came.put, every=every)
    frames: list[Frame] = []
    begun = time.monotonic()
    stream.start()
    try:
        while (gone := time.monotonic() - begun) < (seconds if frames else GIVE_UP + 1):
            told(gone)
            if not frames[-1].gpus if frames else gone > GIVE_UP:
                break  # no driver, or one that does not even start
            try:
                frame = came.get(timeout=0.2)
            except Empty:
                continue
            begun = begun if frames else time.monotonic()
            frames.append(frame)
    finally:
        stream.close()
        stream.join(_LEAVE)
    return frames
