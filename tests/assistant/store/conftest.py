"""A history in a file and on a real PostgreSQL server, for every test that asks for `url`.

Migrations take half the time of such a test: `url` has its tables already, copied from ones that were made so. What begins a
history takes `empty_url`.
"""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from assistant.store import patience
from assistant.store.location import parse
from assistant.store.write import opened
from tests.components import cannot

_NUMBERS = count()


def _program(name: str) -> str | None:
    """A program of the server. Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    return shutil.which(name) or (str(found[-1]) if found else None)


@functools.cache
def _server() -> str:
    """The address of the server: one for all folders of tests, however often they take these fixtures."""
    server, initdb, setpriv = _program("postgres"), _program("initdb"), shutil.which("setpriv")
    if server is None or initdb is None:
        cannot("postgres", "PostgreSQL is not installed")
    if setpriv is None:
        cannot("postgres", "setpriv is not installed")
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-pg-"))
    lead = [str(setpriv), "--pdeathsig=INT"]
    if os.getuid() == 0:  # the server refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            cannot("postgres", "there is no user postgres to run the server as")
        os.chown(folder, user.pw_uid, user.pw_gid)
        lead += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")
    make = [*lead, str(initdb), "-D", data, "-U", "gpudiag", "-A", "trust", "-N"]
    subprocess.run(make, check=True, timeout=90, stdout=subprocess.DEVNULL, cwd="/")
    settings = ("listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={folder}", "fsync=off",
                "full_page_writes=off", "autovacuum=off", "jit=off")  # fmt: skip
    words = [word for setting in settings for word in ("-c", setting)]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([*lead, str(server), "-D", data, *words], stdout=log, stderr=log, cwd="/")
    atexit.register(_stop, running, folder)
    _wait_for(f"postgresql://gpudiag@127.0.0.1:{port}/postgres", running, folder / "log")
    return f"postgresql+psycopg://gpudiag@127.0.0.1:{port}"


def _stop(running: subprocess.Popen[bytes], folder: Path) -> None:
    running.send_signal(signal.SIGQUIT)  # at once: nothing in it is needed any more
    running.wait(timeout=60)
    shutil.rmtree(folder, ignore_errors=True)


def _wait_for(address: str, running: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(address, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not start: {log.read_text()[-500:]}")
            time.sleep(0.05)


def _order(address: str, words: str) -> str:
    """Run statements; the first value of what the last one gives."""
    import psycopg

    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(words.encode())
        while cursor.nextset():
            pass
        found = cursor.fetchone() if cursor.description else None
        return str(found[0]) if found else ""


def _with_tables(address: str) -> str:
    location = parse(address)
    assert location is not None
    opened(location).close()
    return address


@functools.cache
def _model_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-history-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(_with_tables(f"sqlite:///{folder}/history.db").removeprefix("sqlite:///"))


# As it was made: the same tables (not others of the same name), columns and triggers.
_SHAPE = """SELECT md5(string_agg(concat_ws(' ', c.oid, relname, relnatts, relchecks, tgname, tgenabled), ',' ORDER BY c.oid, tgname))
    FROM pg_class c LEFT JOIN pg_trigger ON tgrelid = c.oid WHERE relnamespace = 'public'::regnamespace"""
# Whoever is still connected is cut off. What the migrations wrote comes back; nothing else.
_EMPTY = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET session_replication_role = replica;
    DO $$ DECLARE t name; BEGIN
        FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
            EXECUTE format('DELETE FROM %I', t);
            EXECUTE format('INSERT INTO %I TABLE made.%I', t, t);
        END LOOP;
        PERFORM setval(s.oid, 1, false) FROM pg_class s WHERE relnamespace = 'public'::regnamespace AND relkind = 'S';
    END $$"""
_KEEP = """CREATE SCHEMA made;
    DO $$ DECLARE t name; BEGIN
        FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
            EXECUTE format('CREATE TABLE made.%I AS TABLE public.%I', t, t);
        END LOOP;
    END $$"""


class _Tables:
    """A database with the tables of a history, emptied for each test; made anew when a test has changed the tables."""

    def __init__(self, postgres: str) -> None:
        self._postgres = postgres
        self._make()

    def _make(self) -> None:
        name = f"history{next(_NUMBERS)}"
        _order(f"{self._postgres}/postgres", f"CREATE DATABASE {name}")
        self.address = _with_tables(f"{self._postgres}/{name}")
        _order(self.address, _KEEP)
        self._shape = _order(self.address, _SHAPE)

    def empty(self) -> None:
        """Nothing of the test before is left: no row, and no memory of an answer that came late."""
        patience.answered(self.address)
        if _order(self.address, _SHAPE) == self._shape:
            _order(self.address, _EMPTY)
        else:
            self._make()


@pytest.fixture(scope="session")
def postgres() -> str:
    """Address of a server of our own on loopback, without the name of a database. It dies with the tests."""
    return _server()


@pytest.fixture
def database(postgres: str) -> str:
    """Address of an empty schema of the server's database: cheaper to make than a database."""
    name = f"t{next(_NUMBERS)}"
    _order(f"{postgres}/postgres", f"CREATE SCHEMA {name}")
    return f"{postgres}/postgres?options=-csearch_path%3D{name}"


@functools.cache
def _tables(postgres: str) -> _Tables:
    return _Tables(postgres)


@pytest.fixture
def database_with_tables(postgres: str) -> str:
    """Address of a database with the tables of a history in it."""
    tables = _tables(postgres)
    tables.empty()
    return tables.address


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.process)]


@pytest.fixture(params=BOTH)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a history with its tables and nothing in them, of each kind in turn."""
    if request.param == "sqlite":
        shutil.copy(_model_file(), tmp_path / "history.db")
        return f"sqlite:///{tmp_path}/history.db"
    address: str = request.getfixturevalue("database_with_tables")
    return address


@pytest.fixture(params=BOTH)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a history that nobody has begun, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    address: str = request.getfixturevalue("database")
    return address


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a history file may be made."""
    return tmp_path / "data" / "history.db"
