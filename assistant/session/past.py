"""Sentences that were typed, newest last, kept beside those of ``gpudiag chat`` and found again by both."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from assistant.session.terminal import FILE, REMEMBERED
from knowledge.whole import private_folder

LONGEST = 2000  # characters of a line that is kept: what is longer was pasted
_SIZE = 4 << 20  # bytes that are read: the file of another program may have this name


class Past:
    """The sentences of one person, in the order in which they were said."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` keeps them, for its owner only; None: nowhere."""
        self._file = folder / FILE if folder is not None else None
        self.lines: list[str] = []
        self._at: int | None = None  # which one is shown; None: the line that is being typed
        self._typed = ""

    def load(self) -> None:
        """Read what was kept. What cannot be read is not there."""
        if self._file is None:
            return
        with suppress(OSError):
            with self._file.open("rb") as file:
                raw = file.read(_SIZE)
            kept = (line.strip() for line in raw.decode("utf-8", "replace").splitlines())
            self.lines = [line for line in kept if line and line != "_HiStOrY_V2_"][-REMEMBERED:] + self.lines

    def add(self, text: str) -> None:
        """It was said. One line of it is kept on disk; pasted logs are not."""
        self._at = None
        if not text or (self.lines and self.lines[-1] == text):
            return
        self.lines = [*self.lines, text][-REMEMBERED:]
        if self._file is None or "\n" in text or len(text) > LONGEST:
            return
        with suppress(OSError):
            private_folder(self._file.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._file, flags, 0o600)
            try:
                os.write(handle, f"{text}\n".encode("utf-8", "replace"))
            finally:
                os.close(handle)

    def older(self, typed: str) -> str | None:
        """The sentence before the one that is shown, of those that begin like what was typed; None: there is none."""
        if self._at is None:
            self._typed = typed
        start = len(self.lines) if self._at is None else self._at
        return self._go(range(start - 1, -1, -1))

    def newer(self) -> str | None:
        """The sentence behind; behind the newest, what was typed. None while nothing older is shown."""
        if self._at is None:
            return None
        found = self._go(range(self._at + 1, len(self.lines)))
        if found is None:
            self._at = None
            return self._typed
        return found

    def leave(self) -> None:
        """What is shown is being changed: it is what is typed now."""
        self._at = None

    def _go(self, places: range) -> str | None:
        begun = self._typed.casefold()
        here = self.lines[self._at] if self._at is not None else None
        for n in places:
            if self.lines[n].casefold().startswith(begun) and self.lines[n] != here:
                self._at = n
                return self.lines[n]
        return None
