"""Messages to systemd, sd_notify(3); nothing where it does not listen."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress

USUAL = 15.0  # seconds between two signs of life where systemd does not say how many it wants


class Notify:
    """The line to systemd."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Reads NOTIFY_SOCKET and WATCHDOG_USEC of `environ`."""
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        microseconds = environ.get("WATCHDOG_USEC", "")
        self.every = min(int(microseconds) / 3e6, USUAL) if microseconds.isdecimal() and int(microseconds) else USUAL
        self._alive = float("-inf")

    def __call__(self, text: str) -> None:
        """Send one assignment, such as READY=1."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.setblocking(False)
            line.sendto(text.replace("\n", " ").encode(), self._address)

    def alive(self) -> None:
        """A sign of life, no more often than is wanted."""
        now = time.monotonic()
        if now - self._alive >= self.every:
            self._alive = now
            self("WATCHDOG=1")
