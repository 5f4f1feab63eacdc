"""``watch --profile NAME``: stacks of the processes of a name, sampled at a low rate for as long as the watch runs.

py-spy reads them from outside without stopping them, a minute at a time; every five minutes what it saw goes into the
history. Nothing here is allowed to harm a watch: each trouble is a line.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING

from assistant.profiles.fold import folded

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.store.profiles import Sampled
    from assistant.watch.errand import Errand
    from probes.capture.model import Process

RATE = 1  # samples a second
MINUTE = 60.0  # seconds of one recording
BATCH = 5  # recordings that are written together: a process that writes costs a second of a core
PROCESSES = 16  # of one name, the oldest: each takes a py-spy of its own
BACKLOG = 50_000  # ten-second tables that wait for a history which takes none; older ones are let go


class Sampler:
    """Samples the processes called `names` until closed."""

    def __init__(
        self, settings: Settings, names: Sequence[str], complain: Callable[[str], None], rate: int = RATE,
        minute: float = MINUTE,
    ) -> None:  # fmt: skip
        from assistant.watch.errand import Errand

        self._url, self._host = settings.history.url, settings.machine.name
        self._names, self._rate, self._minute = tuple(dict.fromkeys(names)), rate, minute
        self._complain = complain
        self._errand: Errand = Errand(__name__, complain, "batch of stacks", "batches of stacks")
        self._ended = Event()
        self._known: dict[str, dict[int, Process]] = {}
        self._waiting: dict[str, list[Sampled]] = {}
        self._thread = Thread(target=self._work, name="stacks", daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def close(self, seconds: float, patient: Callable[[], bool]) -> None:
        """End; what was sampled is written, as long as `Errand.close` waits. What is lost is said."""
        from assistant.watch.errand import DEADLINE

        self._ended.set()
        began = time.monotonic()
        while self._thread.is_alive() and time.monotonic() - began < (DEADLINE if patient() else seconds):
            self._thread.join(0.1)
        if self._thread.is_alive():
            self._complain("--profile: the watch ended before the newest stacks were read")
        if any(self._waiting.values()):
            self._send()
        self._errand.close(max(1.0, began + seconds - time.monotonic()), patient)

    def _work(self) -> None:
        rounds = 0
        while not self._ended.is_set():
            begun = time.monotonic()
            try:
                self._sample(self._processes(rounds % BATCH == 0))
            except Exception as error:  # noqa: BLE001 - a watch goes on whatever its profile meets
                self._complain(f"--profile: {type(error).__name__}: {error}")
            rounds += 1
            if rounds % BATCH == 0:
                self._write()
            self._ended.wait(max(0.0, begun + self._minute - time.monotonic()))

    def _sample(self, processes: Mapping[int, Process]) -> None:
        """A minute of them, side by side."""
        from probes.capture.stacks.stacks import Recording

        if not processes:
            return
        recording = Recording(list(processes), self._rate, self._minute)
        recording.start()
        self._ended.wait(self._minute)
        documents = recording.stop()
        offset, boot = time.time_ns() - time.monotonic_ns(), _boot_id()
        for pid, document in documents.items():
            process = processes[pid]
            if document.get("error") and not self._ended.is_set():  # cut short, it may have nothing yet
                self._complain(f"--profile: process {pid} ({process.name}): {document['error']}")
            title = " ".join(process.command) or process.name
            rows = folded(document, boot, pid, process.start, title, offset)
            for name, known in self._known.items():
                if pid in known:
                    self._waiting.setdefault(name, []).extend(rows)

    def _processes(self, search: bool) -> dict[int, Process]:
        """Those of all names. The whole table of processes is searched only now and then, and for what has none left."""
        from probes.capture.whom import identity

        for name in self._names:
            alive = {pid: p for pid, p in self._known.get(name, {}).items() if identity.same(p)}
            self._known[name] = self._found(name) if search or not alive else alive
        return {pid: p for known in self._known.values() for pid, p in known.items()}

    def _found(self, name: str) -> dict[int, Process]:
        from knowledge.errors import UsageError
        from probes.capture.whom import target

        try:
            found = [t.process for t in target.find(names=[name])]
        except UsageError:  # none runs now: it may again
            return {}
        return {p.pid: p for p in sorted(found, key=lambda p: (p.start, p.pid))[:PROCESSES]}

    def _write(self) -> None:
        if self._errand.busy:
            for rows in self._waiting.values():
                del rows[:-BACKLOG]
        elif any(self._waiting.values()):
            self._send()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        data = {name: rows for name, rows in waiting.items() if rows}
        self._errand.send(pickle.dumps((self._url, self._host or _host(), data)))


def _boot_id() -> str:
    from probes.live_host import boot_id

    return boot_id()


def _host() -> str:
    import platform

    return platform.node()


def main() -> None:
    """Write what stands on standard input."""
    from assistant.store.location import StoreError, parse
    from assistant.store.profiles import keep
    from assistant.store.write import opened

    url, host, data = pickle.load(sys.stdin.buffer)
    location = parse(url)
    if location is None:
        return
    try:
        store = opened(location)
        try:
            for name, sampled in data.items():
                keep(store, host, name, sampled)
        finally:
            store.close()
    except StoreError as error:
        print(f"the profile was not kept: {error.said.en}")
