"""The terminal below the app: given back as it was, whatever ends the app, and let go of when it has gone itself.

Textual's own driver draws through a thread with a short queue. When the terminal vanishes (a closed window, a lost ssh
connection), that thread dies of the first write, the queue fills, and the app waits for ever; and where nobody delivers a
SIGHUP its reading thread spins on an end of file. Here writes to a terminal that has gone are dropped, and a guard of its own
thread ends the app, if need be without its help.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from contextlib import suppress
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from collections.abc import Callable

_PLATFORM: str = sys.platform  # through a name: the type checker would drop the branches of other platforms
GRACE = 4.0  # seconds that the app has to end by itself: `tui.work.LEAVE`, and what leaving costs on a busy machine
EVERY = 1.0  # seconds between two looks at whether the terminal is still there
SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
# Leave the alternate screen; wrap lines, show the cursor; no mouse, no focus, no bracketed paste, no kitty keys.
_RESTORE = "\x1b[?1049l\x1b[?7h\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u"

# Textual reads Alt with a digit as what one terminal on a Mac types with it (£ for Alt-3): here it is a screen.
for _digit in "123456789":
    ANSI_SEQUENCES_KEYS.pop(f"\x1b{_digit}", None)  # type: ignore[attr-defined]  # it is a dict


class _Lenient:
    """A stream whose reader may go: then writes come to nothing."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream does, while it does."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As the stream does, while it does."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Terminal(LinuxDriver):
    """Textual's driver over a terminal that may vanish."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file: Any = _Lenient(self._file)

    def _run_input_thread(self) -> None:
        """Read keys in a daemon thread: where nobody told it to stop, Textual's own would keep the process alive."""
        self._key_thread = Thread(target=self._read_keys, name="keys", daemon=True)
        self._key_thread.start()

    def _read_keys(self) -> None:
        """A terminal that cannot be read any more is no bug: the guard ends the app."""
        with suppress(OSError, ValueError):
            self.run_input_thread()


class Guard:
    """Ends the app on a signal or when its terminal has gone: asks it first, and does not wait for ever."""

    def __init__(self, leave: Callable[[int], None], *, last: Callable[[], None], terminal: int | None) -> None:
        """`leave(code)` is called in this thread or the main one, and must only ask. `last` is what is done before the process
        is ended from here. `terminal`: the descriptor to watch, a terminal's or that of a pipe from a browser; None for none."""
        self._leave, self._last, self._terminal = leave, last, terminal
        self._before: dict[int, Any] = {}
        self._attributes: list[Any] | None = None
        self._asked, self._over = Event(), Event()
        self._code = 0
        self._thread = Thread(target=self._watch, name="terminal", daemon=True)

    def __enter__(self) -> Guard:
        if self._terminal is not None:
            with suppress(termios.error):
                self._attributes = termios.tcgetattr(self._terminal)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` is a wish
                self._before[number] = signal.signal(number, self._told)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._asked.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def code(self) -> int:
        """The exit code that a signal asks for; 0 when there was none."""
        return self._code

    def _told(self, number: int, _: object) -> None:
        self._ask(128 + number)

    def _ask(self, code: int) -> None:
        if not self._asked.is_set():
            self._code = code
            self._asked.set()
            self._leave(code)

    def _watch(self) -> None:
        while not self._asked.wait(EVERY):
            if self._terminal is not None and gone(self._terminal):
                self._ask(128 + signal.SIGHUP)
        if self._over.wait(GRACE):
            return
        # The app does not end: its thread hangs in a call, or in a write to a terminal that takes nothing.
        self._last()
        self._restore()
        os._exit(self._code)

    def _restore(self) -> None:
        if self._attributes is None or self._terminal is None or gone(self._terminal):
            return
        with suppress(OSError, termios.error, ValueError):
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._attributes)
            if sys.__stderr__ is not None:
                descriptor = sys.__stderr__.fileno()
                os.set_blocking(descriptor, False)
                os.write(descriptor, _RESTORE.encode())


def gone(descriptor: int) -> bool:
    """Whether a terminal has been hung up, or nobody writes into a pipe any more."""
    if _PLATFORM != "linux":  # elsewhere a terminal cannot be polled
        return False
    poll = select.poll()
    try:
        poll.register(descriptor, 0)
        return any(event & (select.POLLHUP | select.POLLNVAL | select.POLLERR) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True
