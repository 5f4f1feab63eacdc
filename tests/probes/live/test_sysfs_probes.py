"""The `pci` and `rdma` probes: recorded, broken off, and on this machine; what the whole catalogue says of nodes like these."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.observation import Status, gpu
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest, ProbeSpec, probes
from probes.live.ibstat import PROBE as IBSTAT
from probes.live.lspci import PROBE as LSPCI
from probes.live.pci import PROBE as PCI
from probes.live.rdma import PROBE as RDMA
from probes.live_host import LiveHost
from tests.conftest import Gpudiag
from tests.probes.collectors.collecting import collect
from tests.probes.collectors.sysfs_tree import Node, block, correctable, healthy, link, put, uncorrectable
from tests.probes.parse.vocabulary_check import faults_of

BOTH = (PCI, RDMA)
REQUEST = ProbeRequest(10.0)


def recorded(probe: ProbeSpec, text: str, **more: object) -> ReplayHost:
    reply = Reply(CallKind.SNAPSHOT, (probe.name,), data=text.encode(), **more)  # type: ignore[arg-type] # any field of it
    return ReplayHost("gpu-1", [reply])


@pytest.fixture
def machine(tmp_path: Path) -> Node:
    return healthy(tmp_path / "root")


def text_of(probe: ProbeSpec, machine: Node) -> str:
    return collect(probe.name, machine.root, *(("--window", "0.05") if probe is RDMA else ()))


@pytest.mark.process
@pytest.mark.parametrize("probe", BOTH, ids=lambda p: p.name)
def test_a_recorded_snapshot(probe: ProbeSpec, machine: Node) -> None:
    found = probe.collect(REQUEST, recorded(probe, text_of(probe, machine)))
    assert not faults_of(found, probe.provides)
    assert {o.fact for o in found if o.status is Status.OK} >= set(probe.main)


@pytest.mark.parametrize("probe", BOTH, ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("", Status.TIMEOUT, Status.TIMEOUT),
        ('{"schema": "gpudiag/', Status.TIMEOUT, Status.TIMEOUT),
        ("", Status.FAILED, Status.FAILED),
        ("{}", Status.OK, Status.FAILED),
        ("", Status.DENIED, Status.DENIED),
    ],
)
def test_without_a_document_the_main_facts_carry_the_reason(
    probe: ProbeSpec, text: str, status: Status, expected: Status
) -> None:
    found = probe.collect(
        REQUEST, recorded(probe, text, status=status, detail="why" if status is not Status.OK else "")
    )
    assert {(o.fact, o.status) for o in found} == {(fact, expected) for fact in probe.main}
    assert all(o.detail for o in found)


@pytest.mark.process
@pytest.mark.parametrize("probe", BOTH, ids=lambda p: p.name)
def test_this_machine_and_its_recording_say_the_same(probe: ProbeSpec) -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        found = probe.collect(REQUEST, host)
        replay = ReplayHost(host.name, host.replies, host.as_of)
    assert not faults_of(found, probe.provides)
    assert {o.fact for o in found} >= set(probe.main)
    assert probe.collect(REQUEST, replay) == found


def test_who_stands_in() -> None:
    assert (LSPCI.instead_of, IBSTAT.instead_of) == ("pci", "rdma")
    assert {"pci", "rdma", "lspci", "ibstat"} <= {p.name for p in probes()}
    assert set(LSPCI.provides) - {"gpu.bus.module"} <= set(PCI.provides)  # a module stands in the board's name alone
    assert set(IBSTAT.provides) <= set(RDMA.provides)


# --- the catalogue ------------------------------------------------------------------------

Check = Callable[[Node], dict[str, str]]


@pytest.fixture
def check(gpudiag: Gpudiag, tmp_path: Path) -> Check:
    """Rules that hold for a node, with their severity."""

    def run(machine: Node) -> dict[str, str]:
        words = []
        for probe in BOTH:
            path = tmp_path / f"{probe.name}.json"
            path.write_text(text_of(probe, machine))
            words += ["--input", str(path)]
        answer = gpudiag("check", *words, "--format", "json")
        assert answer.code in (0, 1), answer.err
        return {f["rule"]: f["severity"] for f in json.loads(answer.out)["findings"]}

    return run


def test_a_healthy_node_stays_silent(machine: Node, check: Check) -> None:
    assert check(machine) == {}


def test_a_sick_node(machine: Node, check: Check) -> None:
    here = machine.pci(machine.gpus[0])
    put(here / "config", b"\xff" * 64)
    put(machine.pci(machine.gpus[1]) / "aer_dev_nonfatal", uncorrectable("NONFATAL", CmpltTO=2))
    put(machine.pci(machine.gpus[1]) / "aer_dev_correctable", correctable(BadTLP=90))  # a total says nothing of when
    link(machine.pci(machine.gpus[2]) / "driver", "../../../bus/pci/drivers/vfio-pci")
    (machine.pci(machine.gpus[3]) / "driver").unlink()
    link(machine.pci(machine.gpus[4]) / "driver", "../../../bus/pci/drivers/nouveau")
    put(machine.pci(machine.nics[5]) / "config", b"\xff" * 64)
    put(machine.pci("0000:71:00.0") / "current_link_width", "8")
    machine.remove(machine.gpus[7])
    machine.adapter(0, machine.nics[0], state="2: INIT")
    machine.adapter(1, machine.nics[1], rate="200 Gb/sec (2X NDR)")
    found = check(machine)
    assert found == {
        "gpu-not-on-bus": "critical", "gpu-removed-from-bus": "critical",
        "pcie-uncorrectable-errors-counted": "info", "gpu-given-to-virtual-machines": "info",
        "gpu-without-kernel-driver": "error", "gpu-held-by-nouveau": "error", "pci-device-not-responding": "error",
        "pcie-uplink-degraded": "warning", "pcie-uplink-narrower-than-gpu": "info",
        "port-waits-for-subnet-manager": "error", "compute-rail-down": "error", "compute-rail-slow": "error",
        "ib-interface-down": "error",
    }  # fmt: skip


def test_a_container_with_some_of_the_gpus_is_only_said(machine: Node, check: Check) -> None:
    for index, address in enumerate(machine.gpus[2:], 2):
        (machine.root / f"proc/driver/nvidia/gpus/{address}/information").unlink()
        (machine.root / f"proc/driver/nvidia/gpus/{address}").rmdir()
        (machine.root / f"dev/nvidia{index}").unlink()
    assert check(machine) == {"gpus-hidden-from-this-process": "info"}


def test_an_ordinary_user_of_a_healthy_node_is_not_alarmed(machine: Node, check: Check) -> None:
    for path in (machine.root / "sys/devices").rglob("config"):
        put(path, path.read_bytes()[:64])
    assert check(machine) == {}


@pytest.mark.process
def test_a_mounted_machine_with_devices_that_hang(machine: Node) -> None:
    put(machine.root / "proc/sys/kernel/hostname", "gpu-1")
    block(machine.pci(machine.gpus[0]) / "config")
    block(machine.counter(3, "state"))
    with LiveHost(root=str(machine.root)) as host:
        bus = PCI.collect(ProbeRequest(4.0), host)
        network = RDMA.collect(ProbeRequest(2.0), host)
    lost = {o.fact: o for o in bus if o.subject == gpu(machine.gpus[0], "gpu-1")}
    assert lost["gpu.on_bus"].status is Status.TIMEOUT
    assert "config did not come back" in lost["gpu.on_bus"].detail
    assert [o.value for o in bus if o.fact == "node.pci.gpu_count"] == [8]
    assert [o.value for o in network if o.fact == "node.ib.silent"] == [("mlx5_3",)]
