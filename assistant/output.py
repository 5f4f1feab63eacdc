"""Writing the answer: stdout is data, stderr is talk."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from knowledge.errors import GpudiagError

if TYPE_CHECKING:
    from threading import Timer


class WriteError(GpudiagError):
    """The answer cannot be written to standard output."""


def write(text: str) -> None:
    """`text` to stdout. A reader that has gone is no error: the exit code still tells the answer.

    WriteError when it cannot be written: the disk is full, stdout is closed.
    """
    if sys.stdout is None:  # `>&-`
        raise WriteError("cannot write the answer: standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except OSError as error:
        unwritable(error)


def unwritable(error: OSError) -> NoReturn:
    """Raise WriteError for what the system said of stdout."""
    silence()
    raise WriteError(f"cannot write the answer: {error.strerror or error}") from None


def silence() -> None:
    """Send the rest of stdout nowhere: its reader has gone, and the interpreter flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, quiet: bool = False) -> None:
    """Lines to stderr, unless `quiet`."""
    if not quiet and sys.stderr is not None:
        from knowledge.text import clean

        sys.stderr.write("".join(clean(line) + "\n" for line in text.split("\n")))
        sys.stderr.flush()


class Progress:
    """A line on stderr that is rewritten, on a terminal only, and only once the work takes long."""

    def __init__(self, quiet: bool = False, after: float = 0.7) -> None:
        from time import monotonic

        self._clock = monotonic
        self._after = after  # seconds: shorter work needs no comfort
        self._next = monotonic() + after
        self._on = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._shown = False
        self._text = ""
        self._timer: Timer | None = None

    def __call__(self, text: str) -> None:
        """Show `text`, at most five times a second; what comes too early is shown once it has taken long."""
        if not self._on:
            return
        self._text = text
        early = self._next - self._clock()
        if early <= 0:
            self._draw()
        elif self._timer is None:  # whoever waits for one thing calls once, and may wait long
            from threading import Timer

            self._timer = Timer(early, self._late)
            self._timer.daemon = True
            self._timer.start()

    def _late(self) -> None:
        self._timer = None
        if self._text and self._clock() >= self._next:
            self._draw()

    def _draw(self) -> None:
        from knowledge.text import clean

        self._next = self._clock() + 0.2
        self._shown = True
        sys.stderr.write("\r\x1b[K" + clean(self._text)[:100])
        sys.stderr.flush()

    def again(self) -> None:
        """Other work begins."""
        self._next = self._clock() + self._after

    def done(self) -> None:
        """Take the line away."""
        self._text = ""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
