"""Waiting for a history server no longer than a check can: what hangs is left behind in a thread of its own.

A server that accepts connections and then says nothing cannot be told from a slow one, and the PostgreSQL
library waits two seconds at the least. So all that is asked of one goes through a `Hurry`.

A second is one of a machine that is free. Where ten tasks want each CPU, this process and a server on the same machine get a tenth
of it: there a moment counts as a tenth of one. So it is the server that is found silent, and never the machine that was busy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from assistant.store.location import StoreError
from knowledge.language import Text

T = TypeVar("T")
BEFORE = 1.0  # seconds for all that is read before an answer
AFTER = 5.0  # seconds to write one check, after the answer
REST = 60.0  # seconds for which a server that failed is not asked again
MOST = 10.0  # times that a second is stretched on a busy machine: whoever waits for an answer there waits no longer for its history
LOOK = 0.05  # seconds from one look at how busy the machine is to the next, while something is waited for

_failed: dict[str, tuple[float, Text]] = {}


def failure(url: str, *, rest: float = REST) -> Text | None:
    """Why the server did not answer in the last `rest` seconds; None when it may be asked."""
    when, why = _failed.get(url, (0.0, Text("")))
    return why if url in _failed and time.monotonic() - when < rest else None


def failed(url: str, why: Text) -> None:
    """Remember, for this process, that the server cannot be reached."""
    _failed[url] = (time.monotonic(), why)


def answered(url: str) -> None:
    """It can be asked again."""
    _failed.pop(url, None)


def silent(seconds: float) -> Text:
    """The reason that a wait ended with."""
    return Text(f"the server does not answer within {seconds:g} s", f"服务器 {seconds:g} 秒内没有响应")


def crowd() -> float:
    """How many tasks that could run there are for each CPU of this machine now, 1 to `MOST`: so much slower is all that it does.

    The fourth field of /proc/loadavg (proc_loadavg(5)); 1 where there is none.
    """
    try:
        # 27.30 19.85 12.10 31/812 40231
        running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 1.0
    return min(MOST, max(1.0, running / (os.cpu_count() or 1)))


class Hurry:
    """One thread that works off calls, in order, and a time by which all of them must be done; `crowd` stretches it."""

    def __init__(self, seconds: float, crowd: Callable[[], float] = crowd) -> None:
        self._seconds, self._left, self._seen, self._crowd = seconds, seconds, time.monotonic(), crowd
        self._work: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.late = False  # a call did not come back; the thread is left behind
        Thread(target=self._run, name="history", daemon=True).start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._done.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._done.put((None, error))

    def __call__(self, work: Callable[[], T]) -> T:
        """What `work` gives, or raises. StoreError when time is up."""
        if not self.late:
            self._work.put(work)
            while not self.late:
                left = self._remaining()
                try:
                    found, error = self._done.get(timeout=min(LOOK, max(0.0, left)))
                except Empty:
                    self.late = left <= 0.0
                    continue
                if error is not None:
                    raise error
                return found  # type: ignore[no-any-return]
        raise StoreError(silent(self._seconds))

    def _remaining(self) -> float:
        """Seconds of a free machine that are left."""
        now = time.monotonic()
        self._left -= (now - self._seen) / self._crowd()
        self._seen = now
        return self._left

    def close(self, last: Callable[[], object] | None = None) -> None:
        """Do `last` without waiting for it, and end the thread once it is free."""
        if last is not None:
            self._work.put(last)
        self._work.put(None)
