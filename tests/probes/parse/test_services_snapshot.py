"""Services as systemd, the process list, or a person's capture of ``systemctl show`` tells them; and version lines."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context, DocumentFormat
from probes.parse import services_snapshot, systemctl_show, tool_versions
from probes.parse._systemctl import BEST_FIRST, ROLE_OF, ROLES, best
from probes.registry import sniff
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, one, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

# As systemd 252 prints it: properties in its own order, a blank line between units, an alias as its unit.
SHOWN = """\
MainPID=0
Result=exit-code
NRestarts=0
ExecMainStatus=1
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=failed
SubState=failed
UnitFileState=enabled
ActiveEnterTimestamp=Sat 2026-11-21 07:15:28 UTC
ActiveEnterTimestampMonotonic=13295894349

MainPID=0
Result=success
NRestarts=0
ExecMainStatus=0
Id=nvidia-persistenced.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
ActiveEnterTimestamp=
ActiveEnterTimestampMonotonic=0

MainPID=49
Result=success
NRestarts=6
Id=nvidia-dcgm.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=disabled
ActiveEnterTimestamp=Sat 2026-11-21 07:15:30 UTC
ActiveEnterTimestampMonotonic=13298000000

MainPID=0
Id=kubelet.service
LoadState=loaded
ActiveState=activating
SubState=auto-restart
Result=exit-code
NRestarts=31

Id=chrony.service
LoadState=loaded
ActiveState=inactive
SubState=dead

Id=ntpd.service
LoadState=not-found
ActiveState=inactive
SubState=dead

Id=chrony.service
LoadState=loaded
ActiveState=inactive
SubState=dead
"""
NAMES = {
    "fabric_manager": "failed",
    "persistence": "not_installed",
    "dcgm": "running",
    "kubelet": "restarting",
    "time_sync": "stopped",
}


def document(**more: Any) -> str:
    plain = {
        "schema": "gpudiag/services/1",
        "host": "n7",
        "at_ns": 5,
        "uptime_s": 13300.0,
        "clock": {"status": 1, "maxerror_us": 1500},
    }
    return json.dumps(plain | more, indent=1)


def read(text: str, form: DocumentFormat = services_snapshot.FORMAT) -> list[Observation]:
    got = form.parse(text, Context("x"))
    assert_in_vocabulary(got, form)
    return got


def states(got: list[Observation]) -> dict[str, Any]:
    return {role: one(got, f"node.service.{role}.state").value for role in NAMES}


def test_units_and_their_roles() -> None:
    got = read(document(systemctl={"call": "systemctl show", "exit": 0, "text": SHOWN.splitlines()}))
    assert states(got) == NAMES
    assert {o.subject.host for o in got} == {"n7"}
    assert value(got, "service.uptime", "nvidia-dcgm.service") == 2.0
    assert value(got, "service.restarts", "kubelet.service") == 31
    assert one(got, "service.uptime", "kubelet.service").status is Status.NOT_APPLICABLE
    assert value(got, "service.result", "nvidia-fabricmanager.service") == "exit-code"
    assert value(got, "service.enabled", "nvidia-dcgm.service") is False
    assert not all_of(got, "service.state", "ntpd.service")  # what is not installed is no unit of this node
    assert "ActiveState=failed" in one(got, "node.service.fabric_manager.state").excerpt


def test_a_capture_says_the_same_but_not_for_how_long() -> None:
    assert systemctl_show.FORMAT.sniff(SHOWN) == 95
    assert sniff(SHOWN) is systemctl_show.FORMAT
    got = read(SHOWN, systemctl_show.FORMAT)
    assert states(got) == NAMES
    assert not all_of(got, "service.uptime")


@each("other", ["", "Id=1\nActiveState=x", "unit docker.service is ActiveState=failed\n", "[Unit]\nId=a.service\n"])
def test_other_texts_are_no_capture(other: str) -> None:
    assert systemctl_show.FORMAT.sniff(other) == 0


def test_of_several_units_the_best_counts() -> None:
    assert best(["failed", "running"]) == "running"
    assert best(["not_installed", "failed"]) == "failed"
    assert best([""]) == ""
    assert len(ROLE_OF) == sum(map(len, ROLES.values()))  # no unit plays two roles


@given(st.lists(st.sampled_from(BEST_FIRST), min_size=1))
def test_the_best_is_one_of_them_in_any_order(found: list[str]) -> None:
    assert best(found) in found
    assert best(found) == best(list(reversed(found)))


PROCESSES = [{"pid": 7, "comm": "nv-hostengine"}, {"pid": 9, "comm": "nvidia-persiste"}]
NO_BUS = {"call": "systemctl show", "exit": 1, "text": [], "stderr": "Failed to connect to bus: Host is down"}


def test_without_systemd_processes_tell() -> None:
    got = read(document(systemctl=NO_BUS, processes={"whole": True, "running": PROCESSES}))
    assert value(got, "node.service.dcgm.state") == "running"
    assert value(got, "node.service.kubelet.state") == "not_running"
    assert str(one(got, "node.service.persistence.state").source) == "/proc/9/comm"


def test_a_container_that_sees_only_itself_says_so() -> None:
    sockets = {"/run/nvidia-persistenced/socket": "socket"}
    got = read(document(systemctl=NO_BUS, sockets=sockets, processes={"whole": False, "running": []}))
    assert value(got, "node.service.persistence.state") == "running"  # its socket was handed in
    found = one(got, "node.service.kubelet.state")
    assert found.status is Status.UNSUPPORTED
    assert "run gpudiag on the node" in found.detail
    assert "Host is down" in found.detail


def test_a_service_manager_that_hangs_or_refuses_is_not_a_stopped_service() -> None:
    blind = {"whole": False, "running": []}
    hung = read(
        document(systemctl={"call": "systemctl show", "hung": "systemctl show", "seconds": 3.8}, processes=blind)
    )
    assert {o.status for o in hung if o.fact.startswith("node.service.")} == {Status.TIMEOUT}
    denied = NO_BUS | {"stderr": "Failed to get properties: Access denied"}
    assert status(read(document(systemctl=denied, processes=blind)), "node.service.slurmd.state") is Status.DENIED


@each(("bits", "synchronised"), [(0x1, True), (0x40, False), (0x2041, False), (0x2001, True)])
def test_the_clock(bits: int, synchronised: bool) -> None:
    got = read(document(clock={"status": bits, "maxerror_us": 250_000}))
    assert (value(got, "node.clock.synchronised"), value(got, "node.clock.error")) == (synchronised, 0.25)


def test_a_clock_that_may_not_be_read() -> None:
    found = one(read(document(clock={"error": "EPERM: Operation not permitted"})), "node.clock.synchronised")
    assert (found.status, "container" in found.detail) == (Status.DENIED, True)


@each(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024", "550.90.07"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (a@b)", "570.86.15"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  595.45  Release Build", "595.45"),
        ("NVRM version: something else", None),
    ],
)
def test_the_version_of_the_driver(line: str, version: str | None) -> None:
    assert one(read(document(driver=line)), "node.driver.version").value == version


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20) | st.sampled_from(SHOWN.splitlines()),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["exit", "text", "stderr", "hung", "error", "running",
                                                                               "pid", "comm", "whole", "status"]), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(JSON, JSON, JSON, JSON)
def test_whatever_stands_in_the_document(systemctl: Any, processes: Any, clock: Any, uptime: Any) -> None:
    read(document(systemctl=systemctl, processes=processes, clock=clock, uptime_s=uptime, driver=uptime, sockets=clock))
    read(document(systemctl={"exit": 0, "text": systemctl}, processes={"running": processes}))


@given(st.text(alphabet="IdActiveState=.sv\n ex", max_size=200))
def test_whatever_stands_in_a_capture(text: str) -> None:
    read(text, systemctl_show.FORMAT)
    read(SHOWN + text, systemctl_show.FORMAT)


ENGINE = "Version : 3.3.5\nBuild ID : 14\nBuild Date : 2024-02-24\nBuild Type : Release\n"
LINES = {
    "Fabric Manager version is : 550.90.07\n": ("node.fabricmanager.version", "550.90.07"),
    "\n\n\n\tFabric Manager version is : 535.161.08\n\n": ("node.fabricmanager.version", "535.161.08"),
    "IMEX version is: 550.90.07\n": ("node.version.imex", "550.90.07"),
    "\ndcgmi  version: 3.3.5\n": ("node.dcgm.version", "3.3.5"),
    ENGINE: ("node.dcgm.version", "3.3.5"),
    "Docker version 24.0.7, build afdd53b\n": ("node.version.docker", "24.0.7"),
    "Docker version 20.10.24+dfsg1, build 297e128\n": ("node.version.docker", "20.10.24+dfsg1"),
    "Docker Engine version 24.0.7\n": ("node.version.docker_server", "24.0.7"),
    "containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58\n": (
        "node.version.container_runtime", "1.7.2"),
    "containerd containerd.io 1.6.33 d2d58213f83a351ca8f528a95fbd145f5654e957\n": ("node.version.container_runtime", "1.6.33"),
    "Kubernetes v1.30.2+k3s1\n": ("node.version.kubelet", "1.30.2+k3s1"),
    "slurm 23.02.6\n": ("node.version.slurm", "23.02.6"),
    "slurm-wlm 22.05.8\n": ("node.version.slurm", "22.05.8"),
    "MLNX_OFED_LINUX-5.8-2.0.3.0:\n": ("node.version.rdma_stack", "MLNX_OFED_LINUX-5.8-2.0.3.0"),
    "OFED-internal-24.04-0.6.6:\n": ("node.version.rdma_stack", "OFED-internal-24.04-0.6.6"),
    "NVIDIA Container Toolkit CLI version 1.14.3\ncommit: 53b24618a542025b108239fe602e66e912b7d6e2\n": (
        "node.version.container_toolkit", "1.14.3"),
}  # fmt: skip


@each("text", LINES)
def test_version_lines(text: str) -> None:
    assert sniff(text) is tool_versions.FORMAT
    assert [(o.fact, o.value) for o in read(text, tool_versions.FORMAT)] == [LINES[text]]


@each(
    "text",
    [
        "",
        "Version : 3.3.5\n",
        "we run Docker version 24.0.7, build afdd53b\n",
        "slurm\n",
        "error\n" * 100 + "slurm 23.02.6\n",
    ],
)
def test_a_version_within_other_words_is_no_version(text: str) -> None:
    assert tool_versions.FORMAT.sniff(text) == 0


@given(st.text(max_size=200))
def test_any_text_is_read_without_harm(text: str) -> None:
    got = tool_versions.FORMAT.parse(text, CONTEXT)
    assert_in_vocabulary(got, tool_versions.FORMAT)
