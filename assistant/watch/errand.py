"""Work in a short-lived process: what it needs for that would double what `watch` weighs.

The process gets its orders on its standard input, pickled by ours, and prints a complaint, if it has one. Only one
runs at a time, with a deadline: a history on a dead file system holds nobody up. What was refused is tried again, in its order,
when the next comes or `again` is called.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from threading import Thread

DEADLINE = 60.0  # seconds
WAITING = 8  # orders that wait for a history that takes none; then the oldest is given up
TRIES = 20  # of one order: what is refused for so long is refused for what it is


class Errand:
    """Runs `main` of `module` on what it is given; `complain` hears of trouble, in a thread. `one`, `many`: what an order is called."""

    def __init__(self, module: str, complain: Callable[[str], None], one: str = "round", many: str = "rounds") -> None:
        self._module = module
        self._complain = complain
        self._one, self._many = one, many
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: deque[bytes] = deque()
        self._tries = 0  # of the oldest
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether the last one is still under way."""
        return self._thread is not None and self._thread.is_alive()

    def send(self, data: bytes) -> None:
        """Do `data`, behind what waits already."""
        if len(self._waiting) >= WAITING:
            self._give_up("more waits for the history than is kept")
        self._waiting.append(data)
        self.again()

    def again(self) -> None:
        """Go on with what waits, if any does and none is under way."""
        if self._waiting and not self.busy:
            self._thread = Thread(target=self._work, name="history", daemon=True)
            self._thread.start()

    def close(self, seconds: float, patient: Callable[[], bool] = lambda: False) -> None:
        """Let the last one end within `seconds`; within DEADLINE while `patient` says that nobody waits for the end. What is lost is said."""
        began = time.monotonic()
        while self._waiting and (self.busy or not self._tries):
            if time.monotonic() - began >= (DEADLINE if patient() else seconds):
                break
            self.again()  # an order that came while the one before it ended is not begun yet
            if (thread := self._thread) is not None:
                thread.join(0.1)
        self._closed = True
        if (child := self._child) is not None:
            child.kill()
        if left := len(self._waiting):
            said = f"one {self._one} is" if left == 1 else f"{left} {self._many} are"
            self._complain(f"{said} missing in the history: the watch ended before that was written")

    def _work(self) -> None:
        while self._waiting:
            data = self._waiting[0]
            if not self._done(data):
                self._tries += 1
                if self._tries >= TRIES and self._waiting and self._waiting[0] is data:
                    self._give_up(f"it was refused {TRIES} times")
                return
            if self._waiting and self._waiting[0] is data:  # else it was given up meanwhile
                self._waiting.popleft()
            self._tries = 0

    def _give_up(self, why: str) -> None:
        self._waiting.popleft()
        self._tries = 0
        self._complain(f"one {self._one} is missing in the history: {why}")

    def _done(self, data: bytes) -> bool:
        """Whether there was no complaint."""
        # -P and our own path: neither the current folder nor its absence decides what is imported.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {self._module} import main; main()"
        argv = [sys.executable, "-P", "-c", code]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            self._child = child
            if self._closed:
                child.kill()
            try:
                said, _ = child.communicate(data, DEADLINE)
            except subprocess.TimeoutExpired:
                child.kill()
                self._complain(f"the history did not take a check within {DEADLINE:.0f} s")
                return False
            finally:
                self._child = None
        text = said.decode("utf-8", "replace").strip()
        if (text or child.returncode) and not self._closed:
            self._complain(text or f"the history could not be written: the process ended with {child.returncode}")
            return False
        return True
