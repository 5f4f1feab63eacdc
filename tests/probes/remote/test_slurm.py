"""Through srun of a real Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from threading import Thread

import pytest

from knowledge.observation import Status
from probes.host import Reply
from probes.remote import ConnectError
from probes.remote.reach import Reach, Via
from probes.remote.remote_host import RemoteHost
from tests.components import component
from tests.probes.remote.processes import gone, marked
from tests.probes.remote.slurm_lab import Slurm

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    component("slurm")
    if os.geteuid() != 0:
        pytest.skip("munge and slurmd are started as root")
    slurm = Slurm(tmp_path_factory.mktemp("slurm") / "lab")
    try:
        yield slurm.start()
    finally:
        slurm.stop()


@pytest.fixture
def slurm(lab: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(lab.folder / "slurm.conf"))
    monkeypatch.setenv("GPUDIAG_TEST_SECRET", "hunter2")
    return lab


def at(name: str, **more: object) -> Reach:
    return Reach(name, Via.SLURM, **more)  # type: ignore[arg-type]


def refused(reach: Reach) -> str:
    with pytest.raises(ConnectError) as caught:
        RemoteHost(reach, budget=10).connect()
    assert caught.value.hint
    return str(caught.value)


def test_a_node_is_looked_at(slurm: Slurm) -> None:
    with RemoteHost(at("gpu01"), budget=20) as host:
        assert host.name == "gpu01"
        data = host.run(["head", "-c", "3000000", "/dev/urandom"], deadline=10)
        assert len(data.data) == 3_000_000  # binary, and whole: srun buffers no lines
        own = host.run(["sh", "-c", "echo $PPID"], deadline=5).text.strip()
        environ = host.read(f"/proc/{own}/environ").text
        assert "SLURMD_NODENAME=gpu01" in environ
        assert "hunter2" not in environ  # srun hands its environment on
        assert host.snapshot("system", deadline=10).whole


def test_no_such_node(slurm: Slurm) -> None:
    assert "Slurm knows no node gpu09" in refused(at("gpu09"))


def test_no_such_python_partition_job(slurm: Slurm) -> None:
    assert "there is no python3x on gpu01" in refused(at("gpu01", python="python3x"))
    assert "does not accept the partition" in refused(at("gpu01", partition="none"))
    assert "does not take the job" in refused(at("gpu01", job="777"))


def test_a_busy_node_and_a_job_of_ones_own(slurm: Slurm) -> None:
    mark = marked()
    job = subprocess.Popen(["srun", "-w", "gpu01", "sleep", mark], env=slurm.env, stderr=subprocess.DEVNULL)
    try:
        while gone(mark) or not (numbers := slurm.told("squeue", "-h", "-t", "R", "-o", "%i").split()):
            time.sleep(0.05)
        assert "is busy" in refused(at("gpu01", connect_timeout=1))
        with RemoteHost(at("gpu01", job=numbers[0]), budget=20) as host:
            assert host.read("/proc/version").whole
    finally:
        job.terminate()
        job.terminate()
        job.wait()
        slurm.told("scancel", "--user=root")


def test_srun_is_killed(slurm: Slurm) -> None:
    mark = marked()
    told: list[Reply] = []
    host = RemoteHost(at("gpu02"), budget=20).connect()
    waiting = Thread(target=lambda: told.append(host.run(["sleep", mark], deadline=15)))
    waiting.start()
    while gone(mark):
        time.sleep(0.02)
    assert host._line is not None
    os.kill(host._line._child.pid, signal.SIGKILL)
    waiting.join()
    assert told[0].status is Status.FAILED
    assert "the connection to gpu02 broke" in told[0].detail
    assert gone(mark, 10)
    host.close()


def test_a_drained_node_and_a_dead_daemon(slurm: Slurm) -> None:
    slurm.told("scontrol", "update", "NodeName=gpu02", "State=DRAIN", "Reason=test")
    assert "Slurm does not give gpu02 out" in refused(at("gpu02", connect_timeout=1))
    slurm.told("scontrol", "update", "NodeName=gpu02", "State=RESUME")
