"""The services collector and probe with fake tools on a PATH, on this machine, and against a real systemd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest, ProbeSpec, services, versions
from probes.live_host import LiveHost
from probes.parse.services_snapshot import FORMAT, STATES
from tests.probes.live.machine import COLLECTORS, NOBODY, collect, need_nobody, tool, tree
from tests.probes.parse.smi_case import one, status, value
from tests.probes.parse.vocabulary_check import faults_of
from tests.systemd_pid1 import systemd as a_systemd
from tests.systemd_pid1 import within

pytestmark = pytest.mark.process

FM = "node.service.fabric_manager.state"
UNIT = "Id={0}.service\\nLoadState=loaded\\nActiveState={1}\\nSubState={2}\\nResult={3}\\nNRestarts=0\\n\\n"
MANAGER = "printf '" + UNIT.format("nvidia-fabricmanager", "active", "running", "success") + "'\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bin"


def asked(path: Path, spec: ProbeSpec, deadline: float | None = None) -> tuple[list[Observation], list[Reply]]:
    """What a probe sees with the tools in `path` in front of the others; a replay must say the same."""
    environment = {"PATH": f"{path}:/usr/bin:/bin"}
    with LiveHost(environ=environment) as live:
        host = RecordingHost(live)
        request = ProbeRequest(deadline or spec.deadline)
        got = spec.collect(request, host)
        assert spec.collect(request, ReplayHost(host.name, host.replies, host.as_of)) == got
    assert not faults_of(got, spec.provides)
    return got, list(host.replies)


def test_one_call_tells_the_services_and_a_second_the_fabric_manager(path: Path) -> None:
    tool(path, "systemctl", MANAGER)
    tool(path, "nv-fabricmanager", "echo 'Fabric Manager version is : 550.90.07'")
    got, replies = asked(path, services.PROBE)
    assert value(got, FM) == "running"
    assert value(got, "node.fabricmanager.version") == "550.90.07"
    assert value(got, "service.state", "nvidia-fabricmanager.service") == "running"
    assert [r.title for r in replies] == ["nv-fabricmanager --version", "snapshot services"]


def test_without_a_fabric_manager_nobody_asks_for_its_version(path: Path) -> None:
    tool(path, "systemctl", "printf 'Id=nvidia-fabricmanager.service\\nLoadState=not-found\\nActiveState=inactive\\n'")
    got, replies = asked(path, services.PROBE)
    assert value(got, FM) == "not_installed"
    assert [r.title for r in replies] == ["snapshot services"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sleep 600", Status.TIMEOUT),
        ("trap '' TERM; sleep 600", Status.TIMEOUT),
        ("echo '\x1b[31mnonsense'", Status.FAILED),
        ("exit 3", Status.FAILED),
        ("echo 'nv-fabricmanager: Permission denied' >&2; exit 1", Status.DENIED),
        ("kill -SEGV $$", Status.FAILED),
    ],
)
def test_a_version_that_cannot_be_had_has_a_reason(path: Path, script: str, expected: Status) -> None:
    tool(path, "systemctl", MANAGER)
    tool(path, "nv-fabricmanager", script)
    got, _ = asked(path, services.PROBE)
    assert status(got, "node.fabricmanager.version") is expected
    assert value(got, FM) == "running"


@pytest.mark.parametrize(
    "script",
    [
        "sleep 600",
        "trap '' TERM; sleep 600",
        "yes",
        "yes >&2",
        "head -c 3000000 /dev/urandom",
        "exit 1",
        "echo nonsense",
        "kill -9 $$",
    ],
)
def test_a_service_manager_that_is_of_no_use_ends_in_time(path: Path, script: str) -> None:
    tool(path, "systemctl", script)
    got, _ = asked(path, services.PROBE, 2.0)
    # The processes of this machine tell instead, when they can be seen from here.
    assert {one(got, fact).value for fact in STATES} <= {"running", "not_running", None}
    assert value(got, "node.clock.synchronised") in (True, False)


def test_a_collector_that_is_ended_leaves_every_state_unknown() -> None:
    host = ReplayHost("n1", [Reply(CallKind.SNAPSHOT, ("services",), Status.TIMEOUT, detail="no end after 4 s")])
    got = services.collect(ProbeRequest(4.0), host)
    assert {(o.fact, o.status) for o in got} == {(fact, Status.TIMEOUT) for fact in services.MAIN}


def test_the_processes_of_a_machine_without_systemd(tmp_path: Path) -> None:
    root = tree(tmp_path, {
        "/proc/1/comm": "init\n", "/proc/2/comm": "kthreadd\n", "/proc/77/comm": "slurmd\n", "/proc/78/comm": "containerd-shim\n",
        "/proc/79/comm": "containerd\n", "/proc/uptime": "100.5 200.0\n", "/proc/sys/kernel/hostname": "old-1\n",
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu\nGCC version: gcc\n",
    })  # fmt: skip
    document = collect("services", "--root", str(root))
    got = FORMAT.parse(json.dumps(document), Context("x"))
    assert value(got, "node.service.slurmd.state") == "running"
    assert value(got, "node.service.container_runtime.state") == "running"
    assert value(got, FM) == "not_running"
    assert value(got, "node.driver.version") == "470.256.02"
    assert {o.subject.host for o in got} == {"old-1"}
    assert [p["comm"] for p in document["processes"]["running"]] == ["slurmd", "containerd"]


def test_an_uptime_that_is_no_number_is_not_told(tmp_path: Path) -> None:
    document = collect("services", "--root", str(tree(tmp_path, {"/proc/uptime": "soon\n"})))
    assert document["uptime_s"] is None


def test_an_empty_root_is_no_machine(tmp_path: Path) -> None:
    got = FORMAT.parse(json.dumps(collect("services", "--root", str(tmp_path))), Context("x"))
    assert status(got, FM) is Status.UNSUPPORTED


def test_an_ordinary_user_sees_processes_and_clock() -> None:
    python = need_nobody()
    text = (COLLECTORS / "services.py").read_text()
    done = subprocess.run(
        [*NOBODY, python, "-I", "-B", "-"], input=text, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    got = FORMAT.parse(done.stdout, Context("x"))
    assert one(got, "node.clock.synchronised").status in (Status.OK, Status.DENIED)


def test_versions_are_asked_one_by_one_and_a_denied_engine_says_so(path: Path) -> None:
    tool(path, "docker", """case "$1" in
        --version) echo 'Docker version 24.0.7, build afdd53b';;
        version) echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1;;
        esac""")  # fmt: skip
    tool(path, "kubelet", "echo 'Kubernetes v1.30.2'")
    tool(path, "slurmd", "sleep 60")
    tool(path, "ofed_info", "echo 'MLNX_OFED_LINUX-5.8-2.0.3.0:'")
    tool(path, "dcgmi", "printf '\\ndcgmi  version: 3.3.5\\n'")
    got, _ = asked(path, versions.PROBE)
    assert value(got, "node.version.docker") == "24.0.7"
    assert value(got, "node.version.kubelet") == "1.30.2"
    assert value(got, "node.version.rdma_stack") == "MLNX_OFED_LINUX-5.8-2.0.3.0"
    assert value(got, "node.dcgm.version") == "3.3.5"
    assert status(got, "node.version.docker_server") is Status.DENIED
    assert status(got, "node.version.slurm") is Status.TIMEOUT
    assert status(got, "node.version.imex") is Status.UNSUPPORTED
    assert status(got, "node.device_plugin.version") is Status.UNSUPPORTED, "no crictl here"
    assert not versions.PROBE.default


PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"


@pytest.mark.parametrize(
    ("ps", "images", "expected"),
    [
        (f"""echo '{{"containers": [{{"podSandboxId": "f", "image": {{"image": "{PLUGIN}"}}}}]}}'""", "exit 9", "0.17.1"),
        ("""echo '{"containers": [{"podSandboxId": "f", "image": {"image": "sha256:0a1b"}}]}'""",
         f"""echo '{{"images": [{{"repoTags": ["{PLUGIN}"]}}]}}'""", "0.17.1"),
        ("""echo '{"containers": []}'""", """echo '{"images": []}'""", Status.UNSUPPORTED),
        ("echo 'dial unix /run/containerd/containerd.sock: connect: permission denied' >&2; exit 1", "exit 9", Status.DENIED),
    ],
    ids=["the tag", "only a digest", "no plugin", "no rights"],
)  # fmt: skip
def test_the_device_plugin_is_told_by_its_image(path: Path, ps: str, images: str, expected: str | Status) -> None:
    tool(path, "crictl", f'case "$1" in\nps) {ps};;\nimages) {images};;\nesac')
    got, _ = asked(path, versions.PROBE)
    found = one(got, "node.device_plugin.version")
    assert (found.value if found.status is Status.OK else found.status) == expected


# --- a real systemd --------------------------------------------------------------------------

INSIDE = """
mount -t tmpfs none /run
mount -t tmpfs none /etc/systemd
mkdir -p /etc/systemd/system /run/systemd/system
cp "$1"/units/* /etc/systemd/system/
"""
FAILS, LIVES = "ExecStart=/bin/false", "ExecStart=/bin/sleep 1000"
UNITS = {
    "nvidia-fabricmanager": FAILS, "slurmd": LIVES, "chrony": LIVES,
    "kubelet": f"{FAILS}\nRestart=always\nRestartSec=100", "nvidia-dcgm": f"{LIVES}\nRestart=always\nRestartSec=10ms",
}  # fmt: skip


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Pid of a systemd that runs `UNITS`, seen from here."""
    folder = tmp_path_factory.mktemp("systemd")
    units = {
        f"/units/{name}.service": f"[Unit]\nDefaultDependencies=no\nStartLimitIntervalSec=0\n[Service]\n{body}\n"
        for name, body in UNITS.items()
    }
    wants = " ".join(f"{name}.service" for name in UNITS)
    tree(folder, units | {"/units/test.target": f"[Unit]\nDefaultDependencies=no\nWants={wants}\n"})

    def ready(pid: int) -> bool:
        asked = [*within(pid), "systemctl", "is-failed", "nvidia-fabricmanager"]
        return subprocess.run(asked, capture_output=True, check=False).stdout.strip() == b"failed"

    with a_systemd(folder, INSIDE, ready) as pid:
        yield pid


def test_a_real_systemd(systemd: int) -> None:
    restarts: object = None
    uptime: object = None
    for _ in range(40):  # kill the daemon that is restarted until its counter has grown
        subprocess.run(
            [*within(systemd), "systemctl", "kill", "-s", "KILL", "nvidia-dcgm"], capture_output=True, check=False
        )
        time.sleep(0.3)
        document = collect("services", before=within(systemd))
        got = FORMAT.parse(json.dumps(document), Context("x"))
        found = {o.fact: o.value for o in got if o.subject.id == "nvidia-dcgm.service"}
        restarts, uptime = found.get("service.restarts"), found.get("service.uptime")
        if isinstance(restarts, int) and restarts >= 3 and uptime is not None:
            break
    assert document["systemctl"]["exit"] == 0
    assert value(got, FM) == "failed"
    assert value(got, "node.service.slurmd.state") == "running"
    assert value(got, "node.service.kubelet.state") == "restarting"
    assert value(got, "node.service.time_sync.state") == "running"
    assert value(got, "node.service.imex.state") == "not_installed"
    assert value(got, "service.result", "nvidia-fabricmanager.service") == "exit-code"
    assert isinstance(restarts, int)
    assert isinstance(uptime, float)
    assert restarts >= 3
    assert uptime < 60
    assert "processes" not in document  # systemd tells: nobody looks at processes


def test_its_cost() -> None:
    before = os.times()
    for _ in range(5):
        collect("services")
    after = os.times()
    spent = (after.children_user + after.children_system - before.children_user - before.children_system) / 5
    assert spent < 0.1
    assert sys.version_info >= (3, 11)
