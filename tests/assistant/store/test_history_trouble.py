"""Every way in which a file or a server says no: the diagnosis is unharmed, and one line says why."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assistant import store
from assistant.store.location import StoreError, parse
from assistant.store.read import HEAD, VERSION_TABLE, open_reader
from assistant.store.write import locked
from knowledge.language import Text
from tests.assistant.store.history_lab import HOST, MINUTE, T0, Machine, check, plain, reader, remember, values
from tests.command_server import CommandServer
from tests.overlay import interpreter_without
from tests.probes.live.machine import NOBODY, need_open_checkout

ROOT = Path(__file__).parent.parent.parent.parent
DIAGNOSIS = plain(Machine(replay=3).observations(T0), T0)
LATER = plain(Machine(replay=4).observations(T0 + MINUTE), T0 + MINUTE)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def kept(path: Path) -> Path:
    """A file with one check in it, at rest: no journal beside it."""
    assert remember(url_of(path), DIAGNOSIS) is None
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def test_a_new_file_is_its_owners_alone(path: Path) -> None:
    umask = os.umask(0)
    try:
        assert remember(url_of(path), DIAGNOSIS) is None
        with reader(url_of(path)):
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes["history.db"] == 0o600
    assert set(modes.values()) == {0o600}, modes


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(64) * 1000)


def header(path: Path) -> None:
    path.write_bytes(b"SQLite formt 3\0\0" + path.read_bytes()[16:])


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 - 100)


def pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [garbage, header, truncated, pages])
def test_a_damaged_file_is_put_aside_once(kept: Path, harm: object) -> None:
    harm(kept)  # type: ignore[operator]  # one of the four
    damaged = kept.read_bytes()
    said = store.since_last(url_of(kept), LATER, HOST)
    assert isinstance(said, Text)
    assert "cannot be read: the file" in said.en or "cannot be read: database" in said.en, said.en
    assert kept.read_bytes() == damaged, "reading changes nothing"
    complaint = remember(url_of(kept), LATER)
    assert complaint is not None
    assert "\n" not in complaint
    (aside,) = [p for p in kept.parent.iterdir() if ".corrupt-" in p.name and not p.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == damaged, "never deleted, never touched"
    assert f"is kept as {aside.name} and a new one was begun" in complaint
    assert remember(url_of(kept), plain(Machine(replay=5).observations(T0 + 2 * MINUTE), T0 + 2 * MINUTE)) is None
    with reader(url_of(kept)) as r:
        assert values(r, "gpu.pcie.replay") == (4, 5)


def test_two_damages_in_one_second_keep_both(kept: Path) -> None:
    for _ in range(3):
        garbage(kept)
        assert "was damaged" in (remember(url_of(kept), LATER) or "")
    assert len([p for p in kept.parent.iterdir() if ".corrupt-" in p.name]) == 3


def test_an_empty_file_is_a_new_history(path: Path) -> None:
    path.parent.mkdir()
    path.touch(0o600)
    location = parse(url_of(path))
    assert location is not None
    assert open_reader(location) is None
    assert remember(url_of(path), DIAGNOSIS) is None


def test_a_newer_schema_is_left_alone(kept: Path) -> None:
    connection = sqlite3.connect(kept)
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = delete")
    connection.close()
    before = kept.read_bytes()
    said = remember(url_of(kept), LATER)
    assert said is not None
    assert "a newer gpudiag wrote it" in said
    assert kept.read_bytes() == before
    read = store.since_last(url_of(kept), LATER, HOST)
    assert isinstance(read, Text)
    assert "a newer gpudiag wrote it" in read.en
    assert "更新版本" in read.zh


def test_somebody_elses_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE run (secret TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert "is no gpudiag history" in (remember(url_of(path), LATER) or "")
    assert path.read_bytes() == before


def test_a_locked_file_is_given_up_soon(kept: Path) -> None:
    connection = sqlite3.connect(kept, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    said = remember(url_of(kept), LATER)
    assert said is not None
    assert said.endswith("another process keeps it locked")
    with reader(url_of(kept)) as r:
        assert len(r.runs()) == 1, "reading goes on"
    connection.execute("ROLLBACK")
    connection.close()
    assert remember(url_of(kept), LATER) is None


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    said = remember(url_of(tmp_path / "data" / "history.db"), DIAGNOSIS)
    assert said is not None
    assert "this check is not in the history" in said


def test_a_file_that_is_a_folder(path: Path) -> None:
    path.mkdir(parents=True)
    assert "this check is not in the history" in (remember(url_of(path), DIAGNOSIS) or "")
    assert isinstance(store.since_last(url_of(path), DIAGNOSIS, HOST), Text)


def test_nothing_is_left_open(kept: Path) -> None:
    with locked(kept):
        pass
    for minute in range(3):
        check(url_of(kept), Machine(), T0 + minute * MINUTE + MINUTE)
    garbage(kept)
    assert isinstance(store.since_last(url_of(kept), LATER, HOST), Text)
    mine = [Path("/proc/self/fd") / n for n in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names, not paths
    assert not [p for p in mine if p.exists() and str(kept) in str(p.readlink())]


# --- as another user ----------------------------------------------------------------------

AS_NOBODY = (
    "import sys; from pathlib import Path; from assistant import store\n"
    "from tests.assistant.store import history_lab as lab\n"
    "later = lab.plain(lab.Machine(replay=4).observations(lab.T0 + lab.MINUTE), lab.T0 + lab.MINUTE)\n"
    "for url in sys.argv[1:]:\n"
    "    print(store.remember(url, lab.HOST, later)); said = store.since_last(url, later, lab.HOST)\n"
    "    print(getattr(said, 'en', None) or [c.increase for c in said.counters])"
)


def as_nobody(*files: Path) -> list[list[str]]:
    """What an ordinary user gets of each file: of keeping a check, and of comparing with the last one."""
    need_open_checkout()
    lead = NOBODY if os.getuid() == 0 else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*lead, sys.executable, "-c", AS_NOBODY, *map(url_of, files)],
        capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 2 * len(files), said
    return [said[n : n + 2] for n in range(0, len(said), 2)]


@contextmanager
def public(kept: Path) -> Iterator[Path]:
    """The file where every user may go."""
    with tempfile.TemporaryDirectory(prefix="gpudiag-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        target = folder / "history.db"
        shutil.copy(kept, target)
        yield target
        folder.chmod(0o755)


@pytest.mark.process
def test_of_files_that_are_not_ours(kept: Path) -> None:
    with public(kept) as closed, public(kept) as damaged, public(kept) as theirs:
        closed.chmod(0o444)
        closed.parent.chmod(0o555)
        garbage(damaged)
        damaged.chmod(0o666)
        damaged.parent.chmod(0o555)
        before = damaged.read_bytes()
        theirs.chmod(0o600 if os.getuid() == 0 else 0)
        of_closed, of_damaged, of_theirs = as_nobody(closed, damaged, theirs)
        assert damaged.read_bytes() == before

    said, compared = of_closed  # it may be read, and so may its folder
    assert said.startswith(f"this check is not in the history ({closed}): ")
    assert said.endswith("Permission denied")
    assert compared == "[1.0]", "reading needs no right to write"

    said, compared = of_damaged
    assert said.endswith("the file is damaged and cannot be put aside: Permission denied")
    assert "the file is no database" in compared

    said, compared = of_theirs
    assert said.endswith("Permission denied")
    assert "cannot be opened" in compared


def test_two_processes_find_the_same_damage(command_server: CommandServer, kept: Path) -> None:
    garbage(kept)
    program = (
        "import sys; from tests.assistant.store import history_lab as lab\n"
        "d = lab.plain(lab.Machine().observations(lab.T0 + int(sys.argv[2])), lab.T0 + int(sys.argv[2]))\n"
        "print('ready', flush=True); sys.stdin.readline(); print(lab.remember(sys.argv[1], d))"
    )
    children = [command_server.start([url_of(kept), str(n)], env=os.environ, program=program) for n in range(4)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    said = [child.communicate(timeout=60)[0].strip() for child in children]
    assert len([s for s in said if "was damaged" in s]) == 1, said
    assert said.count("None") == 3, said
    with reader(url_of(kept)) as r:
        assert len(r.runs()) == 4, "the new file was not taken for the damaged one"


# --- disks --------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    if os.getuid() != 0:
        pytest.skip("only root mounts disks")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk(small: Path) -> None:
    url = url_of(small / "history.db")
    assert remember(url, DIAGNOSIS) is None
    (small / "filler").write_bytes(b"\0" * (os.statvfs(small).f_bavail * os.statvfs(small).f_frsize))
    said = remember(url, LATER)
    assert said is not None
    assert said.endswith(("no space is left on its disk", "its disk answers with an I/O error"))
    (small / "filler").unlink()
    with reader(url) as r:
        assert len(r.runs()) == 1, "what was acknowledged is there, what was not is not"
    assert remember(url, LATER) is None


def test_a_full_disk_from_the_start(small: Path) -> None:
    (small / "filler").write_bytes(b"\0" * (os.statvfs(small).f_bavail * os.statvfs(small).f_frsize))
    assert "this check is not in the history" in (remember(url_of(small / "history.db"), DIAGNOSIS) or "")
    (small / "filler").unlink()
    assert remember(url_of(small / "history.db"), DIAGNOSIS) is None


# --- servers ------------------------------------------------------------------------------


def test_a_server_that_is_not_there() -> None:
    url = "postgresql+psycopg://gpudiag:hunter2@127.0.0.1:9/nothing"
    said = remember(url, DIAGNOSIS)
    assert said is not None
    assert "refused" in said
    assert "hunter2" not in said
    assert "\n" not in said
    read = store.since_last(url, DIAGNOSIS, HOST)
    assert isinstance(read, Text)
    assert "refused" in read.en
    assert "hunter2" not in read.en


def test_a_database_that_is_not_there(postgres: str) -> None:
    assert "does not exist" in (remember(f"{postgres}/nothing", DIAGNOSIS) or "")


def test_a_server_with_newer_tables(database: str) -> None:
    import psycopg

    assert remember(database, DIAGNOSIS) is None
    with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'".encode())
    assert "a newer gpudiag wrote it" in (remember(database, LATER) or "")
    with pytest.raises(StoreError, match="a newer gpudiag wrote it"):
        reader(database)


def test_a_server_that_another_one_locks(database: str) -> None:
    import psycopg

    assert remember(database, DIAGNOSIS) is None
    with psycopg.connect(database.replace("+psycopg", "")) as connection:
        connection.execute("SELECT * FROM node FOR UPDATE")
        said = remember(database, LATER)
    assert said is not None
    assert "another session keeps it locked" in said
    assert remember(database, LATER) is None


@pytest.mark.process
def test_the_driver_is_an_extra(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    program = (
        "import sys\nfrom tests.assistant.store import history_lab as lab\n"
        "d = lab.plain(lab.Machine().observations(lab.T0), lab.T0)\n"
        "print(lab.remember('postgresql://h/x', d)); print(lab.remember(sys.argv[1], d))"
    )
    python, env = interpreter_without(tmp_path_factory.mktemp("packages"), "psycopg")
    argv = [*python, "-c", program, url_of(path)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=100)
    first, second = done.stdout.splitlines()
    assert "pip install 'gpudiag[postgres]'" in first
    assert second == "None"


def test_head_is_what_is_written(kept: Path) -> None:
    connection = sqlite3.connect(kept)
    assert connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [(HEAD,)]
    connection.close()
