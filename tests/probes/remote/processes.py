"""Processes of this machine, found by a number that stands in their arguments."""

from __future__ import annotations

import secrets
import time
from pathlib import Path


def marked() -> str:
    """Seconds to sleep, such as nobody else sleeps."""
    return f"{600 + secrets.randbelow(100)}.{secrets.randbelow(10**9):09d}"


def there(mark: str) -> list[int]:
    """The processes in whose arguments `mark` is a word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


def gone(mark: str, wait: float = 0.0) -> bool:
    """Whether there is none, at the latest after `wait` seconds."""
    until = time.monotonic() + wait
    while there(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not there(mark)
