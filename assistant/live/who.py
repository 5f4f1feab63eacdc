"""Who the processes on the GPUs are: name, user, pod, job and rank, from the `processes` collector.

It reads all of /proc, so it is asked only when there is a process that is not known yet, and at times in case a number was
given to another process. It runs beside the readings, in a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.live.frames import Proc

EVERY = 5.0  # seconds between two looks at the least
ANYWAY = 60.0  # seconds after which those that are known are looked at again
DEADLINE = 8.0  # seconds for one look
MOST = 64  # processes that are asked for by number; those that hold a device file are told anyway


class Who:
    """What is known of processes by their number. All methods return at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Mapping[int, Proc] = {}
        self._asked: frozenset[int] = frozenset()
        self._at = float("-inf")  # when it was asked last
        self._thread: threading.Thread | None = None
        self._closed = False

    def of(self, pids: Set[int]) -> Mapping[int, Proc]:
        """Those of `pids` that are known."""
        known = self._known
        return {pid: known[pid] for pid in pids if pid in known}

    def wanted(self, pids: Set[int]) -> None:
        """Find out who `pids` are, unless that is known or was tried a moment ago."""
        age = time.monotonic() - self._at
        if not pids or self._closed or (self._thread is not None and self._thread.is_alive()):
            return
        if age < EVERY or (age < ANYWAY and pids <= self._asked):
            return
        self._at, self._asked = time.monotonic(), frozenset(pids)
        self._thread = threading.Thread(target=self._look, args=(sorted(pids)[:MOST],), name="live-who", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nobody asks any more."""
        self._closed = True

    def _look(self, pids: list[int]) -> None:
        from assistant.live.facts import people_of
        from knowledge.identity import resolve
        from probes.base import Context
        from probes.live_host import LiveHost
        from probes.parse import processes_snapshot

        machine = self._settings.machine
        args = ["--interval", "0", *(word for pid in pids for word in ("--pid", str(pid)))]
        with LiveHost(machine.name or "localhost", root=machine.root) as host:
            reply = host.snapshot("processes", *args, deadline=DEADLINE)
        if reply.text and not self._closed:
            found = processes_snapshot.FORMAT.parse(reply.text, Context("processes", machine.name))
            self._known = {p.pid: p for p in people_of(resolve(found))}
