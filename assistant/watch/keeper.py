"""Writes rounds to the history in a short-lived process: what it needs for that would double what `watch` weighs.

The process gets a round on its standard input, pickled by ours, and prints a complaint, if it has one. Only one runs
at a time, with a deadline: a history on a dead file system holds nobody up.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.diagnosis import Diagnosis
    from assistant.machine import Look
    from rules.model import Rule

DEADLINE = 60.0  # seconds


class Keeper:
    """Called with each round that is worth keeping; `complain` hears of trouble, in a thread."""

    def __init__(self, settings: Settings, rules: Iterable[Rule], complain: Callable[[str], None]) -> None:
        self._history = settings.history
        self._lang = settings.output.lang
        self._rules = tuple(rules)
        self._complain = complain
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self, look: Look, diagnosis: Diagnosis) -> None:
        """Keep a round; nothing happens while the last one is still being written."""
        if self._thread is not None and self._thread.is_alive():
            return
        data = pickle.dumps(
            (
                self._history.url,
                look.host,
                diagnosis,
                look.results,
                self._history.days,
                look.boot_id,
                self._rules,
                self._lang,
            )
        )
        self._thread = Thread(target=self._write, args=(data,), name="history", daemon=True)
        self._thread.start()

    def close(self, seconds: float) -> None:
        """Let the last one end."""
        if self._thread is not None:
            self._thread.join(seconds)
        if self._child is not None:
            self._child.kill()

    def _write(self, data: bytes) -> None:
        # -P and our own path: neither the current folder nor its absence decides what is imported.
        code = f"import sys; sys.path[:] = {sys.path!r}; from assistant.watch.keeper import main; main()"
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


def main() -> None:
    """Write the round on standard input."""
    from assistant.store import remember

    url, host, diagnosis, results, days, boot_id, rules, lang = pickle.load(sys.stdin.buffer)
    complaint = remember(url, host, diagnosis, results, "watch", days=days, boot_id=boot_id, rules=rules, lang=lang)
    print(complaint or "")
