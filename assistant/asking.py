"""What commands that act with consent share: whether anybody can be asked, and how they are broken off."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread


def on_terminal() -> bool:
    """Whether somebody can be asked: what is asked stands on stderr, and is answered on stdin."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def interruptible(cancel: Event) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP set `cancel`: what runs ends, with all that it started, and is answered of as far as it came.
    A second Ctrl-C is meant."""

    def end(number: int, frame: object) -> None:
        del frame
        if cancel.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        cancel.set()

    if current_thread() is not main_thread():
        yield
        return
    before = {n: signal.signal(n, end) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
