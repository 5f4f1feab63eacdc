"""The samplers of a capture: threads and node (`job_samples`), GPUs (`gpu_samples`), started before the window, ended after it.

Both are children with a deadline, as every collector: a driver that hangs costs its own values and no more. They touch
nothing in the target.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from knowledge.observation import Status
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.host import Reply
from probes.live_host import LiveHost

THREADS, GPUS = "gpudiag/job-samples/1", "gpudiag/gpu-samples/1"
HZ, GPU_HZ = 50.0, 20.0
LONGEST = 600.0  # seconds: a window of iterations ends when they have passed, or never
SPARE = 4.0  # seconds beyond the window until a sampler is ended by force
GRACE = 3.0  # seconds that a sampler has to print, and a hung one to be given up
STARTING = 2.0  # seconds until a child can take SIGTERM, at most: its interpreter starts
_STATUS = {
    Status.UNSUPPORTED: "unsupported",
    Status.DENIED: "denied",
}


@dataclass(frozen=True, slots=True)
class Samples:
    """The two documents; one that could not be had is ``{"schema", "status", "detail"}``."""

    threads: dict[str, Any]
    gpus: dict[str, Any]


class Recording:
    """Samples processes and GPUs from `start` to `stop`. One at a time; not to be used again."""

    def __init__(
        self, host: LiveHost, pids: Sequence[int], *, runtimes: Mapping[int, tuple[int, int]] | None = None, hz: float = HZ,
        gpu_hz: float = GPU_HZ, longest: float = LONGEST, gpus: bool = True,
    ) -> None:  # fmt: skip
        """`runtimes` is where `_PyRuntime` lies in each process (start, end): without it no wait for its lock is seen.

        `longest` seconds after `start` the samplers end by themselves.
        """
        threads = ["--hz", f"{hz:g}", "--seconds", f"{longest:g}"]
        for pid in pids:
            threads += ["--pid", str(pid)]
        for pid, (start, end) in (runtimes or {}).items():
            threads += ["--runtime", f"{pid}:{start:x}-{end:x}"]
        deadline = longest + SPARE
        self._threads = _Sampler(host, "job_samples", threads, THREADS, deadline)
        # no pids and no times in its arguments: what hung before is remembered by them
        gpu = ["--hz", f"{gpu_hz:g}", "--seconds", f"{longest:g}"]
        self._gpus = _Sampler(host, "gpu_samples", gpu, GPUS, deadline) if gpus else None

    def start(self) -> None:
        """Begin. Returns at once; the first sample is some tenths of a second later."""
        self._threads.start()
        if self._gpus:
            self._gpus.start()

    def ready(self, seconds: float = 1.5) -> bool:
        """Wait until both look, or have ended: starting the driver may take a second. Whether they did in time."""
        until = time.monotonic() + seconds
        running = [s for s in (self._threads, self._gpus) if s]
        while not all(s.looks for s in running):
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return True

    def stop(self) -> Samples:
        """End both and take what they have, within `GRACE` seconds. Never raises for what a sampler did."""
        running = [s for s in (self._threads, self._gpus) if s]
        for sampler in running:
            sampler.end()
        until = time.monotonic() + GRACE
        for sampler in running:
            sampler.join(until)
        missing = {"schema": GPUS, "status": "unsupported", "detail": "GPUs were not asked for"}
        return Samples(self._threads.document(), self._gpus.document() if self._gpus else missing)

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Sampler:
    """One collector that runs beside us."""

    def __init__(self, host: LiveHost, name: str, args: Sequence[str], schema: str, deadline: float) -> None:
        self._name, self._schema = name, schema
        self._lock = Lock()
        self._pid = 0
        self._reply: Reply | None = None
        self._thread = Thread(target=self._run, args=(host, args, deadline), daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def looks(self) -> bool:
        """Whether it has begun to look (it takes its own name then), or has ended."""
        pid = self._pid
        if self._thread.ident is not None and not self._thread.is_alive():
            return True
        try:
            return bool(pid) and Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() == self._name
        except OSError:
            return False

    def end(self) -> None:
        """Ask it for what it has."""
        if self._thread.ident is None:
            return
        until = time.monotonic() + STARTING
        while self._thread.is_alive() and not _listens(self._pid) and time.monotonic() < until:
            time.sleep(0.01)
        with self._lock, suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGTERM)

    def join(self, until: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(max(until - time.monotonic(), 0.0))

    def document(self) -> dict[str, Any]:
        """What it printed, or why there is nothing."""
        reply = self._reply
        if reply is None:
            return self._none("failed", f"{self._name} did not end")
        try:
            found = json.loads(reply.text) if reply.data else None
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("schema") == self._schema:
            return found
        why = reply.detail or excerpt(reply.stderr.decode("utf-8", "replace"), 300) or "nothing was printed"
        return self._none(_STATUS.get(reply.status, "failed"), why)

    def _none(self, status: str, why: str) -> dict[str, Any]:
        return {"schema": self._schema, "status": status, "detail": why}

    def _run(self, host: LiveHost, args: Sequence[str], deadline: float) -> None:
        def on_start(pid: int) -> None:
            with self._lock:
                self._pid = pid

        reply = host.snapshot(self._name, *args, deadline=deadline, on_start=on_start)
        with self._lock:  # its number may be used again from here on
            self._pid = 0
        self._reply = reply


def _listens(pid: int) -> bool:
    """Whether a process takes SIGTERM itself: before, it would end without a word."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace") if pid else ""
    except OSError:
        return False
    caught = status.partition("\nSigCgt:")[2].split()[:1]
    return bool(caught) and bool(int(caught[0], 16) >> (signal.SIGTERM - 1) & 1)
