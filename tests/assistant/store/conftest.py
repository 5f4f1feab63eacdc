"""A history in a file and on a real PostgreSQL server, for every test that asks for `url`."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest

_NUMBERS = count()


def _program(name: str) -> str | None:
    """A program of the server. Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    return shutil.which(name) or (str(found[-1]) if found else None)


def _lacking(why: str) -> NoReturn:
    if "postgres" in os.environ.get("GPUDIAG_REQUIRE", "").split(","):
        pytest.fail(f"postgres is required here (GPUDIAG_REQUIRE): {why}")
    pytest.skip(why)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a server of our own on loopback, without the name of a database. It dies with the tests."""
    server, initdb, setpriv = _program("postgres"), _program("initdb"), shutil.which("setpriv")
    if server is None or initdb is None:
        _lacking("PostgreSQL is not installed")
    if setpriv is None:
        _lacking("setpriv is not installed")
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-pg-"))
    lead = [str(setpriv), "--pdeathsig=INT"]
    if os.getuid() == 0:  # the server refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            _lacking("there is no user postgres to run the server as")
        os.chown(folder, user.pw_uid, user.pw_gid)
        lead += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")
    make = [*lead, str(initdb), "-D", data, "-U", "gpudiag", "-A", "trust", "-N"]
    subprocess.run(make, check=True, timeout=90, stdout=subprocess.DEVNULL, cwd="/")
    settings = ("listen_addresses=127.0.0.1", f"port={port}", "fsync=off", f"unix_socket_directories={folder}")
    words = [word for setting in settings for word in ("-c", setting)]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([*lead, str(server), "-D", data, *words], stdout=log, stderr=log, cwd="/")
    try:
        _wait_for(f"postgresql://gpudiag@127.0.0.1:{port}/postgres", running, folder / "log")
        yield f"postgresql+psycopg://gpudiag@127.0.0.1:{port}"
    finally:
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


@pytest.fixture
def database(postgres: str) -> str:
    """Address of an empty schema of the server's database: cheaper to make than a database."""
    import psycopg

    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(f"{postgres.replace('+psycopg', '')}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres}/postgres?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty history, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    address: str = request.getfixturevalue("database")
    return address


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a history file may be made."""
    return tmp_path / "data" / "history.db"
