"""GPUs of this machine as they are, frame by frame, for as long as somebody looks.

One child asks the driver (`gpu_samples --stream`) and one thread reads what it prints; another finds out, seldom, who the
processes are. Nobody waits for the driver: while nothing comes, frames go on coming with the last good values.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assistant.live.frames import LOST, Frame
from assistant.live.ticks import HANGS_AFTER, NO_GPU, Ticks, broke_off, no_driver, nothing_said
from assistant.live.who import Who

if TYPE_CHECKING:
    from assistant.config import Settings
    from knowledge.language import Text
    from probes.follow import Follower
    from probes.hang_memory import HangMemory

COLLECTOR = "gpu_samples"
NO_DRIVER_AGAIN = 30.0  # seconds until a driver is looked for again
LOST_AGAIN = 60.0  # seconds until a driver with a lost GPU is opened anew: one that was reset comes back only then
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds before a child that died is started again
STEADY = 60.0  # seconds after which a child that dies is no sequel of the one before
_MOST = 200  # characters of what a collector said last


class Stream:
    """The frames of this machine. `on_frame` is called from a thread of the stream's own, about every `every` seconds."""

    def __init__(self, settings: Settings, on_frame: Callable[[Frame], None], *, every: float = 1.0) -> None:
        self._settings, self._on_frame, self._every = settings, on_frame, every
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._child: Follower | None = None

    @property
    def running(self) -> bool:
        """Whether frames come."""
        return self._thread is not None and self._thread.is_alive() and not self._closed.is_set()

    def start(self) -> None:
        """Begin; once more after `close`, too."""
        if self.running:
            return
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._closed,), name="live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End, without waiting for it: the child is ended by the thread, and leaves by itself if that is gone."""
        self._closed.set()
        child = self._child
        if child is not None:
            child.wake()

    def join(self, timeout: float) -> bool:
        """Wait for the end after `close`; whether it came."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not (self._thread is not None and self._thread.is_alive())

    # --- in the thread --------------------------------------------------------------------

    def _run(self, closed: threading.Event) -> None:
        from probes.follow import Ended

        ticks, who = Ticks(self._settings.machine.name), Who(self._settings)
        deaths = 0
        try:
            while not closed.is_set():
                begun = time.monotonic()
                try:
                    pause, said = self._follow(ticks, who, closed)
                    deaths = 0
                except Ended as ended:
                    deaths = deaths + 1 if time.monotonic() - begun < STEADY else 1
                    pause = PAUSES[min(deaths, len(PAUSES)) - 1]
                    said = broke_off(str(ended)[:_MOST], pause, ended.hangs)
                self._rest(ticks, closed, pause, said)
        finally:
            who.close()

    def _follow(self, ticks: Ticks, who: Who, closed: threading.Event) -> tuple[float, Text | None]:
        """One child, from its start to its end: seconds to pause before the next, and what to say meanwhile (None: nothing).

        Ended when it dies.
        """
        from probes.follow import Follower

        args = ("--stream", "--every", f"{self._every:g}")
        child = self._child = Follower(COLLECTOR, *args, root=self._settings.machine.root, memory=self._memory())
        last = time.monotonic()
        try:
            while not closed.is_set():
                silent = time.monotonic() - last
                raw = child.line(self._every if silent >= HANGS_AFTER else HANGS_AFTER + self._every - silent)
                if closed.is_set():
                    break
                if raw is None:
                    waited = time.monotonic() - last
                    if waited >= HANGS_AFTER:
                        self._on_frame(ticks.silent(time.time_ns(), nothing_said(waited)))
                    continue
                last = time.monotonic()
                line, frame = _understood(raw, ticks)
                if "status" in line:
                    return NO_DRIVER_AGAIN, no_driver(str(line.get("detail", "")))
                if line.get("count") == 0:
                    return NO_DRIVER_AGAIN, NO_GPU
                if frame is not None:
                    who.wanted(ticks.pids)
                    ticks.know(who.of(ticks.pids))
                    self._on_frame(frame)
                    if last - child.begun > LOST_AGAIN and any(g.state == LOST for g in frame.gpus):
                        return 0.0, None
            return 0.0, None
        finally:
            self._child = None
            child.close()

    def _rest(self, ticks: Ticks, closed: threading.Event, pause: float, said: Text | None) -> None:
        """Between two children: where there was a driver its last good values go on; where there is none, one frame says so."""
        until = time.monotonic() + pause
        while not closed.is_set():
            if said is not None:
                frame = ticks.silent(time.time_ns(), said)
                self._on_frame(frame)
                said = said if frame.gpus else None
            left = until - time.monotonic()
            if left <= 0 or closed.wait(left if said is None else min(left, self._every)):
                return

    def _memory(self) -> HangMemory | None:
        """What hung before: a child beside one that cannot be killed would hang as well."""
        from assistant.config import state_folder
        from probes.hang_memory import HangMemory
        from probes.live_host import boot_id

        boot = boot_id()
        return HangMemory(state_folder(self._settings) / "hangs.json", boot) if boot else None


def _understood(raw: bytes, ticks: Ticks) -> tuple[dict[str, Any], Frame | None]:
    """The line, and its frame if it has one. Ended when it is none that the collector prints."""
    from probes.follow import Ended

    try:
        line = json.loads(raw)
        return line, ticks.frame(line)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Ended(f"printed what is not understood ({error!r:.80})") from None
