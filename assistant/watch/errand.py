"""Work in a short-lived process: what it needs for that would double what `watch` weighs.

The process gets its orders on its standard input, pickled by ours, and prints a complaint, if it has one. Only one
runs at a time, with a deadline: a history on a dead file system holds nobody up.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from threading import Thread

DEADLINE = 60.0  # seconds


class Errand:
    """Runs `main` of `module` on what it is given; `complain` hears of trouble, in a thread."""

    def __init__(self, module: str, complain: Callable[[str], None]) -> None:
        self._module = module
        self._complain = complain
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """Whether the last one is still under way."""
        return self._thread is not None and self._thread.is_alive()

    def send(self, data: bytes) -> bool:
        """Begin with `data`; False, and nothing happens, while one is under way."""
        if self.busy:
            return False
        self._thread = Thread(target=self._run, args=(data,), name="history", daemon=True)
        self._thread.start()
        return True

    def close(self, seconds: float) -> None:
        """Let the last one end."""
        if self._thread is not None:
            self._thread.join(seconds)
        if self._child is not None:
            self._child.kill()

    def _run(self, data: bytes) -> None:
        # -P and our own path: neither the current folder nor its absence decides what is imported.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {self._module} import main; main()"
        argv = [sys.executable, "-P", "-c", code]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            self._child = child
            try:
                said, _ = child.communicate(data, DEADLINE)
            except subprocess.TimeoutExpired:
                child.kill()
                self._complain(f"the history did not take a check within {DEADLINE:.0f} s")
                return
            finally:
                self._child = None
        text = said.decode("utf-8", "replace").strip()
        if text or child.returncode:
            self._complain(text or f"the history could not be written: the process ended with {child.returncode}")
