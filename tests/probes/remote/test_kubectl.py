"""Through kubectl exec: a stand-in that plays it, and where it is installed kubectl itself against a small server of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.observation import Status
from probes.remote import ConnectError
from probes.remote.reach import Reach, Via
from probes.remote.remote_host import RemoteHost
from tests.components import component
from tests.probes.remote import kubectl_stand_in
from tests.probes.remote.api_server import ApiServer
from tests.probes.remote.processes import gone, marked

pytestmark = pytest.mark.process


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {kubectl_stand_in.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return program


def at(name: str = "gpu-12", **more: object) -> Reach:
    return Reach(name, Via.KUBERNETES, **{"namespace": "tools", **more})  # type: ignore[arg-type]


def refused(reach: Reach) -> str:
    with pytest.raises(ConnectError) as caught:
        RemoteHost(reach, budget=10).connect()
    assert caught.value.hint
    return str(caught.value)


def test_a_pod_is_looked_into(stand_in: Path) -> None:
    with RemoteHost(at(pod="gpudiag-a1", container="main", context="prod"), budget=20) as host:
        assert host.name == "gpu-12"
        assert host.whoami.container == "kubernetes"
        assert host.read("/proc/version").whole
        assert host.snapshot("system", deadline=10).whole


def test_the_pod_of_a_node_is_found(stand_in: Path) -> None:
    with RemoteHost(at("gpu-13", selector="app=gpudiag"), budget=20) as host:
        assert host.reach.pod == "gpudiag-b2"
        assert (
            host.run(["sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/environ | grep ^HOSTNAME"], deadline=5).text
            == "HOSTNAME=gpudiag-b2\n"
        )
    assert "no pod that fits app=gpudiag runs on node gpu-99" in refused(at("gpu-99", selector="app=gpudiag"))
    assert "no pod that fits app=other runs on node gpu-13" in refused(at("gpu-13", selector="app=other"))


def test_what_kubectl_says_when_it_cannot(stand_in: Path) -> None:
    assert "names no pod" in refused(at())
    assert 'pods "none" not found' in refused(at(pod="none"))
    assert "Kubernetes does not allow it" in refused(at(pod="gpudiag-a1", namespace="closed"))
    assert "the pod does not run" in refused(at(pod="job-9"))
    assert "has no such running container" in refused(at(pod="gpudiag-a1", container="x"))
    assert "no such context" in refused(at(pod="gpudiag-a1", context="gone"))
    assert "API server cannot be reached" in refused(at(selector="app=gpudiag", namespace="down"))
    assert "there is no python3.9 in the pod" in refused(at(pod="gpudiag-a1", python="python3.9"))


@pytest.mark.parametrize("answer", ["", "{", "[]", '{"items": [{"metadata": {}}]}', '{"items": 7}', "[" * 100_000])
def test_no_list_of_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    (tmp_path / "answer").write_text(answer)
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/answer\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConnectError, match="no list of pods"):
        RemoteHost(at(selector="app=gpudiag"), budget=10).connect()


def test_a_pod_whose_name_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answer").write_text(json.dumps({"items": [{"metadata": {"name": "--as=admin"}}]}))
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/answer\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConnectError, match="pod cannot be"):
        RemoteHost(at(selector="app=gpudiag"), budget=10).connect()


def test_no_kubectl_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "kubectl is not installed here" in refused(at(pod="gpudiag-a1"))
    assert "kubectl is not installed here" in refused(at(selector="app=gpudiag"))


def test_what_runs_there_ends_with_the_line(stand_in: Path) -> None:
    mark = marked()
    with RemoteHost(at(pod="gpudiag-a1"), budget=20) as host:
        assert host.run(["sleep", mark], deadline=0.2).status is Status.TIMEOUT
    assert gone(mark, 10)


# --- kubectl itself ------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    kubectl = component("kubectl")
    if not _speaks_websockets(kubectl):
        pytest.skip("kubectl is older than version 1.31")
    server = ApiServer(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    monkeypatch.setenv("HOME", str(tmp_path))  # where it caches what it discovers
    yield server
    server.shutdown()
    server.server_close()


def _speaks_websockets(kubectl: str) -> bool:
    done = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, check=False, timeout=30)
    found = re.search(r"Client Version: v1\.(\d+)", done.stdout)
    return found is not None and int(found[1]) >= 31


def test_kubectl_itself_finds_and_enters_a_pod(cluster: ApiServer) -> None:
    with RemoteHost(at("gpu-13", selector="app=gpudiag"), budget=30) as host:
        assert host.reach.pod == "gpudiag-b2"
        assert host.read("/proc/version").whole
        data = host.run(["head", "-c", "1000000", "/dev/urandom"], deadline=20)
        assert len(data.data) == 1_000_000
        assert host.snapshot("system", deadline=15).whole
        mark = marked()
        assert host.run(["sleep", mark], deadline=0.2).status is Status.TIMEOUT
    assert gone(mark, 10)


def test_what_kubectl_itself_says(cluster: ApiServer) -> None:
    assert "no pod that fits app=gpudiag runs on node gpu-99" in refused(at("gpu-99", selector="app=gpudiag"))
    assert 'pods "none" not found' in refused(at(pod="none"))
    assert "no such context" in refused(at(pod="gpudiag-a1", context="gone"))
    cluster.closed = True
    assert "Kubernetes does not allow it" in refused(at(pod="gpudiag-a1"))
    cluster.kubeconfig.write_text(cluster.kubeconfig.read_text().replace("127.0.0.1:", "127.0.0.1:1"))
    assert "API server cannot be reached" in refused(at(pod="gpudiag-a1", connect_timeout=3))
