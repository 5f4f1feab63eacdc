"""The probes `interfaces`, `open-files`, `optics` and `mlxlink`: recorded, absent, and on this machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from knowledge.observation import Scope, Status
from probes.host import CallKind, RecordingHost, ReplayHost, Reply, listing
from probes.live import ProbeRequest, ProbeSpec
from probes.live.interfaces import PROBE as INTERFACES
from probes.live.mlxlink import PROBE as MLXLINK
from probes.live.open_files import PROBE as OPEN_FILES
from probes.live.optics import PROBE as OPTICS
from probes.live_host import LiveHost
from tests.probes.parse.smi_case import capture
from tests.probes.parse.test_interfaces_snapshot import document, port
from tests.probes.parse.vocabulary_check import faults_of

ALL = (INTERFACES, OPEN_FILES, OPTICS, MLXLINK)
REQUEST = ProbeRequest(10.0)
NIC = listing("/sys/class/net/*/device", ["/sys/class/net/eth2/device", "/sys/class/net/eth3/device"])
GPU = listing("/dev/nvidia[0-9]*", ["/dev/nvidia0"])
WRITES: dict[str, Any] = {
    "schema": "gpudiag/open-files/1", "at_ns": 1795245330_000_000_000, "host": "n7", "denied": 0, "seconds": 0.5,
    "processes": {"4242": {"blocked": 0, "more": 0, "files": [
        {"fd": "9", "folder": "/scratch/run-7", "ending": "pt", "device": "0:52", "type": "nfs4", "mount": "/scratch",
         "pos": [40 << 30, 41 << 30]}]}},
}  # fmt: skip


def snapshot(name: str, text: str, **more: Any) -> Reply:
    return Reply(CallKind.SNAPSHOT, (name,), data=text.encode(), **more)


def command(*argv: str, text: str = "", **more: Any) -> Reply:
    return Reply(CallKind.COMMAND, argv, data=text.encode(), **more)


def test_snapshots_are_read() -> None:
    found = INTERFACES.collect(REQUEST, ReplayHost("n7", [NIC, snapshot("interfaces", document({"eth2": port()}))]))
    assert not faults_of(found, INTERFACES.provides)
    assert {o.fact for o in found if o.fact.startswith("node.")} == set(INTERFACES.main)
    found = OPEN_FILES.collect(REQUEST, ReplayHost("n7", [GPU, snapshot("open_files", json.dumps(WRITES))]))
    assert not faults_of(found, OPEN_FILES.provides)
    assert {o.fact: o.value for o in found}["node.gpu_writers"] == 1


@pytest.mark.parametrize(
    ("probe", "there"), [(INTERFACES, NIC), (OPEN_FILES, GPU)], ids=lambda p: getattr(p, "name", "")
)
@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.FAILED, Status.DENIED])
def test_without_a_document_the_main_facts_carry_the_reason(probe: ProbeSpec, there: Reply, status: Status) -> None:
    name = probe.name.replace("-", "_")
    found = probe.collect(REQUEST, ReplayHost("n7", [there, snapshot(name, "", status=status, detail="why")]))
    assert {(o.fact, o.status) for o in found} == {(fact, status) for fact in probe.main}
    assert all(o.detail for o in found)


@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
def test_where_there_is_nothing_no_command_is_started(probe: ProbeSpec) -> None:
    machine = Reply(CallKind.FILE, ("/proc/net/dev",), data=b"Inter-|   Receive\n")
    host = RecordingHost(ReplayHost("n7", [machine]))
    found = probe.collect(REQUEST, host)
    assert {(o.fact, o.status) for o in found} == {(fact, Status.UNSUPPORTED) for fact in probe.main}
    assert {reply.kind for reply in host.replies} == {CallKind.LISTING, CallKind.FILE}


@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
def test_a_recording_that_never_asked_says_so(probe: ProbeSpec) -> None:
    found = probe.collect(REQUEST, ReplayHost("n7"))
    assert {(o.fact, o.status) for o in found} == {(fact, Status.NOT_ASKED) for fact in probe.main}


def test_modules_are_asked_for_where_there_is_a_link() -> None:
    carriers = [
        Reply(CallKind.FILE, (f"/sys/class/net/{name}/carrier",), data=data)
        for name, data in (("eth2", b"1\n"), ("eth3", b"0\n"))
    ]
    text = capture("network/ethtool-m.sick.txt").partition("\n")[2]
    host = RecordingHost(ReplayHost("n7", [NIC, *carriers, command("ethtool", "-m", "eth2", text=text)]))
    found = OPTICS.collect(REQUEST, host)
    assert not faults_of(found, OPTICS.provides)
    assert {o.subject.id for o in found} == {"module of eth2"}
    assert {o.fact: o.value for o in found}["optics.rx.margin"] == -1.8
    asked = [reply.call for reply in host.replies if reply.kind is CallKind.COMMAND]
    assert asked == [("ethtool", "-m", "eth2")]


def test_adapters_are_asked_one_after_the_other() -> None:
    devices = listing(
        "/sys/class/infiniband/*", [f"/sys/class/infiniband/{n}" for n in ("bnxt_re0", "mlx5_0", "mlx5_1")]
    )
    answers = [
        command("mlxlink", "-d", name, "-m", "-c", "--json", text=capture("network/mlxlink.sick.json"))
        for name in ("mlx5_0", "mlx5_1")
    ]
    found = MLXLINK.collect(REQUEST, ReplayHost("n7", [devices, *answers]))
    assert not faults_of(found, MLXLINK.provides)
    assert {o.subject.id for o in found if o.fact == "port.link.opcode"} == {"mlx5_0/1", "mlx5_1/1"}


@pytest.mark.parametrize(
    ("status", "expected", "calls"), [(Status.UNSUPPORTED, Status.UNSUPPORTED, 1), (Status.TIMEOUT, Status.TIMEOUT, 2)]
)
def test_a_tool_that_is_not_there_is_asked_once(status: Status, expected: Status, calls: int) -> None:
    devices = listing("/sys/class/infiniband/*", [f"/sys/class/infiniband/mlx5_{i}" for i in range(2)])
    answers = [
        command("mlxlink", "-d", f"mlx5_{i}", "-m", "-c", "--json", status=status, detail="why") for i in range(2)
    ]
    host = RecordingHost(ReplayHost("n7", [devices, *answers]))
    assert {o.status for o in MLXLINK.collect(REQUEST, host)} == {expected}
    assert sum(reply.kind is CallKind.COMMAND for reply in host.replies) == calls


@pytest.mark.process
@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
def test_this_machine_and_its_recording_say_the_same(probe: ProbeSpec) -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        found = probe.collect(REQUEST, host)
        replay = ReplayHost(host.name, host.replies, host.as_of)
    parts = [
        o for o in found if o.subject.scope is not Scope.NODE or o.fact.startswith("node.")
    ]  # which ones lack is not known
    assert not faults_of(parts, probe.provides)
    assert {o.fact for o in found} & set(probe.main)
    assert probe.collect(REQUEST, replay) == found
