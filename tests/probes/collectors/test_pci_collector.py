"""The `pci` collector as a process, on trees of healthy and sick machines and on this machine, with its parser behind it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Clock, Observation, Scope, Status, Subject, gpu, node
from probes.parse.pci_snapshot import FORMAT
from tests.probes.collectors.collecting import collect, document, read, told
from tests.probes.collectors.sysfs_tree import (
    Node,
    block,
    config,
    correctable,
    healthy,
    link,
    put,
    restrict,
    uncorrectable,
)
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

HERE = node("gpu-1")
ROOT = os.geteuid() == 0


@pytest.fixture
def machine(tmp_path: Path) -> Node:
    return healthy(tmp_path / "root")


def look(machine: Node, **more: Any) -> tuple[list[Observation], dict[tuple[str, Subject], Any]]:
    found = read(FORMAT, collect("pci", machine.root, **more))
    assert_in_vocabulary(found, FORMAT)
    return found, told(found)


def at(address: str) -> Subject:
    return Subject(Scope.PCI, address, HERE)


def test_a_healthy_node(machine: Node) -> None:
    found, facts = look(machine)
    assert {k: facts[f"node.{k}", HERE] for k in ("pci.gpu_count", "pci.nvswitch_count", "pci.nic_count")} == {
        "pci.gpu_count": 8, "pci.nvswitch_count": 4, "pci.nic_count": 8,
    }  # fmt: skip
    empty = ("node.pci.gone", "node.pci.gpus.unbound", "node.pci.gpus.hidden", "node.driver.gpus_gone",
             "node.device_nodes.missing", "node.device_nodes.denied", "node.pci.gpus.translated")  # fmt: skip
    assert {name: facts[name, HERE] for name in empty} == dict.fromkeys(empty, ())
    assert (facts["node.driver.version", HERE], facts["node.driver.open", HERE]) == ("550.54.15", True)
    assert (facts["node.driver.gpu_count", HERE], facts["node.pci.gpus.expected", HERE]) == (8, 8)
    card = gpu(machine.gpus[5], "gpu-1")
    names = (
        "gpu.on_bus",
        "gpu.kernel_driver",
        "gpu.numa",
        "gpu.pcie.gen",
        "gpu.pcie.width",
        "gpu.pcie.width.max",
        "gpu.minor",
    )
    assert [facts[name, card] for name in names] == [True, "nvidia", 1, 5, 16, 16, 5]
    assert facts["gpu.pcie.uplink.width", card] == 16
    assert facts["pci.slot", at(machine.gpus[0])] == "21"
    assert facts["pci.bar0.size", at(machine.gpus[0])] == 16.0
    assert facts["pci.kind", at(machine.nvswitches[0])] == "nvswitch"
    assert not [o for o in found if o.status not in (Status.OK, Status.NOT_APPLICABLE)]
    assert all(o.clock is Clock.REALTIME and o.at for o in found)
    assert all(o.source.call.startswith(("/sys/", "/proc/", "/dev")) for o in found)


def test_what_is_not_of_interest_is_not_kept(machine: Node) -> None:
    machine.function("0000:10:1f.0", "pci0000:10", "060100", "8086:1bca")  # an ISA bridge
    machine.function("0000:13:00.1", "0000:12:00.0", "040300", "10de:22ba")  # the audio function of a card
    raw = document(collect("pci", machine.root))
    assert not {"0000:10:1f.0", "0000:13:00.1"} & set(raw["devices"])
    assert raw["bus"]["functions"] == len(raw["devices"]) + 2
    assert raw["devices"][machine.gpus[0]]["path"] == ["0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0"]


def test_a_device_that_answers_with_ones(machine: Node) -> None:
    lost = machine.gpus[3]
    put(machine.pci(lost) / "config", b"\xff" * 4096)
    put(machine.pci(lost) / "current_link_width", "63")
    put(machine.pci(lost) / "current_link_speed", "Unknown")
    _, facts = look(machine)
    assert facts["node.pci.gone", HERE] == (lost,)
    card = gpu(lost, "gpu-1")
    assert [facts[name, card] for name in ("gpu.on_bus", "gpu.pcie.gen", "gpu.pcie.width")] == [
        False,
        Status.FAILED,
        Status.FAILED,
    ]
    assert facts["pci.link.width", at(lost)] is Status.FAILED
    assert facts["node.pci.gpu_count", HERE] == 8  # the bus still lists it


@pytest.mark.parametrize("file", ["config", "current_link_speed", "aer_dev_fatal", "power_state"])
def test_a_read_that_hangs_is_named_and_the_others_are_read(machine: Node, file: str) -> None:
    block(machine.pci(machine.gpus[2]) / file)
    found, facts = look(machine)
    card = gpu(machine.gpus[2], "gpu-1")
    assert facts["gpu.pcie.gen", card] is Status.TIMEOUT
    assert facts["node.pci.gone", HERE] is Status.TIMEOUT
    assert facts["gpu.pcie.gen", gpu(machine.gpus[3], "gpu-1")] == 5
    assert any(f"{machine.gpus[2]}/{file} did not come back" in o.detail for o in found)


def test_a_bus_that_hangs_altogether_ends_before_the_deadline(machine: Node) -> None:
    for address in machine.gpus + machine.nics + machine.nvswitches:
        block(machine.pci(address) / "config")
    _, facts = look(machine, deadline=4)
    assert facts["node.pci.gpu_count", HERE] == 8
    assert facts["node.pci.gone", HERE] is Status.TIMEOUT
    statuses = {facts["gpu.on_bus", gpu(a, "gpu-1")] for a in machine.gpus}
    assert statuses == {Status.TIMEOUT}


def test_a_listing_that_hangs(machine: Node) -> None:
    block(machine.pci(machine.gpus[0]) / "vendor")
    _, facts = look(machine, deadline=4)
    assert facts["node.pci.gpu_count", HERE] is Status.TIMEOUT
    assert facts["node.driver.version", HERE] == "550.54.15"
    assert ("node.driver.gpus_gone", HERE) not in facts


def test_a_device_that_sleeps_is_not_woken(machine: Node) -> None:
    card = machine.gpus[1]
    put(machine.pci(card) / "power_state", "D3cold")
    put(machine.pci(card) / "power/runtime_status", "suspended")
    for file in ("config", "current_link_speed", "current_link_width"):
        block(machine.pci(card) / file)  # who reads one of them hangs
    _, facts = look(machine)
    assert facts["gpu.runtime_status", gpu(card, "gpu-1")] == "suspended"
    assert facts["gpu.on_bus", gpu(card, "gpu-1")] is Status.NOT_ASKED
    assert facts["node.pci.gone", HERE] == ()


def test_error_counters(machine: Node) -> None:
    here = machine.pci(machine.gpus[0])
    put(here / "aer_dev_correctable", correctable(BadTLP=7, RxErr=2, NonFatalErr=40))
    put(here / "aer_dev_nonfatal", uncorrectable("NONFATAL", CmpltTO=1, UnsupReq=3))
    put(here / "aer_dev_fatal", uncorrectable("FATAL", DLP=1))
    put(machine.pci("0000:10:01.0") / "aer_rootport_total_err_fatal", "1")
    found, facts = look(machine)
    names = ("correctable", "signal", "nonfatal", "unsupported", "fatal")
    assert [facts[f"pci.aer.count.{n}", at(machine.gpus[0])] for n in names] == [49, 9, 4, 3, 1]
    assert facts["pci.aer.received.fatal", at("0000:10:01.0")] == 1
    [line] = [o.excerpt for o in found if o.fact == "pci.aer.count.nonfatal" and o.subject == at(machine.gpus[0])]
    assert "CmpltTO 1" in line


@pytest.mark.skipif(not ROOT, reason="a plain file shows all of itself to everybody")
def test_registers_that_root_may_read(machine: Node) -> None:
    put(machine.pci(machine.gpus[0]) / "config", config("10de:2330", 0, latched=(1 << 14 | 1 << 20, 1 << 6)))
    for port in ("0000:12:00.0", "0000:12:01.0"):
        put(machine.pci(port) / "config", config("1000:c030", 6, acs=0x1D))
    _, facts = look(machine)
    assert facts["pci.aer.uncorrectable", at(machine.gpus[0])] == ("CmpltTO", "UnsupReq")
    assert facts["pci.aer.correctable", at(machine.gpus[0])] == ("BadTLP",)
    assert facts["pci.acs.redirect", at("0000:12:00.0")] is True
    assert facts["node.pci.acs_bridges", HERE] == 2  # root ports redirect as well: there is no other way than up


def test_an_ordinary_user_sees_64_bytes_of_a_configuration_space(machine: Node) -> None:
    for path in (machine.root / "sys/devices").rglob("config"):
        put(path, path.read_bytes()[:64])  # what the kernel shows without CAP_SYS_ADMIN
    found, facts = look(machine)
    assert facts["node.pci.acs_bridges", HERE] is Status.DENIED
    assert facts["pci.aer.correctable", at(machine.gpus[0])] is Status.DENIED
    assert facts["pci.aer.count.correctable", at(machine.gpus[0])] == 0  # the counters are for everybody
    assert facts["gpu.on_bus", gpu(machine.gpus[0], "gpu-1")] is True
    assert all("sudo gpudiag check" in o.detail for o in found if o.status is Status.DENIED)


@pytest.mark.skipif(not ROOT, reason="needs root to become another user")
def test_files_that_another_user_may_not_read(machine: Node) -> None:
    for path in (machine.root, *machine.root.parents):
        if path.stat().st_mode & 0o001 == 0:
            path.chmod(path.stat().st_mode | 0o055)
    closed = machine.pci(machine.gpus[4])
    restrict(closed / "config", 0o600)
    restrict(closed / "aer_dev_fatal", 0o600)
    machine.device_file("nvidia0", 0o660)
    found, facts = look(machine, uid=65534)
    assert facts["gpu.on_bus", gpu(machine.gpus[4], "gpu-1")] is Status.DENIED
    assert facts["pci.aer.count.fatal", at(machine.gpus[4])] is Status.DENIED
    assert facts["node.device_nodes.denied", HERE] == ("/dev/nvidia0",)
    assert facts["node.pci.gpu_count", HERE] == 8
    assert "mode 0660" in next(o.excerpt for o in found if o.fact == "node.device_nodes.denied")


def test_links_below_their_capability(machine: Node) -> None:
    up, own = "0000:11:00.0", machine.gpus[1]
    for end in (up, "0000:10:01.0"):
        put(machine.pci(end) / "current_link_width", "8")
    put(machine.pci(own) / "current_link_width", "4")
    put(machine.pci(own) / "current_link_speed", "2.5 GT/s PCIe")
    found, facts = look(machine)
    first = gpu(machine.gpus[0], "gpu-1")
    assert facts["gpu.pcie.uplink.degraded", first] == (up,)
    assert (facts["gpu.pcie.uplink.width", first], facts["gpu.pcie.width", first]) == (8, 16)
    assert facts["pci.link.downgraded", at(own)] == ("speed", "width")
    second = gpu(own, "gpu-1")
    assert [facts[f"gpu.pcie.{n}", second] for n in ("gen", "width", "width.max")] == [1, 4, 16]
    assert facts["gpu.pcie.uplink.degraded", second] == ()
    assert "8 of 16 lanes" in next(
        o.excerpt for o in found if o.fact == "gpu.pcie.uplink.degraded" and o.subject == first
    )


def test_a_slot_with_fewer_lanes_is_what_both_allow(machine: Node) -> None:
    put(machine.pci("0000:12:00.0") / "max_link_width", "8")
    put(machine.pci(machine.gpus[0]) / "current_link_width", "8")
    _, facts = look(machine)
    assert facts["gpu.pcie.width.max", gpu(machine.gpus[0], "gpu-1")] == 8


def test_a_port_that_claims_less_than_the_link_has_is_virtual(machine: Node) -> None:
    put(machine.pci("0000:12:00.0") / "max_link_width", "1")
    _, facts = look(machine)
    assert facts["gpu.pcie.width.max", gpu(machine.gpus[0], "gpu-1")] == 16


def test_a_gpu_on_a_root_bus(tmp_path: Path) -> None:
    machine = Node(tmp_path)
    machine.gpu("0000:00:05.0", "pci0000:00", 0, 0)
    machine.driver("nvidia")
    _, facts = look(machine)
    card = gpu("0000:00:05.0", "gpu-1")
    assert facts["gpu.pcie.uplink.width", card] is Status.NOT_APPLICABLE
    assert facts["gpu.pcie.width.max", card] == 16
    assert ("node.pci.acs_bridges", HERE) not in facts


@pytest.mark.parametrize(("driver", "kind"), [("nouveau", "nouveau"), ("vfio-pci", "vfio"), ("ixgbe", "other")])
def test_gpus_of_another_driver(machine: Node, driver: str, kind: str) -> None:
    card = machine.gpus[6]
    link(machine.pci(card) / "driver", f"../../../bus/pci/drivers/{driver}")
    (machine.root / f"proc/driver/nvidia/gpus/{card}/information").unlink()
    (machine.root / f"proc/driver/nvidia/gpus/{card}").rmdir()
    _, facts = look(machine)
    assert facts["gpu.kernel_driver", gpu(card, "gpu-1")] == kind
    assert facts["node.pci.gpus.expected", HERE] == 7
    assert facts["node.pci.gpus.hidden", HERE] == ()


def test_a_gpu_without_a_driver(machine: Node) -> None:
    (machine.pci(machine.gpus[6]) / "driver").unlink()
    _, facts = look(machine)
    assert facts["gpu.kernel_driver", gpu(machine.gpus[6], "gpu-1")] == "none"
    assert facts["node.pci.gpus.unbound", HERE] == (machine.gpus[6],)
    assert facts["node.pci.gpus.expected", HERE] == 8  # it should be there


def test_a_gpu_that_only_the_driver_still_has(machine: Node) -> None:
    machine.remove(machine.gpus[7])
    _, facts = look(machine)
    assert facts["node.driver.gpus_gone", HERE] == (machine.gpus[7],)
    assert facts["node.pci.gpu_count", HERE] == 7


def test_a_container_with_two_of_the_gpus(machine: Node) -> None:
    for index, address in enumerate(machine.gpus[2:], 2):
        (machine.root / f"proc/driver/nvidia/gpus/{address}/information").unlink()
        (machine.root / f"proc/driver/nvidia/gpus/{address}").rmdir()
        (machine.root / f"dev/nvidia{index}").unlink()
    _, facts = look(machine)
    assert facts["node.pci.gpus.hidden", HERE] == tuple(machine.gpus[2:])
    assert facts["node.pci.gpus.expected", HERE] == 2
    assert facts["node.device_nodes.missing", HERE] == ()


def test_device_files_that_nobody_has_made_yet(machine: Node) -> None:
    (machine.root / "dev").rename(machine.root / "dev.away")
    _, facts = look(machine)
    assert facts["node.pci.gpus.hidden", HERE] == ()  # no container: all are lacking
    assert facts["node.device_nodes.missing", HERE][:2] == ("/dev/nvidiactl", "/dev/nvidia0")


def test_a_container_that_masks_the_drivers_list(machine: Node) -> None:
    (machine.root / "proc/driver").rename(machine.root / "proc/masked")
    _, facts = look(machine)
    assert facts["node.driver.gpu_count", HERE] is Status.UNSUPPORTED
    assert facts["node.pci.gpus.hidden", HERE] is facts["node.pci.gpus.expected", HERE] is Status.UNSUPPORTED


def test_without_the_driver(machine: Node) -> None:
    for address in machine.gpus:
        (machine.pci(address) / "driver").unlink()
    for path in ("proc/driver", "dev"):
        (machine.root / path).rename(machine.root / f"{path}.away")
    machine.driver("mlx5_core", "ib_core")
    _, facts = look(machine)
    assert facts["node.driver.module_loaded", HERE] is False
    assert facts["node.pci.gpus.unbound", HERE] == tuple(machine.gpus)
    assert facts["node.device_nodes.missing", HERE] is Status.NOT_APPLICABLE
    assert ("node.driver.version", HERE) not in facts


def test_a_gpu_that_the_driver_has_not_started(machine: Node) -> None:
    card = machine.gpus[0]
    put(
        machine.root / f"proc/driver/nvidia/gpus/{card}/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-????????-????-????-????-????????????\nVideo BIOS: \t ??.??.??.??.??\n"
        "Device Minor: \t 0",
    )
    _, facts = look(machine)
    assert [facts[n, gpu(card, "gpu-1")] for n in ("gpu.uuid", "gpu.vbios", "gpu.minor")] == [
        Status.UNSUPPORTED, Status.UNSUPPORTED, 0,
    ]  # fmt: skip


def test_the_closed_driver(machine: Node) -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:"
    put(machine.root / "proc/driver/nvidia/version", text)
    _, facts = look(machine)
    assert (facts["node.driver.version", HERE], facts["node.driver.open", HERE]) == ("535.104.05", False)


def test_virtual_functions_are_no_gpus(machine: Node) -> None:
    vf = "0000:13:00.4"
    machine.function(vf, "0000:12:00.0", "030200", "10de:2330", driver="nvidia")
    link(machine.pci(vf) / "physfn", machine.pci(machine.gpus[0]))
    _, facts = look(machine)
    assert facts["node.pci.gpu_count", HERE] == 8
    assert ("gpu.on_bus", gpu(vf, "gpu-1")) not in facts


@pytest.mark.parametrize(("kind", "expected"), [("DMA-FQ", 8), ("identity", 0)])
def test_the_iommu(machine: Node, kind: str, expected: int) -> None:
    for number, address in enumerate(machine.gpus):
        link(machine.pci(address) / "iommu_group", f"../../../kernel/iommu_groups/{number}")
        put(machine.root / f"sys/kernel/iommu_groups/{number}/type", kind)
    text = re.sub(r'"machine": "\w+"', '"machine": "x86_64"', collect("pci", machine.root))
    facts = told(read(FORMAT, text))
    assert len(facts["node.pci.gpus.translated", HERE]) == expected
    assert (facts["pci.iommu_group", at(machine.gpus[3])], facts["pci.iommu.type", at(machine.gpus[3])]) == (3, kind)
    arm = told(read(FORMAT, text.replace('"machine": "x86_64"', '"machine": "aarch64"')))
    assert arm["node.pci.gpus.translated", HERE] is Status.NOT_APPLICABLE


def test_a_domain_behind_a_device(machine: Node) -> None:
    """Intel's VMD is a device with a root bus of its own below it."""
    machine.function("0000:10:05.5", "pci0000:10", "010400", "8086:28c0")
    below = machine.pci("0000:10:05.5") / "pci10000:00/10000:00:02.0"
    put(below / "class", "0x010802")
    put(below / "vendor", "0x144d")
    link(machine.root / "sys/bus/pci/devices/10000:00:02.0", below)
    raw = document(collect("pci", machine.root))
    assert raw["devices"]["10000:00:02.0"]["path"] == ["10000:00:02.0"]


def test_no_pci_bus_at_all(tmp_path: Path) -> None:
    facts = told(read(FORMAT, collect("pci", tmp_path)))
    assert facts["node.pci.gpu_count", HERE] is Status.UNSUPPORTED


def test_this_machine_and_an_ordinary_user_on_it() -> None:
    mine = read(FORMAT, collect("pci", None))
    assert_in_vocabulary(mine, FORMAT)
    if Path("/sys/bus/pci/devices").is_dir():
        shown = [p for p in Path("/sys/bus/pci/devices").iterdir() if (p / "vendor").read_text().strip() == "0x10de"]
        cards = [p for p in shown if (p / "class").read_text().startswith("0x03") and not (p / "physfn").exists()]
        assert told(mine)["node.pci.gpu_count", HERE] == len(cards)
    if ROOT:
        theirs = read(FORMAT, collect("pci", None, uid=65534))
        assert_in_vocabulary(theirs, FORMAT)
        count = ("node.pci.gpu_count", HERE)
        assert told(theirs).get(count) == told(mine).get(count)


def test_load_addresses_of_modules_are_not_kept(machine: Node) -> None:
    put(
        machine.root / "proc/modules",
        "nvidia 1 2 nvidia_uvm,nvidia_modeset, Live 0xffffffffc0a00000 (POE)\nsecretfs 1 0 - Live 0x0",
    )
    text = collect("pci", machine.root)
    assert "ffffffffc0a00000" not in text
    assert "secretfs" not in text
