"""A real pseudo-terminal with `gpudiag chat` in it, and what a person sees and types."""

from __future__ import annotations

import errno
import os
import re
import select
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from tests.command_server import CommandServer

WAIT = 60.0  # seconds until a test gives up: a machine that is busy is slow, never wrong
PROMPT = "> "
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]|\r|\x07")


class Terminal:
    """One process on a terminal of its own."""

    def __init__(self, server: CommandServer, args: Sequence[str], env: Mapping[str, str], columns: int = 100) -> None:
        environ = {**env, "TERM": "xterm", "COLUMNS": str(columns)}
        self._master, screen = os.openpty()
        try:
            self._command = server.begin(args, [screen] * 3, env=environ, session=True)
        finally:
            os.close(screen)
        self.seen = ""  # everything that was on the screen, without escapes
        self._raw = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._command.kill()
        self._command.wait()
        os.close(self._master)

    @property
    def raw(self) -> str:
        """What was written to the terminal, escapes and all."""
        return self._raw.decode(errors="replace")

    def type(self, text: str) -> None:
        """Keys."""
        os.write(self._master, text.encode())

    def say(self, sentence: str) -> str:
        """A sentence and Enter; what appears until the next prompt."""
        before = len(self.seen)
        self.type(sentence + "\r")
        self.until("\n", before)
        return self.prompt(before)

    def prompt(self, begin: int | None = None) -> str:
        """What appears until the next prompt, which stands at the beginning of a line."""
        begin = len(self.seen) if begin is None else begin
        return self._wait(lambda: self.seen[begin:].endswith(f"\n{PROMPT}"), "a prompt", begin)

    def until(self, text: str, begin: int = 0) -> str:
        """What appears until `text` does."""
        return self._wait(lambda: text in self.seen[begin:], repr(text), begin)

    def interrupt(self, text: str) -> None:
        """Ctrl-C until `text` appears.

        Python's readline loses one that comes in the moment before it waits for a key (its select has no way to
        notice); a person presses again.
        """
        for _ in range(10):
            self.type("\x03")
            pause = time.monotonic() + 2
            while time.monotonic() < pause:
                self._read()
                if text in self.seen:
                    return
        raise AssertionError(f"{text!r} did not appear; this did: {self.seen!r}")

    def end(self) -> int:
        """Wait until the process has ended; its exit code."""
        until = time.monotonic() + WAIT
        while self._read():
            if time.monotonic() > until:
                raise AssertionError(f"it did not end; this is on the screen: {self.seen!r}")
        return self._command.wait()

    def _wait(self, done: object, what: str, begin: int) -> str:
        assert callable(done)
        until = time.monotonic() + WAIT
        while not done():
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"{what} did not appear; this did: {self.seen[begin:]!r}")
        return self.seen[begin:]

    def _read(self) -> bool:
        """Take in what is there; False when the other side has gone."""
        if not select.select([self._master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self._raw += data
        self.seen = _ESCAPES.sub("", self._raw.decode(errors="ignore"))
        return bool(data)
