"""Whose conversation it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from knowledge.lazy import lazy

try:  # Python's own: `hashlib` loads OpenSSL, which takes longer than the whole of `--version`
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found,unused-ignore]  # from 3.12
except ImportError:
    try:
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256 as _sha256

_OTHERS = lazy("[^a-z0-9]+")


NOBODY = "none"  # the channel of a process without a terminal


class Key(NamedTuple):
    """Whose conversation it is. Any text: nothing of it is used as a path."""

    surface: str  # cli, tui, slack
    channel: str = ""  # a terminal, a channel
    thread: str = ""
    user: str = ""

    @property
    def lasts(self) -> bool:
        """Whether anybody could go on with it."""
        return self.channel != NOBODY

    @property
    def stem(self) -> str:
        """Name of its file: readable, and different for different keys."""
        slug = _OTHERS.sub("-", "-".join(self).lower()[:200])[:60].strip("-")
        digest = _sha256(json.dumps(self).encode()).hexdigest()[:20]
        return f"{slug}-{digest}" if slug else digest


def terminal_key(thread: str = "", surface: str = "cli") -> Key:
    """The conversation of this terminal; with `thread` the one of that name, whatever the terminal.

    A terminal's name is used again by the next login: its session, with the time that began and the boot it is
    of, tells the two apart. Without a terminal (cron, a pipe, a step of CI) nothing is remembered, unless the
    conversation has a name: two jobs of one user would answer for each other's machines.
    """
    user = str(os.getuid())
    return Key(surface, "", thread, user) if thread else Key(surface, _terminal(), "", user)


def _terminal() -> str:
    for stream in (0, 2, 1):
        try:
            if not os.isatty(stream):
                continue
            name = os.ttyname(stream)
        except OSError:  # in a container the terminal may lie outside of what can be seen
            name = f"device {os.fstat(stream).st_rdev}"
        session = os.getsid(0)
        return f"{name} {session} {_started(session)} {_boot()}"
    return NOBODY


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, UnicodeDecodeError):
        return ""


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
