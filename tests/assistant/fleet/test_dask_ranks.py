"""Ranks over real Dask workers: processes of this machine, one of which hangs, one of which is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from assistant.fleet.clusters import Where, parse
from assistant.fleet.dask_ranks import Fleet, State, analyse, compare, digest_of
from knowledge.errors import UsageError
from tests.components import component
from tests.overlay import interpreter_without

# Not loaded while tests are collected: each worker would.
pytestmark = pytest.mark.skipif(not find_spec("distributed"), reason="dask[distributed] is not installed (extra fleet)")


def behave(path: str) -> str:
    """Work that does what the file says."""
    said = Path(path).read_text(encoding="utf-8").split()
    if said[0] == "hang":
        time.sleep(600)
    if said[0] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if said[0] == "die-once" and not Path(said[1]).exists():
        Path(said[1]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if said[0] == "raise":
        raise ValueError("no such tensor")
    return said[0]


def files(folder: Path, **content: str) -> list[str]:
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in content]


def states(fleet: Fleet) -> list[State]:
    return [s.state for s in fleet.statuses]


@pytest.mark.process
def test_ranks_are_compared_over_workers(tmp_path: Path) -> None:
    from tests.trace_jobs import Cluster

    paths = Cluster(compute=[4000, 4000, 4800, 4000]).save(tmp_path)
    Path(paths[3]).write_text("no trace", encoding="utf-8")
    seen: list[tuple[int, int]] = []
    fleet = analyse(paths, "local:2", 60, work=digest_of, progress=lambda done, of: seen.append((done, of)))
    assert states(fleet) == [State.DONE] * 3 + [State.FAILED]
    found = compare(fleet)
    assert [s.rank for s in found.stragglers] == [2]
    assert found.missing == (3,)
    assert list(found.failed) == [paths[3]]
    assert seen[-1] == (4, 4)


@pytest.mark.process
def test_one_kills_its_worker_one_is_missing_one_raises_and_some_name_a_host(tmp_path: Path) -> None:
    again, here = tmp_path / "again", socket.gethostname()
    paths = files(tmp_path, a="one", c="die", d=f"die-once {again}", e="raise", f="two")
    none, elsewhere = str(tmp_path / "none"), f"elsewhere.example:{paths[0]}"
    fleet = analyse(
        [*paths, none, f"{here}:{paths[0]}", f"localhost:{paths[4]}", elsewhere], "local:2", 240, work=behave
    )
    assert states(fleet)[:6] == [State.DONE, State.LOST, State.DONE, State.FAILED, State.DONE, State.INVISIBLE]
    assert states(fleet)[6:] == [State.DONE, State.DONE, State.INVISIBLE]
    assert fleet.values == ("one", "die-once", "two", "one", "two")
    assert fleet.statuses[6].host == here
    said = fleet.failed()
    assert "died 2 times" in said[paths[1]]
    assert said[paths[3]] == "ValueError: no such tensor"
    assert "sees the file" in said[none]
    assert "no worker runs on elsewhere.example" in said[elsewhere]


@pytest.mark.process
def test_one_hangs_and_the_others_are_kept(tmp_path: Path) -> None:
    paths = files(tmp_path, a="hang", b="one", c="two", d="hang", e="three")
    for seconds in (12, 60):  # where others hold the CPUs it takes long until workers are there
        fleet = analyse(paths, "local:2", seconds, work=behave)
        if states(fleet)[1:3] == [State.DONE, State.DONE]:
            break
    assert states(fleet)[:3] == [State.LATE, State.DONE, State.DONE]
    assert states(fleet)[3:] == [State.LATE, State.LATE]  # both workers hang by then
    assert "not done" in fleet.failed()[paths[0]]
    assert "not begun" in fleet.failed()[paths[4]]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers as an administrator starts them: other processes, over loopback, without nannies."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": Path.cwd(),
             "env": {**os.environ, "PYTHONPATH": str(Path.cwd())}}  # fmt: skip
    started = [subprocess.Popen([*run, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"], **quiet)]  # type: ignore[call-overload]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(tmp_path / "scratch")]  # fmt: skip
    started += [subprocess.Popen(work, **quiet) for _ in range(2)]  # type: ignore[call-overload]
    try:
        _answers(port)
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_scheduler_that_was_there_stays_and_nobody_waits_for_workers_that_are_gone_for_good(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, started = scheduler
    paths = files(tmp_path, a="one", b="two")
    for _ in range(2):
        assert analyse(paths, address, 60, work=behave).values == ("one", "two")
    assert all(p.poll() is None for p in started)
    paths = files(tmp_path, a="one", b="die", c="die", d="die")
    fleet = analyse(paths, address, 60, work=behave)
    assert fleet.statuses[0].state in (State.DONE, State.LOST)
    assert set(states(fleet)[1:]) == {State.LOST}
    assert all(s.reason for s in fleet.statuses if s.state is not State.DONE)


def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        analyse(files(tmp_path, a="one"), "tcp://127.0.0.1:9", 2, work=behave)
    with pytest.raises(UsageError):
        analyse([], "local")


@pytest.mark.parametrize(("text", "where"), [
    ("local:4", Where("local", 4)), ("tcp://head:8786", Where("address", address="tcp://head:8786")),
    ("head:8786", Where("address", address="tcp://head:8786")),
    ("ssh:a,b@c.example", Where("ssh", 2, hosts=("a", "b@c.example"))), ("slurm:16", Where("slurm", 16)),
    ("kubernetes:3", Where("kubernetes", 3)),
])  # fmt: skip
def test_places(text: str, where: Where) -> None:
    assert parse(text) == where


@pytest.mark.parametrize(
    "text", ["", "local:0", "slurm", "ssh:", "ssh:-oProxyCommand=x", "tcp://head", "cloud:", "a b:3", "local:99999"]
)
def test_no_places(text: str) -> None:
    with pytest.raises(UsageError, match="no place"):
        parse(text)


WANTED = {"ssh:localhost": "asyncssh", "slurm:1": "dask-jobqueue", "kubernetes:1": "dask-kubernetes"}
MISSING = """
import sys
from assistant.fleet.dask_ranks import analyse
from knowledge.errors import UsageError
for where in sys.argv[1:]:
    try:
        analyse(["a"], where, 5)
    except UsageError as error:
        print(error.message, error.hint)
"""


@pytest.mark.process
def test_a_missing_package_is_named(tmp_path: Path) -> None:
    python, env = interpreter_without(tmp_path, *WANTED.values())
    done = subprocess.run([*python, "-c", MISSING, *WANTED], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{where.partition(':')[0]} needs the package {name} pip install '{name}'" for where, name in WANTED.items()
    ]


@pytest.mark.process
def test_without_dask_it_is_named(tmp_path: Path) -> None:
    python, env = interpreter_without(tmp_path, "dask", "distributed")
    done = subprocess.run([*python, "-c", MISSING, "local:1"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "Dask is not installed pip install 'gpudiag[fleet]'\n"


@pytest.fixture
def ssh_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A real sshd on loopback, and the alias that the user's own configuration gives it."""
    component("sshd")
    component("ssh")
    pytest.importorskip("asyncssh", reason="asyncssh is not installed")
    if os.geteuid() != 0:
        pytest.skip("sshd lets in who started it, and this test starts it as root")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "authorized").write_text((home / "user.pub").read_text())
    (home / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home / 'host'}\nAuthorizedKeysFile {home / 'authorized'}\n"
        "PermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\n"
    )
    (home / "known").write_text(f"[127.0.0.1]:{port} {(home / 'host.pub').read_text()}")
    (home / ".ssh" / "config").write_text(
        f"Host gpu-a\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {home / 'user'}\n"
        f"  UserKnownHostsFile {home / 'known'}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", home / "sshd_config"], stderr=subprocess.DEVNULL)
    try:
        _answers(port)
        yield "gpu-a"
    finally:
        server.terminate()
        server.wait(60)


def _answers(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nobody listens")


def test_over_ssh(tmp_path: Path, ssh_host: str) -> None:
    fleet = analyse(files(tmp_path, a="one", b="two"), f"ssh:{ssh_host}", 60, work=behave)
    assert states(fleet) == [State.DONE, State.DONE]


@pytest.mark.process
def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("asyncssh", reason="asyncssh is not installed")
    with pytest.raises(UsageError, match="ssh"):
        analyse(files(tmp_path, a="one"), "ssh:127.0.0.99", 20, work=behave)
