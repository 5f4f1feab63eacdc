"""The `rdma` collector as a process, on trees of healthy and sick machines and on this machine, with its parser behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Clock, Observation, Scope, Status, Subject, node
from probes.parse.rdma_snapshot import FORMAT
from tests.probes.collectors.collecting import collect, document, read, told
from tests.probes.collectors.sysfs_tree import NIC, Node, answers, block, healthy, link, put, restrict
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

HERE = node("gpu-1")
ROOT = os.geteuid() == 0


@pytest.fixture
def machine(tmp_path: Path) -> Node:
    return healthy(tmp_path / "root")


def look(machine: Node, *args: str, **more: Any) -> tuple[list[Observation], dict[tuple[str, Subject], Any]]:
    found = read(FORMAT, collect("rdma", machine.root, *(args or ("--window", "0.1")), **more))
    assert_in_vocabulary(found, FORMAT)
    return found, told(found)


def port(index: int) -> Subject:
    return Subject(Scope.PORT, f"mlx5_{index}/1", HERE)


def test_a_healthy_node(machine: Node) -> None:
    found, facts = look(machine)
    counts = {
        name: facts[f"node.ib.{name}", HERE]
        for name in ("ports.total", "ports.active", "rails.expected", "rails_down", "others_down")
    }
    assert counts == {"ports.total": 8, "ports.active": 8, "rails.expected": 8, "rails_down": 0, "others_down": 0}
    names = (
        "state",
        "phys_state",
        "rate",
        "link_layer",
        "lid",
        "sm_lid",
        "adapter",
        "firmware",
        "guid",
        "numa",
        "pci",
        "gids",
    )
    assert [facts[f"port.{n}", port(5)] for n in names] == [
        "active", "linkup", 400.0, "infiniband", 6, 1, "MT4129", "28.39.1002", "0x946dae03004b0005", 1, machine.nics[5], 1,
    ]  # fmt: skip
    assert facts["node.ib.silent", HERE] == facts["node.ib.ports.far_from_gpus", HERE] == ()
    nic = Subject(Scope.NIC, "ibp5s0", HERE)
    values = [
        facts[f"nic.{n}", nic] for n in ("operstate", "carrier", "link_type", "mtu", "speed", "rdma", "carrier_changes")
    ]
    assert values == ["up", True, "infiniband", 4092, 400.0, "mlx5_5", 2]
    assert (facts["node.ib.interfaces.up", HERE], facts["node.ib.interfaces.down_names", HERE]) == (8, ())
    assert all(o.clock is Clock.REALTIME and o.at for o in found)
    assert all(o.source.call.startswith("/sys/") for o in found)
    assert "400 Gb/sec (4X NDR)" in {o.excerpt for o in found if o.fact == "port.rate"}


def test_two_readings_of_a_counter(machine: Node) -> None:
    writers = [
        answers(machine.counter(2, "counters/symbol_error"), "100", "112"),
        answers(machine.counter(2, "counters/port_rcv_data"), "1000000000", "1625000000"),
        answers(machine.counter(2, "counters/port_xmit_data"), "500", "400"),
        answers(machine.counter(2, "hw_counters/rp_cnp_handled"), "7", "9"),
    ]
    found, facts = look(machine, "--window", "0.5")
    for writer in writers:
        writer.join(5)
    samples = [(o.value, o.at) for o in found if o.fact == "port.counters.symbol_error" and o.subject == port(2)]
    assert [value for value, _ in samples] == [100, 112]
    first, second = (moment or 0 for _, moment in samples)
    assert 0.5 <= (second - first) / 1e9 < 1.5
    assert facts["port.traffic.rx", port(2)] == pytest.approx(
        2.5 / ((second - first) / 1e9), rel=0.01
    )  # 625 M times 4 octets
    assert facts["port.traffic.tx", port(2)] is Status.FAILED  # it began again
    assert [o.value for o in found if o.fact == "port.counters.rp_cnp_handled" and o.subject == port(2)] == [7, 9]


def test_a_rail_that_is_down(machine: Node) -> None:
    machine.adapter(6, machine.nics[6], state="1: DOWN", phys="2: Polling", rate="10 Gb/sec (4X SDR)")
    _, facts = look(machine)
    assert (facts["node.ib.rails_down", HERE], facts["node.ib.rails.down_ports", HERE]) == (1, ("mlx5_6/1",))
    assert (facts["port.state", port(6)], facts["port.phys_state", port(6)]) == ("down", "polling")
    assert facts["node.ib.interfaces.down_names", HERE] == ("ibp6s0",)
    assert facts["nic.speed", Subject(Scope.NIC, "ibp6s0", HERE)] is Status.UNSUPPORTED


def test_a_port_without_a_subnet_manager(machine: Node) -> None:
    machine.adapter(1, machine.nics[1], state="2: INIT")
    _, facts = look(machine)
    assert (facts["port.state", port(1)], facts["port.phys_state", port(1)]) == ("init", "linkup")


def test_a_slow_rail(machine: Node) -> None:
    machine.adapter(1, machine.nics[1], rate="200 Gb/sec (2X NDR)")
    _, facts = look(machine)
    assert facts["node.ib.rails.slow_ports", HERE] == ("mlx5_1/1",)


def test_an_adapter_on_a_node_without_gpus(machine: Node) -> None:
    address = "0000:f0:00.0"
    machine.function(address, "pci0000:f0", "020700", NIC, numa=3, driver="mlx5_core")
    machine.adapter(9, address)
    found, facts = look(machine)
    assert facts["node.ib.ports.far_from_gpus", HERE] == ("mlx5_9/1",)
    assert "mlx5_9/1 on 3" in next(o.excerpt for o in found if o.fact == "node.ib.ports.far_from_gpus")


def test_firmware_without_numa_nodes(machine: Node) -> None:
    put(machine.pci(machine.gpus[0]) / "numa_node", "-1")
    put(machine.pci(machine.nics[0]) / "numa_node", "-1")
    _, facts = look(machine)
    assert facts["node.ib.ports.far_from_gpus", HERE] is Status.UNSUPPORTED
    assert facts["port.numa", port(0)] is Status.UNSUPPORTED


@pytest.mark.parametrize("file", ["state", "counters/link_downed", "hw_counters/out_of_buffer"])
def test_an_adapter_that_hangs_is_named_and_the_others_are_read(machine: Node, file: str) -> None:
    block(machine.counter(3, file))
    found, facts = look(machine, "--window", "0.1", deadline=3)  # nothing else ends it: what hangs does so for ever
    assert facts["node.ib.silent", HERE] == ("mlx5_3",)
    assert f"ports/1/{file}" in next(o.excerpt for o in found if o.fact == "node.ib.silent")
    assert facts["port.counters.link_downed", port(4)] == 0
    if file == "state":  # which ports it has is not known: nothing can be counted
        assert facts["node.ib.ports.total", HERE] is Status.FAILED
        assert facts["port.state", port(3)] is Status.TIMEOUT
    else:
        assert facts["node.ib.ports.total", HERE] == 8
        assert facts["port.traffic.rx", port(3)] is Status.TIMEOUT or file.startswith("hw_counters")


def test_a_listing_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    put(tmp_path / "sys/class/infiniband", "no folder")
    facts = told(read(FORMAT, collect("rdma", tmp_path)))
    assert facts["node.ib.ports.total", HERE] == 0  # ENOTDIR: there is no such class


def test_no_adapters(tmp_path: Path) -> None:
    found = read(FORMAT, collect("rdma", tmp_path))
    assert_in_vocabulary(found, FORMAT)
    facts = told(found)
    assert (facts["node.ib.ports.total", HERE], facts["node.ib.rails_down", HERE]) == (0, Status.NOT_APPLICABLE)


@pytest.mark.skipif(not ROOT, reason="needs root to become another user")
def test_files_that_another_user_may_not_read(machine: Node) -> None:
    for path in (machine.root, *machine.root.parents):
        if path.stat().st_mode & 0o001 == 0:
            path.chmod(path.stat().st_mode | 0o055)
    restrict(machine.counter(0, "counters/symbol_error"), 0o600)
    restrict(machine.counter(1, "state"), 0o600)
    _, facts = look(machine, uid=65534)
    assert facts["port.counters.symbol_error", port(0)] is Status.DENIED
    assert facts["port.state", port(1)] is Status.DENIED
    assert facts["port.state", port(2)] == "active"


def test_roce(machine: Node) -> None:
    for index, address in enumerate(machine.nics):
        here = machine.adapter(index, address, layer="Ethernet", rate="400 Gb/sec (4X NDR)")
        put(here / "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001")
        put(here / "ports/1/gid_attrs/types/3", "RoCE v2")
    found, facts = look(machine)
    assert (facts["port.link_layer", port(0)], facts["port.gids", port(0)]) == ("ethernet", 2)
    assert "RoCE v2" in next(o.excerpt for o in found if o.fact == "port.gids")
    assert ("node.ib.interfaces.total", HERE) not in facts
    assert facts["node.ib.rails.expected", HERE] == 8


def test_virtual_functions_are_no_rails(machine: Node) -> None:
    address = "0000:14:00.1"
    machine.function(address, "0000:12:01.0", "020700", NIC, driver="mlx5_core")
    link(machine.pci(address) / "physfn", machine.pci(machine.nics[0]))
    machine.adapter(10, address, state="1: DOWN", phys="3: Disabled")
    _, facts = look(machine)
    assert (facts["node.ib.ports.total", HERE], facts["node.ib.rails_down", HERE]) == (8, 0)
    assert facts["port.state", port(10)] == "down"


def test_hardware_addresses_are_not_kept(machine: Node) -> None:
    put(machine.pci(machine.nics[0]) / "net/ibp0s0/address", "94:6d:ae:4b:00:07")
    here = machine.adapter(0, machine.nics[0])
    put(here / "ports/1/gids/1", "fe80:0000:0000:0000:966d:aeff:fe4b:0007")
    text = collect("rdma", machine.root, "--window", "0")
    assert "94:6d" not in text
    assert "966d" not in text
    assert document(text)["adapters"]["mlx5_0"]["ports"]["1"]["gids"] == ["IB/RoCE v1", "set"]


def test_this_machine_and_an_ordinary_user_on_it() -> None:
    found = read(FORMAT, collect("rdma", None, "--window", "0.1"))
    assert_in_vocabulary(found, FORMAT)
    total = ("node.ib.ports.total", HERE)
    base = Path("/sys/class/infiniband")
    here = len(list(base.glob("*/ports/*"))) if base.is_dir() else 0
    assert told(found)[total] == here
    if ROOT:
        assert told(read(FORMAT, collect("rdma", None, "--window", "0.1", uid=65534)))[total] == here
