"""A history file that is written, with the standard library alone: `check` remembers, and pays for no SQLAlchemy.

The statements are plain SQL that a server understands too (`assistant.store.server` gives the same `Store`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from assistant.store.location import journal_mode, magic
from assistant.store.read import TIMEOUT
from knowledge.whole import private_folder

VACUUM_FROM = 64 << 20  # bytes that must be free, and half of the file, before it is written anew


class Transaction(Protocol):
    """Statements that are kept together or not at all. Parameters are named: ``:name``."""

    for_update: str  # what ends a SELECT of rows that this transaction is to keep from others

    def rows(self, sql: str, about: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """What a SELECT gives."""

    def touched(self, sql: str, about: Mapping[str, Any]) -> int:
        """Run a statement; how many rows it touched."""

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement once for each row."""


class Store(Protocol):
    """Tables of the newest revision, to write to."""

    def transaction(self, durable: bool = False) -> AbstractContextManager[Transaction]:
        """Committed when the block ends, undone when it raises. `durable`: on the disk then, so that a power failure keeps it."""

    def vacuum(self, always: bool = False) -> None:
        """Give back what is free, when that is most of it."""

    def close(self) -> None:
        """Let go of it."""


class FileStore:
    """A file. Each transaction takes the write lock at once: none is undone half way by another's.

    `journal` is ``wal`` or ``delete``; by default the file system decides.
    """

    def __init__(self, path: Path, journal: str = "") -> None:
        self._path, self._journal = path, journal

    def close(self) -> None:
        """Nothing is held between transactions."""

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Transaction]:
        """See `Store`. sqlite3.Error when the file refuses."""
        connection = connected(self._path, self._journal)
        try:
            if durable:  # EXTRA: with a rollback journal, that it is gone is on the disk too
                connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            yield _FileTransaction(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()  # SQLite undoes what was not committed

    def vacuum(self, always: bool = False) -> None:
        """Write the file anew when most of it is empty."""
        connection = connected(self._path, self._journal)
        try:
            pages, free, size = (
                int(connection.execute(f"PRAGMA {n}").fetchone()[0])
                for n in ("page_count", "freelist_count", "page_size")
            )
            if always or (free * 2 > pages and free * size > VACUUM_FROM):
                connection.execute("VACUUM")
        except sqlite3.OperationalError:
            pass  # somebody reads, or there is no room for a second copy: the next time will do
        finally:
            connection.close()


class _FileTransaction:
    """A `Transaction` of a file: BEGIN IMMEDIATE has locked all of it."""

    for_update = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, about: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, about).fetchall()

    def touched(self, sql: str, about: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, about).rowcount

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.executemany(sql, rows)


def connected(path: Path, journal: str = "") -> sqlite3.Connection:
    """A connection that writes; it begins no transaction by itself."""
    connection = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
    try:
        _prepare(connection, journal or journal_mode(magic(path.parent)))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, wanted: str) -> None:
    """Journal and flushing.

    With a write-ahead log, synchronous=NORMAL: a commit is in the kernel's hands when it returns, so it survives
    the death of the process; a power failure may take the last ones with it, but never damages the file. With a
    rollback journal only FULL keeps the file sound, and each commit waits for the disk.
    """
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != wanted:
        (mode,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")


def create_file(path: Path) -> None:
    """An empty file that only its owner can read, where there is none; SQLite's own files beside it follow suit."""
    private_folder(path.parent)
    new = not path.exists()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if new:  # its name is on the disk before anything in it can be
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
