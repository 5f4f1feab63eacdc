"""Connections through SQLAlchemy: a file that is written, or a PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from assistant.store.location import Location, StoreError, journal_mode, magic
from assistant.store.read import TIMEOUT, Reader
from assistant.store.trouble import not_read, reason
from knowledge.facts import Vocabulary
from knowledge.language import Text

LOCK = 0x6770756469616701  # of the advisory lock under which a server's tables are migrated: "gpudiag", 1
DRIVER_MISSING = Text(
    "the PostgreSQL driver is not installed: pip install 'gpudiag[postgres]'",
    "未安装 PostgreSQL 驱动：pip install 'gpudiag[postgres]'",
)


def file_engine(path: Path, journal: str = "") -> Engine:
    """An engine for a file. Each transaction takes the write lock at once: none is undone half way by another's.

    `journal` is ``wal`` or ``delete``; by default the file system decides.
    """

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
        try:
            _prepare(connection, journal or journal_mode(magic(path.parent)))
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


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
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def server_engine(location: Location) -> Engine:
    """An engine for a server. StoreError when its driver is missing or the address is none."""
    try:
        engine = create_engine(location.url, poolclass=NullPool, connect_args={"connect_timeout": int(TIMEOUT)})
    except ModuleNotFoundError as error:
        raise StoreError(DRIVER_MISSING) from error

    @event.listens_for(engine, "connect")
    def limits(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(TIMEOUT * 1000)}")
            cursor.execute("SET statement_timeout = 60000")
        connection.commit()

    return engine


def open_server(location: Location, words: Vocabulary | None) -> Reader:
    """A reader of a server."""
    from assistant.store.migrate import version

    try:
        connection = server_engine(location).connect()
        found = version(connection)
    except SQLAlchemyError as error:
        raise StoreError(not_read(location.shown, reason(error))) from error
    except StoreError as error:
        raise StoreError(not_read(location.shown, error.said)) from error

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in connection.execute(text(sql), parameters)]
        except SQLAlchemyError as error:
            raise StoreError(not_read(location.shown, reason(error))) from error

    return Reader(query, connection.close, words, found)
