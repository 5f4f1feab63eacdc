"""Where threads stand in the kernel, looked at again and again by /proc: costs the targets nothing, and sees waits longer than a look apart.

For machines without perf, for users that may not use it, and for threads that are switched so often that perf would slow them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from probes.capture.offcpu import _offcpu_standing
from probes.capture.offcpu._offcpu_spans import Spans, Standing

HZ: Final = 50
MOST: Final = 256  # threads that are looked at: the main ones first
_DUTY = 5  # looking takes at most a fifth of the time between two looks
_AGAIN = 1.0  # s until threads that began are looked for


class Samples:
    """Looks from `start` to `stop`, at most `seconds`."""

    tool = "/proc"

    def __init__(self, pids: Sequence[int], seconds: float) -> None:
        self.spans = Spans(pids)
        self.began = self.ended = self.looks = 0
        self._pids, self._seconds, self._over = pids, seconds, threading.Event()
        self.last: dict[int, Standing] = {}  # how each thread stood last
        self._open: dict[int, tuple[int, Standing]] = {}  # since when a thread stands so
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self.began = time.monotonic_ns()
        self._thread.start()

    def stop(self) -> None:
        """End; `spans` is whole then."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(5)

    def _run(self) -> None:
        until, again = time.monotonic() + self._seconds, 0.0
        watched: list[tuple[int, int]] = []
        while not self._over.is_set() and time.monotonic() < until:
            at = time.monotonic()
            if at >= again:
                per = max(1, MOST // max(1, len(self._pids)))
                watched = [(pid, tid) for pid in self._pids for tid in _offcpu_standing.tasks(pid)[:per]]
                again = at + _AGAIN
            for pid, tid in watched:
                self._look(pid, tid)
            self.looks += 1
            self._over.wait(max(1 / HZ - (time.monotonic() - at), _DUTY * (time.monotonic() - at)))
        self.ended = time.monotonic_ns()
        for tid, (since, stood) in self._open.items():
            self._span(tid, since, self.ended, stood)

    def _look(self, pid: int, tid: int) -> None:
        at = time.monotonic_ns()
        now = _offcpu_standing.one(pid, tid)
        if now is not None:
            self.last[tid] = now
        since, was = self._open.get(tid, (self.began if not self.looks else at, None))
        if was is not None and now is not None and (now.state, now.functions) == (was.state, was.functions):
            return
        if was is not None:
            self._span(tid, since, at, was)
            since = at
        if now is None or now.state in "XZ":
            self._open.pop(tid, None)
        else:
            self._open[tid] = since, now

    def _span(self, tid: int, since: int, until: int, stood: Standing) -> None:
        if stood.state != "R":  # on a CPU or ready: a look does not tell which
            self.spans.span(stood.pid, tid, since, until - since, self.spans.stack(stood.functions), stood.state)
        else:
            self.spans.seen(stood.pid, tid, since)
