"""Diagnoses of the network and the storage around the GPUs: silence on a healthy node, the right causes on a sick one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from assistant.diagnosis import diagnose
from assistant.sources import parse_text
from rules.engine import Role
from rules.loader import load
from rules.model import Severity
from tests.cases import each
from tests.probes.live.test_network_storage import WRITES
from tests.probes.parse import test_filesystems_snapshot
from tests.probes.parse.smi_case import capture
from tests.probes.parse.test_interfaces_snapshot import document, port

LINKS = ("mlxlink.healthy-optical.txt", "mlxlink.healthy-copper.txt", "ethtool-m.healthy.txt",
         "ethtool-m.half-used.txt", "ethtool-m.copper.txt", "ethtool-m.sfp.txt", "ethtool-m.dark.txt", "ethtool-S.healthy-mlx5.txt",
         "ethtool-S.healthy-bnxt.txt", "mlnx_qos.lossless.txt")  # fmt: skip


def check(*documents: str, least: Severity = Severity.WARNING) -> dict[str, Role]:
    """Rules that matched, and what each is to the others."""
    seen = [o for text in documents for o in parse_text("input", text)]
    return {f.rule.id: f.role for f in diagnose(seen, load()).findings if f.severity.rank >= least.rank}


def filesystems(**more: Any) -> str:
    return test_filesystems_snapshot.document(at_ns=WRITES["at_ns"], **more)


@each("name", LINKS)
def test_nothing_is_wrong_with_a_healthy_link(name: str) -> None:
    assert check(capture(f"network/{name}")) == {}


def test_a_port_that_was_asked_about_and_has_no_cable_is_said() -> None:
    assert check(capture("network/mlxlink.no-cable.json")) == {"adapter-names-why-link-is-down": Role.ROOT}


def test_a_dark_port_is_a_hint() -> None:
    found = check(capture("network/ethtool-m.dark.txt"), least=Severity.INFO)
    assert set(found) == {"module-raises-alarms", "module-receives-no-light"}


def test_a_port_without_a_cable_says_so() -> None:
    assert set(check(capture("network/mlxlink.no-cable.json"), least=Severity.INFO)) == {
        "adapter-names-why-link-is-down"
    }


def test_a_weak_module_explains_bit_errors() -> None:
    found = check(capture("network/mlxlink.sick.json"))
    assert set(found) == {"module-receives-little-light", "module-sends-little-light", "module-too-hot", "link-bit-errors-high",
                          "adapter-reports-link-fault"}  # fmt: skip
    assert found["module-receives-little-light"] is Role.ROOT
    assert found["link-bit-errors-high"] is Role.SYMPTOM


NFS = "43 27 0:52 / /scratch rw,relatime - nfs4 filer-1:/scratch rw,vers=4.2,hard,proto=tcp,timeo=600,retrans=2"
ROOM = {
    "frsize": 1 << 20,
    "blocks": 1 << 30,
    "bfree": 1 << 29,
    "bavail": 1 << 29,
    "files": 10**9,
    "ffree": 9**9,
    "favail": 9**9,
    "flag": 4096,
}
XPRT = "xprt: tcp 731 0 1 0 0 {} {} 0 9 0 2 0 0"


def test_a_healthy_node_stays_silent() -> None:
    """Eight RoCE ports under load with some pauses, a bond, an NFS server that answers, and a checkpoint that is written."""
    ports = {f"eth{i}": port({"rx_prio3_pause_duration": 15000, "rx_pause_ctrl_phy": 9000}) for i in range(8)}
    ports["eno1"] = {"operstate": "up", "type": "1", "mtu": "1500", "driver": "ixgbe", "rdma": [], "readings": [],
                     "pause": {"autoneg": True, "rx": True, "tx": True}, "fec": {"error": "ENOTSUP: x"}, "dcb": {"pfc": 0}}  # fmt: skip
    bond = "Bonding Mode: fault-tolerance (active-backup)\n\nSlave Interface: eno1\nMII Status: up\n\nSlave Interface: eno2\nMII Status: up"
    storage = filesystems(
        mounts=[{"line": NFS, "statvfs": ROOM}, {"line": "27 1 254:0 / / rw - xfs /dev/vda rw", "statvfs": ROOM}],
        disks={"seconds": 0.5, "devices": {"254:0": ["254 0 vda 1 0 8 1 1 0 8 1 0 1 2", "254 0 vda 9 0 8 3 99 0 8 88 1 200 94"]}},
        nfs=[{"mount": "/scratch", "seconds": 0.5, "first": [XPRT.format(9, 9), "WRITE: 9 9 0 9 9 1 18 20 0"],
              "second": [XPRT.format(99, 97), "WRITE: 97 97 0 9 9 9 270 300 0"]}],
    )  # fmt: skip
    assert check(document(ports, bonds={"bond0": bond.splitlines()}), storage, json.dumps(WRITES)) == {}


def test_a_slow_slot_is_the_root_of_a_pause_storm() -> None:
    sick = {
        "tx_pause_storm_error_events": 1,
        "tx_prio3_pause_duration": 400000,
        "outbound_pci_stalled_wr": 88,
        "rx_discards_phy": 70000,
    }
    ports = {f"eth{i}": port() for i in range(7)} | {"eth7": port(sick)}
    found = check(document(ports))
    assert found == {
        "adapter-waits-for-pcie": Role.ROOT, "pfc-storm-cut-off": Role.SYMPTOM, "port-pauses-network": Role.SYMPTOM,
        "port-drops-for-want-of-buffers": Role.SYMPTOM,
    }  # fmt: skip
    assert set(check(document(ports), least=Severity.ERROR)) == {"pfc-storm-cut-off"}


def test_a_stalled_server_is_the_root_of_a_blocked_checkpoint() -> None:
    readings = [[XPRT.format(sent, 80), "WRITE: 9 9 0 9 9 1 18 20 0"] for sent in (90, 95, 95)]
    record = {"mount": "/scratch", "seconds": 0.5, **dict(zip(("first", "second", "third"), readings, strict=True))}
    storage = filesystems(mounts=[{"line": NFS, "statvfs": ROOM}], nfs=[record])
    writer = copy.deepcopy(WRITES)
    writer["processes"]["4242"]["blocked"] = 1
    writer["processes"]["4242"]["files"][0]["pos"] = [40 << 30, 40 << 30]
    found = check(storage, json.dumps(writer))
    assert found == {
        "nfs-requests-unanswered": Role.ROOT,
        "checkpoint-writer-blocked": Role.SYMPTOM,
    }


@each(
    ("log", "wanted"),
    [
        ("[100.1] nfs: server 10.8.0.5 not responding, still trying\n[230.1] INFO: task python:44120 blocked for more than 120 seconds.\n[671.1] nfs: server 10.8.0.5 OK\n",
         ["file-system-stalled"]),
        ("[100.1] nfs: server 10.8.0.5 not responding, still trying\n[130.1] nfs: server 10.8.0.5 OK\n", []),  # no more than information
    ],
)  # fmt: skip
def test_a_server_that_was_away_long_enough_is_the_root_of_what_hung(log: str, wanted: list[str]) -> None:
    roots = [f.rule.id for f in diagnose(parse_text("kmsg", log), load()).findings if f.counts and not f.behind]
    assert roots == wanted


def test_a_checkpoint_that_will_not_fit() -> None:
    tight = {**ROOM, "bfree": 30000, "bavail": 30000}  # MiB; the file has 40 GiB
    assert set(check(filesystems(mounts=[{"line": NFS, "statvfs": tight}]), json.dumps(WRITES))) == {
        "checkpoint-may-not-fit"
    }


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("44 27 0:33 / /scratch rw - tmpfs tmpfs rw", {"checkpoint-in-memory"}),
        ("28 1 0:52 / / rw - overlay overlay rw", {"checkpoint-in-container-layer"}),
        (NFS, set()),
    ],
)
def test_where_checkpoints_do_not_last(line: str, wanted: set[str]) -> None:
    writer = copy.deepcopy(WRITES)
    writer["processes"]["4242"]["files"][0]["mount"] = line.split()[4]
    found = check(filesystems(mounts=[{"line": line, "statvfs": ROOM}]), json.dumps(writer), least=Severity.INFO)
    assert set(found) == wanted


def test_a_full_target_and_one_of_another_name() -> None:
    def target(number: int, left: int) -> list[dict[str, str]]:
        where = f"/sys/fs/lustre/osc/scratch-OST000{number}-osc-ffff8881a2b3c000"
        return [
            {"path": f"{where}/{k}", "text": str(v)}
            for k, v in (("kbytestotal", 10**11), ("kbytesavail", left), ("active", 1))
        ]

    assert set(check(filesystems(lustre=[*target(0, 5 * 10**10), *target(1, 10**6)]))) == {"storage-target-full"}
    assert check(filesystems(lustre=[*target(0, 5 * 10**10), *target(1, 9 * 10**9)])) == {}


def test_a_bond_that_lost_half() -> None:
    text = "Bonding Mode: fault-tolerance (active-backup)\n\nSlave Interface: eno1\nMII Status: up\n\nSlave Interface: eno2\nMII Status: down"
    assert set(check(document(bonds={"bond0": text.splitlines()}))) == {"bond-member-down"}


def test_marks_that_nobody_answers() -> None:
    """Counters of another driver mean the same: bnxt_re, as its hw_counters name them."""

    def reading(at: int, marked: int) -> dict[str, Any]:
        counts = {"rx_ecn_marked_pkts": str(marked), "tx_cnp_pkts": "5", "seq_err_naks_rcvd": "0"}
        return {"monotonic_ns": at, "until_ns": 1, "ports": {"1": {"counters": {}, "hw_counters": counts}}}

    record = {"hca_type": "BCM57608", "ports": {"1": {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
              "link_layer": "Ethernet"}}, "readings": [reading(10**9, 100), reading(10**9 + 500_000_000, 90000)]}  # fmt: skip
    text = json.dumps({"schema": "gpudiag/rdma/1", "at_ns": WRITES["at_ns"], "monotonic_ns": 10**9, "host": "n7",
                       "listing": {"count": 1}, "adapters": {"bnxt_re0": record}})  # fmt: skip
    assert set(check(text)) == {"congestion-marks-unanswered"}
