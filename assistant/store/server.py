"""Connections through SQLAlchemy: a PostgreSQL server, and files whose tables are being set up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from assistant.store import migrate
from assistant.store.file import Transaction, connected
from assistant.store.location import Location, StoreError
from assistant.store.patience import Hurry, crowd, failed
from assistant.store.read import HEAD, Reader, refuse
from assistant.store.trouble import not_read, reason
from knowledge.facts import Vocabulary
from knowledge.language import Text

CONNECT = 3  # seconds, for each of its addresses; the library takes two at the least
LOCKED = 4000  # ms of a machine that is free: behind what a reader waits for, and within what a writer does
BAD_ADDRESS = Text(
    "history_url is no address of a PostgreSQL server: postgresql://user@host:5432/name is one",
    "history_url 不是有效的 PostgreSQL 地址，正确示例：postgresql://user@host:5432/name",
)
LOCK = 0x6770756469616701  # of the advisory lock under which a server's tables are migrated: "gpudiag", 1
DRIVER_MISSING = Text(
    "the PostgreSQL driver is not installed: pip install 'gpudiag[postgres]'",
    "未安装 PostgreSQL 驱动：pip install 'gpudiag[postgres]'",
)


# What a driver raises for an address that it cannot make sense of, or a server that it cannot reach.
UNREACHED = (StoreError, SQLAlchemyError, OSError, ValueError, TypeError)


def file_engine(path: Path) -> Engine:
    """An engine for a file, to set its tables up: what is written to them later goes through `FileStore`."""
    engine = create_engine("sqlite://", creator=lambda: connected(path), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def server_engine(location: Location) -> Engine:
    """An engine for a server. StoreError when its driver is missing or the address is none."""
    try:
        engine = create_engine(
            location.url, poolclass=NullPool, connect_args={"connect_timeout": ceil(CONNECT * crowd())}
        )
    except ModuleNotFoundError as error:
        raise StoreError(DRIVER_MISSING) from error
    except (ValueError, SQLAlchemyError) as error:  # a port that is no number, an option given twice
        raise StoreError(BAD_ADDRESS) from error

    @event.listens_for(engine, "connect")
    def limits(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {ceil(LOCKED * crowd())}")
            cursor.execute("SET statement_timeout = 60000")
        connection.commit()

    return engine


# remote_apply waits for more than the disk; whatever waits for less is raised.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)


class ServerStore:
    """A server's tables, to write to (`assistant.store.file.Store`)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Let go of the server."""
        self._engine.dispose()

    def vacuum(self, always: bool = False) -> None:
        """The server does that by itself."""

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Transaction]:
        """See `Store`. StoreError when the server refuses."""
        try:
            with self._engine.begin() as connection:
                if durable:
                    connection.execute(text(_DURABLE))
                yield _ServerTransaction(connection)
        except SQLAlchemyError as error:
            raise StoreError(reason(error)) from error


class _ServerTransaction:
    """A `Transaction` of a server: rows are locked one by one."""

    for_update = " FOR UPDATE"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, about: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._connection.execute(text(sql), about)]

    def touched(self, sql: str, about: Mapping[str, Any]) -> int:
        return self._connection.execute(text(sql), about).rowcount

    def many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(text(sql), rows)


def opened_server(location: Location) -> ServerStore:
    """A server's tables, brought up to date. StoreError when they belong to a newer gpudiag or to others."""
    engine = server_engine(location)
    ready(engine)
    return ServerStore(engine)


def set_up(path: Path) -> None:
    """Bring the tables of a file up to date. The caller keeps other processes from doing it too."""
    engine = file_engine(path)
    try:
        ready(engine)
    finally:
        engine.dispose()


def ready(engine: Engine) -> None:
    """Tables of the newest revision. StoreError, or the file's own sqlite3.Error, when that cannot be."""
    try:
        _ready(engine)
    except SQLAlchemyError as error:
        inner = getattr(error, "orig", None)
        if isinstance(inner, sqlite3.Error):  # of a file: one that is damaged is put aside
            raise inner from error
        raise StoreError(reason(error)) from error


def _ready(engine: Engine) -> None:
    with engine.connect() as c:
        found = migrate.version(c)
        c.rollback()
    if found == HEAD:
        return
    refuse(found)
    with engine.begin() as c:
        if c.dialect.name == "postgresql":
            c.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        if migrate.version(c) != HEAD:  # asked again: another process may have been faster
            migrate.upgrade(c)


def open_server(location: Location, words: Vocabulary | None, patience: float) -> Reader:
    """A reader of a server that waits for it no longer than `patience`, in seconds, in all."""

    def lost(error: BaseException) -> StoreError:
        why = error.said if isinstance(error, StoreError) else reason(error)
        failed(location.url, why)
        return StoreError(not_read(location.shown, why))

    try:
        engine = server_engine(location)
    except StoreError as error:
        raise lost(error) from error
    hurry = Hurry(patience)

    def opened() -> tuple[Connection, str | None]:
        connection = engine.connect()
        return connection, migrate.version(connection)

    try:
        connection, found = hurry(opened)
    except UNREACHED as error:
        hurry.close()
        raise lost(error) from error

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return hurry(lambda: [tuple(row) for row in connection.execute(text(sql), parameters)])
        except (SQLAlchemyError, StoreError) as error:
            raise lost(error) from error

    return Reader(query, lambda: hurry.close(connection.close), words, found)
