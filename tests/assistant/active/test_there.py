"""``gpudiag test --host`` over a real ssh server on loopback, with stand-in tools on its far side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from assistant.active.there import WatchedThere
from knowledge.observation import Status
from probes.active import call, spoken
from probes.active import tests as all_tests
from probes.live_host import LiveHost
from probes.remote.remote_host import RemoteHost
from tests import nvml_lab
from tests.active_lab import Lab
from tests.command_server import CommandServer
from tests.conftest import Gpudiag
from tests.probes.remote.sshd_lab import Sshd, free_port

NVBANDWIDTH = next(t for t in all_tests() if t.name == "nvbandwidth")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Eight idle GPUs, which only the far side has tools for."""
    return Lab(tmp_path_factory.mktemp("node"), 8)


@pytest.fixture(autouse=True)
def idle(lab: Lab) -> None:
    """As every test finds it."""
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt")
    lab.apps()
    for name in ("called", "pids"):
        (lab.state / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, lab: Lab) -> Iterator[Sshd]:
    nvml = nvml_lab.folder(tmp_path_factory.getbasetemp(), "healthy8")
    sshd = Sshd(tmp_path_factory.mktemp("sshd"), f"SetEnv PATH={lab.environ['PATH']} LD_LIBRARY_PATH={nvml}").start()
    yield sshd
    sshd.stop()


@pytest.fixture
def env(server: Sshd, tmp_path: Path) -> dict[str, str]:
    """Of the machine from which is asked: none of the tools, and an inventory."""
    inventory = tmp_path / "inventory.toml"
    inventory.write_text(
        f"[defaults]\nssh_config = '{server.folder}/ssh_config'\n[hosts.gpu-12]\ngpus = 8\n[hosts.gpu-14]\nport = {free_port()}\n"
        "[hosts.gpu-16]\nvia = 'kubernetes'\npod = 'x'\nroot = '/host'\n"
    )
    return {
        "GPUDIAG_INVENTORY": str(inventory), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state"),
    }  # fmt: skip


def pids(lab: Lab) -> list[str]:
    """Processes of the test that are alive."""
    file = lab.state / "pids"
    return [p for p in file.read_text().split() if Path(f"/proc/{p}").exists()] if file.exists() else []


def until(true: object, seconds: float = 40.0) -> None:
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


SLOW = "echo $$ >> {0}/pids; echo Running host_to_device_memcpy_ce.; sleep 60 & echo $! >> {0}/pids; wait"


def test_a_test_runs_there_and_is_answered_here(
    gpudiag: Gpudiag, env: dict[str, str], lab: Lab, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "there.tar.gz")
    got = gpudiag("test", "--host", "gpu-12", "nvbandwidth", "--yes", "--format", "json", "--record", bundle, env=env)
    said = json.loads(got.out)
    assert [(t["name"], t["outcomes"]) for t in said["tests"]] == [("nvbandwidth", ["ended"])], got.err
    assert len(lab.called()) == 1
    assert {m["subject"]["host"] for m in said["measured"]} == {"gpu-12"}
    assert {m["typical"] for m in said["measured"] if m["fact"] == "benchmark.h2d"} == {55}
    again = json.loads(gpudiag("check", "--bundle", bundle, "--format", "json", "--expect-gpus", "8", env=env).out)
    assert again["findings"] == said["diagnosis"]["findings"]
    assert '"gpu-12"' in gpudiag("history", "--format", "json", env=env).out


def test_what_it_would_do_is_said_of_that_machine(gpudiag: Gpudiag, env: dict[str, str], lab: Lab) -> None:
    dry = gpudiag("test", "--host", "gpu-12", "--dry-run", env=env)
    assert dry.code == 0, dry.err
    assert "Active tests on GPU 0, 1, 2, 3, 4, 5, 6, 7 of gpu-12 (8 x NVIDIA H100 80GB HBM3)" in " ".join(
        dry.out.split()
    )
    listed = json.loads(gpudiag("test", "list", "--host", "gpu-12", "--format", "json", env=env).out)
    assert {t["name"] for t in listed["tests"] if t["installed"]} == {"nvbandwidth"}
    lab.apps((3, 1, "python3"))
    busy = gpudiag("test", "--host", "gpu-12", "nvbandwidth", "--yes", "--lang", "zh", env=env)
    assert busy.code == 3
    assert "目前无法在 gpu-12 上运行任何测试。" in busy.out
    assert "GPU 3 正被进程 1（python3）使用" in busy.out
    assert not lab.called()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "gpu-12", "nvbandwidth"), "--yes"),  # nobody can be asked
        (("--host", "gpu-14", "--yes"), "refuses connections"),
        (("--host", "gpu-14", "--yes", "--lang", "zh"), "拒绝连接：该处没有 ssh 服务监听\n  sshd 是否在运行？"),
        (("--host", "gpu-16", "--yes"), "tests run on the machine itself"),
        (("--host", "gpu-13", "--yes"), "did you mean gpu-12"),
        (("--via", "ssh"), "none was given"),
    ],
)
def test_what_starts_nothing(
    gpudiag: Gpudiag, env: dict[str, str], lab: Lab, words: tuple[str, ...], said: str
) -> None:
    got = gpudiag("test", *words, env=env)
    assert (got.code, said in got.err, got.out) == (2, True, ""), got.err
    assert not lab.called()


@pytest.mark.process
def test_ctrl_c_ends_it_there_and_keeps_what_there_is(
    command_server: CommandServer, clean_environment: dict[str, str], env: dict[str, str], lab: Lab
) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=SLOW.format(lab.state))
    words = ["test", "--host", "gpu-12", "nvbandwidth", "--yes", "--format", "json", "--budget", "5"]
    child = command_server.start(words, env=clean_environment | env)
    until(lambda: len(pids(lab)) == 2)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    said = json.loads(out)
    assert [t["outcomes"] for t in said["tests"]] == [["cancelled"]], errors
    assert child.returncode == 130
    assert not pids(lab)


def snapshot(host: RemoteHost, cancel: Event) -> dict[str, object]:
    """One run of nvbandwidth, as the probe asks for it."""
    with LiveHost() as here:
        steps = NVBANDWIDTH.steps(here, ())
    assert isinstance(steps, tuple)
    watched = WatchedThere(host, lambda _: None, cancel)
    reply = watched.snapshot("active", *call(NVBANDWIDTH, steps[0], ()), deadline=60)
    assert reply.status is Status.OK, reply.detail
    return dict(json.loads(reply.text))


@pytest.mark.process
def test_a_job_that_appears_there_ends_it(server: Sshd, lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=SLOW.format(lab.state))
    other = subprocess.Popen(["sleep", "90"])
    try:
        with RemoteHost(server.reach("gpu-12"), budget=60) as host:

            def job_comes() -> None:
                until(lambda: len(pids(lab)) == 2)
                lab.apps((2, other.pid, "python3"))

            comes = Thread(target=job_comes)
            comes.start()
            said = snapshot(host, Event())
            comes.join()
    finally:
        other.kill()
        other.wait()
    assert (said["outcome"], spoken(said["reason"]).zh) == ("job", f"GPU 上出现了作业：进程 {other.pid}（python3）")
    assert not pids(lab)


@pytest.mark.process
def test_what_was_printed_until_it_was_broken_off_is_kept(server: Sshd, lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=SLOW.format(lab.state))
    cancel = Event()
    with RemoteHost(server.reach("gpu-12"), budget=60) as host:

        def broken_off() -> None:
            until(lambda: len(pids(lab)) == 2)
            time.sleep(0.3)  # it has printed its first line by then
            cancel.set()

        breaks = Thread(target=broken_off)
        breaks.start()
        said = snapshot(host, cancel)
        breaks.join()
        assert host.read("/proc/version").status is Status.OK  # the line goes on
    assert (said["outcome"], said["reason"]) == ("cancelled", {"code": "signal"})
    assert "Running host_to_device_memcpy_ce." in str(said["stdout"])
    assert not pids(lab)


@pytest.mark.process
def test_a_line_that_ends_ends_the_test(server: Sshd, lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=SLOW.format(lab.state))
    host = RemoteHost(server.reach("gpu-12"), budget=60).connect()
    replies = []
    asked = Thread(
        target=lambda: replies.append(
            host.snapshot("active", "--test", "nvbandwidth", "--", "nvbandwidth", deadline=60)
        )
    )
    asked.start()
    until(lambda: len(pids(lab)) == 2)
    assert host._line is not None
    os.killpg(host._line._child.pid, signal.SIGKILL)  # ssh is killed: as when the network goes
    asked.join(30)
    assert [r.status for r in replies] == [Status.FAILED]
    until(lambda: not pids(lab), 20)
    host.close()
