"""Listens to the kernel log as it is written: a line of interest brings the next check forward.

/dev/kmsg where it may be read, else ``journalctl -kf`` or ``dmesg --follow``. The check itself reads the log again with
the probe; nothing is concluded here. Costs nothing while the kernel is silent.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread

import re2

KMSG = "/dev/kmsg"
FOLLOWERS = (("journalctl", "-kf", "-n", "0", "-o", "cat", "--no-pager"), ("dmesg", "--follow-new"))
_PAUSE = 30.0  # seconds before a follower that ended is started again


class Follower:
    """A thread that calls `wake` for each burst of interesting lines."""

    def __init__(
        self,
        triggers: Sequence[str],
        wake: Callable[[], None],
        root: str = "",
        heard: Callable[[bytes], None] | None = None,
    ) -> None:
        """`triggers` are RE2 patterns, those of the log formats. `root` is where the machine's file system is mounted.

        `heard` is given whatever is written: a record of /dev/kmsg, or a line.
        """
        self._pattern = re2.compile("|".join(f"(?:{t})" for t in triggers).encode())
        self._wake = wake
        self._told = heard or (lambda _: None)
        self._root = root.rstrip("/")
        self._path = self._root + KMSG
        self._stop = Event()
        self._ear, self._mouth = os.pipe2(os.O_CLOEXEC)  # ends the wait for the kernel
        self._child: subprocess.Popen[bytes] | None = None
        self.source = ""  # what is listened to; empty when nothing can be
        self._thread = Thread(target=self._run, name="kernel-log", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        os.write(self._mouth, b".")
        if self._child is not None:
            with suppress(OSError):
                self._child.kill()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                self._follow_command()
            else:
                try:
                    with suppress(OSError, ValueError):  # a file system that cannot seek, a regular file in tests
                        os.lseek(handle, 0, os.SEEK_END)
                    self.source = self._path
                    self._follow(handle)
                finally:
                    os.close(handle)
            self._stop.wait(_PAUSE)

    def _follow(self, handle: int) -> None:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self._ear, select.POLLIN)
        while not self._stop.is_set():
            poll.poll()
            if self._stop.is_set():
                return
            try:
                record = os.read(handle, 8192)
            except BlockingIOError:
                continue
            except BrokenPipeError:  # overwritten before we came: there may have been anything
                self._wake()
                continue
            except OSError:
                return
            if not record:  # a regular file: look again later
                self._stop.wait(0.2)
            else:
                self._hear(record)

    def _hear(self, record: bytes) -> None:
        self._told(record)
        if self._pattern.search(record):
            self._wake()

    def _follow_command(self) -> None:
        for argv in FOLLOWERS:
            if shutil.which(argv[0]) is None or self._stop.is_set():
                continue
            if self._root:
                if argv[0] != "journalctl":
                    continue
                argv = (argv[0], f"--root={self._root}", "-f", *argv[2:], "_TRANSPORT=kernel")
            with subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            ) as child:  # fmt: skip
                self._child = child
                if self._stop.is_set():
                    child.kill()
                begun = time.monotonic()
                assert child.stdout is not None
                self.source = argv[0]
                for line in child.stdout:
                    self._hear(line)
                self._child = None
            if self._stop.is_set() or time.monotonic() - begun > _PAUSE:
                return
            self.source = ""
