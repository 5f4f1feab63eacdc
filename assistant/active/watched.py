"""A machine whose active tests are watched: their lines are told as they come, and they can be broken off."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Any

from knowledge.observation import Status
from probes import _children
from probes.host import CallKind, Host, Reply
from probes.live_host import COLLECTORS, environment

CAP = 32 << 20  # bytes of one document
PATIENCE = 12.0  # seconds that the collector has for ending its test and saying what came of it
TICK = 0.5  # seconds between two occasions to show how far it is
Told = Callable[[dict[str, Any]], None]  # one line of the collector's standard error; empty: time has gone by


class Watched:
    """`inner`, with the collector `active` run where it can be watched. The time of the machine is set anew after tests."""

    def __init__(self, inner: Host, told: Told, cancel: Event, environ: Mapping[str, str] | None = None) -> None:
        """`environ`: where the children's environment is taken from, by default this process's."""
        self._env = environment(os.environ if environ is None else environ)
        self.inner, self.told, self.cancel = inner, told, cancel
        self.as_of = inner.as_of

    @property
    def name(self) -> str:
        """Of the machine."""
        return self.inner.name

    def now(self) -> None:
        """What is read from here on belongs to this moment."""
        self.as_of = time.time_ns()

    def read(self, path: str) -> Reply:
        """A file."""
        return self.inner.read(path)

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """A command that only reads."""
        return self.inner.run(argv, deadline=deadline)

    def files(self, pattern: str) -> list[str]:
        """Paths."""
        return self.inner.files(pattern)

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        """A collector's document; that of ``active`` while it is told what its test prints."""
        if name != "active":
            return self.inner.snapshot(name, *args, deadline=deadline)
        blank = Reply(CallKind.SNAPSHOT, (name, *args), started=time.time_ns())
        own = max(deadline - 0.5, deadline * 0.7)
        argv = [sys.executable, "-I", "-S", "-B", str(COLLECTORS / "active.py"), "--deadline", f"{own:.3f}", *args]
        try:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._env,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Reply(
                CallKind.SNAPSHOT, blank.call, Status.FAILED, detail=f"it cannot be started: {error.strerror or error}"
            )
        try:
            return self._followed(child, blank, deadline)
        finally:
            _children.kill_group(child.pid)  # whatever happened: nothing of a test outlives it
            with suppress(subprocess.TimeoutExpired):
                child.wait(2.0)

    def _followed(self, child: subprocess.Popen[bytes], blank: Reply, deadline: float) -> Reply:
        assert child.stdout is not None
        assert child.stderr is not None
        out, lines, until, asked = bytearray(), b"", time.monotonic() + deadline, False
        tick = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for pipe in (child.stdout, child.stderr):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, pipe is child.stdout)
            while selector.get_map():
                now = time.monotonic()
                if (self.cancel.is_set() or now >= until) and not asked:
                    asked, until = True, now + PATIENCE
                    child.send_signal(signal.SIGTERM)
                elif now >= until:
                    break
                if now >= tick:
                    tick = now + TICK
                    self.told({})
                for key, _ in selector.select(0.1):
                    part = os.read(key.fd, 1 << 16)
                    if not part:
                        selector.unregister(key.fileobj)
                    elif key.data:
                        out += part[: max(0, CAP - len(out))]
                    else:
                        *whole, lines = (lines + part).split(b"\n")
                        lines = lines[-(1 << 16) :]
                        for line in whole:
                            self._tell(line)
        status, why = (Status.OK, "") if out.strip() else (Status.FAILED, "the collector came to no end")
        code = child.poll()
        return Reply(
            CallKind.SNAPSHOT,
            blank.call,
            status,
            bytes(out),
            0 if out.strip() else code,
            started=blank.started,
            detail=why,
        )

    def _tell(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(said, dict):
            self.told(said)
