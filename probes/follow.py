"""A collector that goes on: one child that prints a line at each look, read without ever waiting for it.

Like every child of ours it has a session of its own, a clean environment and no input. One that cannot be killed sleeps in the
driver: it is given up and remembered, and no other is started beside it.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from threading import Lock

from knowledge.text import excerpt
from probes import _children
from probes.hang_memory import HangMemory
from probes.host import Call, CallKind, iso
from probes.live_host import COLLECTORS, PACKAGED, environment

MOST = 8 << 20  # bytes of one line: more is no line of ours
_CHUNK = 1 << 18


class Ended(Exception):
    """The child has ended, or was not started: why, in words. `hangs`: an earlier one hangs in the driver still."""

    def __init__(self, why: str, *, hangs: bool = False) -> None:
        super().__init__(why)
        self.hangs = hangs


class Follower:
    """One child, from its start to its end. `line` and `close` belong to one thread, `wake` to any."""

    def __init__(self, name: str, *args: str, root: str = "", memory: HangMemory | None = None) -> None:
        """Start the collector. ValueError when there is none of that name, Ended when it cannot be started or must not be."""
        path = COLLECTORS / f"{name}.py"
        if not name.isidentifier() or not path.is_file():
            raise ValueError(f"there is no collector {name!r}")
        self._call: Call = (CallKind.SNAPSHOT, (name, *args))
        self._memory = memory
        if memory is not None and (refusal := memory.refusal(self._call)):
            raise Ended(refusal.why, hangs=refusal.hangs)
        bare = [] if name in PACKAGED else ["-S"]
        rooted = ["--root", root] if root else []
        argv = [sys.executable, "-I", *bare, "-B", str(path), *rooted, *args]
        self.begun = time.monotonic()
        self._at = iso(time.time_ns()) or ""
        try:
            self._child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(os.environ),
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Ended(f"{name} cannot be started: {error.strerror or error}") from None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._out, self._errors = self._child.stdout, self._child.stderr
        self._buffer = bytearray()
        self._said = b""  # the end of what it wrote to standard error
        self._alarm, self._bell = os.pipe()
        self._open, self._lock = True, Lock()
        self._poll = select.poll()
        for number in (self._out.fileno(), self._errors.fileno(), self._alarm):
            os.set_blocking(number, False)
            self._poll.register(number, select.POLLIN)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def line(self, timeout: float) -> bytes | None:
        """The next line, without its end; None when there is none within `timeout` seconds, or after `wake`. Ended when it has."""
        until = time.monotonic() + timeout
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                found = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return found
            ready = self._poll.poll(max(until - time.monotonic(), 0) * 1000)
            if not ready:
                return None
            if any(number == self._alarm for number, _ in ready):
                with suppress(OSError):
                    os.read(self._alarm, 64)
                return None
            self._take(dict(ready))

    def _take(self, ready: dict[int, int]) -> None:
        if self._errors.fileno() in ready:
            part = self._read(self._errors.fileno())
            self._said = (self._said + part)[-4096:]
            if not part:
                self._poll.unregister(self._errors.fileno())
        if self._out.fileno() in ready:
            part = self._read(self._out.fileno())
            self._buffer += part
            if not part:
                raise Ended(self._why())
            if len(self._buffer) > MOST:
                raise Ended("it printed a line without an end")

    @staticmethod
    def _read(number: int) -> bytes:
        try:
            return os.read(number, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            return b""

    def _why(self) -> str:
        """How it ended, with its last words."""
        try:
            code: int | None = self._child.wait(0.5)
        except subprocess.TimeoutExpired:
            code = None
        how = (
            "closed its output"
            if code is None
            else f"was ended by signal {-code}"
            if code < 0
            else f"ended with {code}"
        )
        last = excerpt(self._said.decode("utf-8", "replace").strip().rpartition("\n")[2], 200)
        return f"{how}{last and f': {last}'}"

    def wake(self) -> None:
        """Let a `line` that waits return at once. From any thread."""
        with self._lock, suppress(OSError):
            if self._open:  # a number that was closed may be another file's by now
                os.write(self._bell, b".")

    def close(self) -> str:
        """End it: SIGTERM, then SIGKILL. Where it hangs when it could not be killed, else empty. Takes half a second at most."""
        stuck = ""
        for end, grace in ((self._child.terminate, _children.TERM_GRACE), (self._child.kill, _children.KILL_GRACE)):
            if self._child.poll() is not None:
                break
            end()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(grace)
        if self._child.poll() is None:
            where = _children.where(self.pid)
            stuck = f"process {self.pid} cannot be killed ({where})"
            if self._memory is not None:
                found = _children.Stuck(self.pid, _children.start_time(self.pid), where)
                self._memory.end(self._call, self._at, found)
            self._child.returncode = -9  # Popen would wait for it when it is collected
        self._out.close()
        self._errors.close()
        with self._lock:
            for number in (self._alarm, self._bell) if self._open else ():
                os.close(number)
            self._open = False
        return stuck
