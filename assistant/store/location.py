"""Where the history lies: what ``history_url`` means, and what kind of file system holds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from knowledge.errors import ConfigError
from knowledge.language import Text

OFF = "off"
FILE_NAME = "history.db"
_PLATFORM: str = sys.platform  # through a name: the type checker would drop the branches of other platforms

# Magic numbers of statfs(2), linux/magic.h and the file systems' own sources. A write-ahead log needs memory that
# all its users share, which none of these gives between two machines; what FUSE and 9p lead to is not known.
NETWORK = {
    0x6969: "nfs", 0xFF534D42: "cifs", 0xFE534D42: "smb2", 0x517B: "smb", 0x5346414F: "afs", 0x6B414653: "kafs",
    0x00C36400: "ceph", 0x0BD00BD0: "lustre", 0x47504653: "gpfs", 0x19830326: "beegfs", 0x7461636F: "ocfs2",
    0x01161970: "gfs2", 0xAAD7AAEA: "panfs", 0x73757245: "coda", 0x65735546: "fuse", 0x01021997: "9p",
}  # fmt: skip


class StoreError(Exception):
    """The history cannot be used. `said` is why, in one line; the diagnosis never depends on it."""

    def __init__(self, said: Text) -> None:
        super().__init__(said.en)
        self.said = said


class Location(NamedTuple):
    """A parsed ``history_url``: a file for SQLite, or the address of a PostgreSQL server."""

    path: Path | None = None
    url: str = ""  # with the driver named: postgresql+psycopg://...

    @property
    def shown(self) -> str:
        """For people; without a password."""
        from assistant.config import without_password

        return str(self.path) if self.path else without_password(self.url)


def default_path() -> Path:
    """``history.db`` in the user's data folder.

    On Linux that is the XDG base directory specification's answer, written out because platformdirs takes
    longer to import than the answer to a question about the history; a test holds the two equal.
    """
    if _PLATFORM == "linux":
        base = os.environ.get("XDG_DATA_HOME", "").strip()
        return (Path(base) if base else Path.home() / ".local" / "share") / "gpudiag" / FILE_NAME
    from platformdirs import user_data_path

    return user_data_path("gpudiag") / FILE_NAME


def parse(url: str) -> Location | None:
    """The place that ``history_url`` names; None when it is ``off``. ConfigError when it names none."""
    text = url.strip()
    if text == OFF:
        return None
    if not text:
        return Location(default_path())
    scheme, mark, rest = text.partition("://")
    if mark and scheme in ("sqlite", "sqlite+pysqlite"):
        path = Path(rest.removeprefix("/")).expanduser()
        if rest.startswith("/") and path.is_absolute():
            return Location(path)
        raise ConfigError(
            f"history_url {url!r} names no absolute path",
            hint="four slashes begin one: sqlite:////var/lib/gpudiag/history.db",
        )
    if mark and scheme in ("postgresql", "postgres", "postgresql+psycopg") and rest:
        return Location(url=f"postgresql+psycopg://{rest}")
    raise ConfigError(
        f"history_url {without_credentials(text)!r} is not understood",
        hint="understood are sqlite:////var/lib/gpudiag/history.db, postgresql://user@host:5432/name, and off",
    )


def without_credentials(text: str) -> str:
    """`text` without what stands before an ``@``: it may hold a password."""
    return text.rpartition("@")[2]


def magic(path: Path) -> int | None:
    """The number by which the kernel calls the file system that holds `path`; None when it does not tell."""
    if _PLATFORM != "linux":
        return None
    import ctypes

    # struct statfs begins with f_type, a machine word on every Linux platform that has GPUs; 256 bytes are more
    # than all of it. `os.statvfs` leaves the field out.
    buffer = (ctypes.c_long * 32)()
    try:
        statfs = ctypes.CDLL(None, use_errno=True).statfs
    except (OSError, AttributeError):
        return None
    if statfs(os.fsencode(path), ctypes.byref(buffer)) != 0:
        return None
    return int(buffer[0]) & 0xFFFFFFFF


def journal_mode(number: int | None) -> str:
    """``wal`` on a local file system; ``delete``, the rollback journal, on a shared one and where nobody knows."""
    return "delete" if number is None or number in NETWORK else "wal"
