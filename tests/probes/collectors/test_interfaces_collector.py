"""The `interfaces` collector as a process: this machine's own interfaces by the kernel's calls, and trees of files."""

from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Scope, Status, Subject, node
from probes.parse.interfaces_snapshot import FORMAT
from tests.probes.collectors.collecting import FOLDER, collect, document, read, told
from tests.probes.collectors.sysfs_tree import block, link, put
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

HERE = node("gpu-1")
OWN = sorted(p.parent.name for p in Path("/sys/class/net").glob("*/device"))


def interface(root: Path, name: str = "eth2", **files: str) -> Path:
    """One RoCE interface below `root`, as MLNX_OFED shows it."""
    folder = root / "sys/class/net" / name
    device = root / "sys/devices/pci0000:15" / name
    texts = {
        "operstate": "up",
        "carrier": "1",
        "type": "1",
        "mtu": "4200",
        "speed": "400000",
        "duplex": "full",
        "qos/trust": "dscp",
    }
    for file, text in (texts | files).items():
        put(folder / file, text)
    put(device / "device", "0x1021")
    put(device / "infiniband/mlx5_2/fw_ver", "28.39.1002")
    put(root / "sys/class/infiniband/mlx5_2/tc/1/traffic_class", "Global tclass=106")
    for side in ("np", "rp"):
        for priority in range(8):
            put(folder / f"ecn/roce_{side}/enable/{priority}", "1" if priority == 3 else "0")
    link(folder / "device", device)
    link(device / "driver", root / "sys/bus/pci/drivers/mlx5_core")
    return folder


@pytest.mark.process
def test_a_tree_of_files(tmp_path: Path) -> None:
    interface(tmp_path)
    put(tmp_path / "sys/class/net/lo/operstate", "unknown")
    text = collect("interfaces", tmp_path)
    assert list(document(text)["interfaces"]) == ["eth2"]
    found = read(FORMAT, text)
    assert_in_vocabulary(found, FORMAT)
    facts = told(found)
    nic = Subject(Scope.NIC, "eth2", HERE)
    values = [facts[f"nic.{n}", nic] for n in ("trust", "ecn.priorities", "traffic_class", "driver", "rdma", "mtu")]
    assert values == ["dscp", ("3",), 106, "mlx5_core", "mlx5_2", 4200]
    assert (
        facts["nic.pause.rx", nic] is facts["nic.pfc.priorities", nic] is Status.NOT_ASKED
    )  # the kernel would be ours
    assert facts["node.roce.interfaces", HERE] == ("eth2",)


@pytest.mark.process
def test_addresses_of_bonds_stay_on_the_machine(tmp_path: Path) -> None:
    text = (
        "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\nActive Aggregator Info:\n\tAggregator ID: 1\n"
        "\tPartner Mac Address: 02:5f:a1:a0:2d:01\n\nSlave Interface: eno1\nMII Status: up\nPermanent HW addr: 98:f2:b3:e7:5e:bd\n"
    )
    put(tmp_path / "proc/net/bonding/bond0", text)
    put(tmp_path / "proc/net/bonding/bond1", text.replace("02:5f:a1:a0:2d:01", "00:00:00:00:00:00"))
    (tmp_path / "sys/class/net").mkdir(parents=True)
    printed = collect("interfaces", tmp_path)
    assert "5f" not in printed
    assert "e7:5e" not in printed
    facts = told(read(FORMAT, printed))
    assert [facts["bond.partner", Subject(Scope.NIC, name, HERE)] for name in ("bond0", "bond1")] == [True, False]


@pytest.mark.process
def test_what_hangs_is_named_and_the_rest_is_told(tmp_path: Path) -> None:
    interface(tmp_path)
    block(interface(tmp_path, "eth3") / "speed")
    found = read(FORMAT, collect("interfaces", tmp_path, deadline=2))
    facts = told(found)
    assert facts["nic.trust", Subject(Scope.NIC, "eth2", HERE)] == "dscp"
    assert facts["nic.pfc.priorities", Subject(Scope.NIC, "eth3", HERE)] is Status.TIMEOUT
    assert any("eth3/speed" in o.detail for o in found)


@pytest.mark.process
def test_a_machine_without_any(tmp_path: Path) -> None:
    (tmp_path / "sys/class/net").mkdir(parents=True)
    facts = told(read(FORMAT, collect("interfaces", tmp_path)))
    assert facts["node.roce.interfaces", HERE] == ()
    missing = told(read(FORMAT, collect("interfaces", tmp_path / "nothing")))
    assert missing["node.roce.interfaces", HERE] is Status.UNSUPPORTED


@pytest.mark.process
def test_this_machine() -> None:
    data = document(collect("interfaces", None, "--window", "0.05"))
    assert sorted(data["interfaces"]) == OWN
    for record in data["interfaces"].values():
        assert "hung" not in record
        for reading in record["readings"] if isinstance(record["readings"], list) else ():
            assert all(isinstance(v, int) for k, v in reading["counters"].items() if k != "error")
    assert_in_vocabulary(read(FORMAT, collect("interfaces", None, "--window", "0")), FORMAT)


@pytest.mark.process
@pytest.mark.skipif(
    not OWN or not shutil.which("ethtool"), reason="no interface with hardware behind it, or no ethtool"
)
def test_counters_are_those_of_ethtool() -> None:
    for name, record in document(collect("interfaces", None, "--window", "0"))["interfaces"].items():
        done = subprocess.run(["ethtool", "-S", name], capture_output=True, text=True, timeout=10, check=False)
        printed = {line.split(":")[0].strip() for line in done.stdout.splitlines()}
        if isinstance(record["readings"], list):
            assert set(record["readings"][0]["counters"]) <= printed


# --- what the kernel answers, byte for byte ---------------------------------------------------------


def collector() -> Any:
    spec = importlib.util.spec_from_file_location("interfaces_collector", FOLDER / "interfaces.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attribute(kind: int, value: bytes) -> bytes:
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust((4 + len(value) + 3) & ~3, b"\0")


def message(body: bytes, kind: int = 78) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


def test_a_message_of_dcb() -> None:
    """Built by the headers: struct ieee_pfc, dcb_app, and the numbers of linux/dcbnl.h."""
    pfc = struct.pack("=BBBxH2x8Q8Q", 8, 1 << 3, 0, 0, *[0] * 16)
    apps = attribute(1, struct.pack("=BBH", 5, 3, 26)) + attribute(1, struct.pack("=BBH", 1, 3, 0x8906))
    ieee = (
        attribute(1, b"\0" * 58)
        + attribute(2, pfc)
        + attribute(3 | 0x8000, apps)
        + attribute(11 | 0x8000, attribute(1, b"\5"))
    )
    body = struct.pack("=BBH", 0, 21, 0) + attribute(1, b"eth2\0") + attribute(13 | 0x8000, ieee)
    assert collector().understood(message(body)) == {
        "pfc_capable": 8, "pfc": 8, "apps": [[5, 3, 26], [1, 3, 0x8906]], "trusted": [5],
    }  # fmt: skip


def test_a_refusal_of_dcb_is_the_kernels_error() -> None:
    with pytest.raises(OSError, match="not supported"):
        collector().understood(message(struct.pack("=i", -95) + b"\0" * 16, kind=2))
    assert collector().understood(message(b"\0\x15\0\0" + b"\xff\xff\1\0cut")) == {}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("rx_prio3_pause", True), ("rx_pause_ctrl_phy", True), ("tx_pause_storm_error_events", True), ("module_high_temp", True),
        ("rx_priority_3_xoff.nic", True), ("outbound_pci_stalled_wr", True), ("rx_err_lane_2_phy", True), ("rx_bytes_phy", False),
        ("rx12_drops", False), ("rx_queue_3_drops", False), ("[4]: rx_discards", False), ("rx-7.errors", False), ("ch3_poll", False),
    ],
)  # fmt: skip
def test_which_counters_are_kept(name: str, kept: bool) -> None:
    module = collector()
    assert bool(module.KEPT.search(name) and not module.QUEUE.search(name)) is kept
