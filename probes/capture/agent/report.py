"""What the agent is told and what it tells: small files in a folder that it shares with the capturing side.

`orders.json` is read once; `status.json` is replaced at each change; `stop` asks for the end ("abandon" in it: nothing is
written any more); `beat` is touched by the other side, and the agent gives up when it is not.
"""

# ruff: noqa: PTH104, PTH106, PTH108, PTH116, PTH118, PTH123, SIM105 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import errno
import json
import os
import threading
import time
from typing import Any

LARGE = (
    "pilot.json",
    "pilot.json.tmp",
    "trace.json",
    "trace.json.tmp",
    "memory.pickle",
    "result.json",
)  # kineto renames its files
MADE = ("start.py", "agent.py", "orders.json", "status.json", "status.new", "stop", "beat", *LARGE)
FULL = (errno.ENOSPC, errno.EDQUOT)
TICK = 0.05  # seconds between two looks at the folder


def clocks() -> dict[str, int]:
    """The system's clock and the monotonic one at one moment, ns: the closest of several looks, for a thread may wait in between."""
    best, found = 1 << 62, {}
    for _ in range(9):
        before = time.monotonic_ns()
        system = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best:
            best, found = after - before, {"realtime": system, "monotonic": (before + after) // 2}
    return found


class Refused(Exception):
    """What is asked is not done. `code` is stable; `words` are details in English."""

    def __init__(self, code: str, words: str = "") -> None:
        super().__init__(code, words)
        self.code, self.words = code, words


class Stopped(Exception):
    """The other side wants the end, or is gone. `abandon`: nothing is written any more."""

    def __init__(self, abandon: bool) -> None:
        super().__init__(abandon)
        self.abandon = abandon


class Report:
    """The folder, seen from within the target. OSError when it is not there."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(self.path("orders.json"), encoding="utf-8") as file:
            self.orders: dict[str, Any] = json.load(file)
        self.phase, self.events, self.iterations = "", 0, 0
        self.leaving = threading.Event()  # the interpreter ends: stop at once
        self.orphaned = False  # nobody is there who would clean up
        self.finishing = False  # the window is over: only "abandon" still counts
        self._beat, self._beat_at = 0, time.monotonic_ns()
        self._written = 0

    def path(self, name: str) -> str:
        """Of a file in the folder."""
        return os.path.join(self.folder, name)

    def tell(self, phase: str, code: str = "", words: str = "") -> None:
        """Replace the status. Without effect when the folder is gone, or full; of a failure is told all the same."""
        self.phase = phase
        status = {"phase": phase, "code": code, "words": words[:2000], "events": self.events, "iterations": self.iterations,
                  "pid": os.getpid(), "at": time.monotonic_ns()}  # fmt: skip
        for again in (False, True):
            try:
                self.write("status.json", json.dumps(status))
                return
            except OSError as e:
                if e.errno not in FULL:
                    self.orphaned = True
                    return
                if again or phase != "failed":
                    return
                self._drop((*LARGE, "agent.py", "start.py"))  # room for a word

    def write(self, name: str, text: str) -> None:
        """A file that is there as a whole or not at all."""
        new = self.path("status.new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:  # fmt: skip
            file.write(text)
        os.rename(new, self.path(name))

    def check(self) -> None:
        """Stopped when the other side says so, is gone, or this process ends."""
        if self.leaving.is_set():
            raise Stopped(True)
        try:
            with open(self.path("stop"), encoding="utf-8") as file:
                abandon = "abandon" in file.read(20)
            if abandon or not self.finishing:
                raise Stopped(abandon)
        except FileNotFoundError:
            pass
        self._look()

    def _look(self) -> None:
        """Stopped when the other side is gone."""
        now = time.monotonic_ns()
        try:
            beat = os.stat(self.path("beat")).st_mtime_ns
        except OSError:
            self.orphaned = True
            raise Stopped(True) from None
        if beat != self._beat:
            self._beat, self._beat_at = beat, now
        elif now - self._beat_at > self.orders["beat_ns"]:
            self.orphaned = True
            raise Stopped(True)

    def wait(self, until: int, *events: threading.Event) -> None:
        """Sleep until then (monotonic ns), or until one of the events; Stopped as `check`."""
        while True:
            self.check()
            left = until - time.monotonic_ns()
            if left <= 0 or any(e.is_set() for e in events):
                return
            pause = min(left / 1e9, TICK)
            if events:
                events[0].wait(pause)
            else:
                self.leaving.wait(pause)
            if time.monotonic_ns() - self._written > 250_000_000:
                self._written = time.monotonic_ns()
                self.tell(self.phase)

    def linger(self) -> None:
        """Until the other side has taken what there is and removed the folder; when it is gone, the folder is removed here."""
        self.orders["beat_ns"] = self.orders["linger_ns"]
        while not self.orphaned:
            try:
                self._look()
            except Stopped:
                break
            time.sleep(TICK)
        self.clean()

    def clean(self) -> None:
        """Remove the folder."""
        self._drop(MADE)
        try:
            os.rmdir(self.folder)
        except OSError:
            pass

    def _drop(self, names: tuple[str, ...]) -> None:
        for name in names:
            try:
                os.unlink(self.path(name))
            except OSError:
                pass
