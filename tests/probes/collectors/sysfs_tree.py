"""A GPU node as files: what sysfs, /proc and /dev show of 8 GPUs, 4 NVSwitches and 8 RDMA adapters.

Written for these tests in the formats of the kernel's documentation; hosts and identifiers are invented.
Every part can be made sick afterwards by writing over a file (`put`), or by a FIFO where a read shall hang (`block`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path

GPU, NVSWITCH, NIC = "10de:2330", "10de:22a3", "15b3:1021"
ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
_CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF")
_UNCORRECTABLE = ("Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP",
                  "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr")  # fmt: skip
_COUNTERS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors",
             "port_rcv_switch_relay_errors", "port_rcv_constraint_errors", "port_xmit_constraint_errors",
             "port_xmit_discards", "port_xmit_wait", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
             "VL15_dropped", "port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets")  # fmt: skip
_HARDWARE = ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "out_of_buffer",
             "duplicate_request", "implied_nak_seq_err", "np_cnp_sent", "rp_cnp_handled", "lifespan")  # fmt: skip
_STATISTICS = ("rx_bytes", "tx_bytes", "rx_errors", "rx_dropped", "rx_crc_errors", "rx_missed_errors", "tx_errors",
               "tx_dropped", "tx_carrier_errors")  # fmt: skip


def put(path: Path, content: str | bytes) -> None:
    """Write a file, whatever was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())


def block(path: Path) -> None:
    """Make reading `path` wait for ever, as a read of a dead device does."""
    path.unlink()
    os.mkfifo(path)


def answers(path: Path, *texts: str) -> threading.Thread:
    """Give each reader of `path` the next text: what a file shows at each reading. After the last one, reading waits for ever.

    Once a reader is there, the next one finds another FIFO: however long it takes, it gets its own text and its end.
    """
    waiting = [Path(tempfile.mkdtemp()) / "next" for _ in texts]
    for fifo in waiting:
        os.mkfifo(fifo)
    block(path)

    def write() -> None:
        for text, behind in zip(texts, waiting, strict=True):
            with path.open("w", encoding="utf-8") as reader:
                behind.replace(path)
                behind.parent.rmdir()
                reader.write(text)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def link(path: Path, target: Path | str) -> None:
    """A relative link, as in sysfs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.symlink_to(os.path.relpath(target, path.parent) if isinstance(target, Path) else target)


def errors(names: tuple[str, ...], total: str, **counts: int) -> str:
    """The text of an aer_dev_* file."""
    lines = [f"{name} {counts.get(name, 0)}" for name in names]
    return "\n".join([*lines, f"TOTAL_ERR_{total} {sum(counts.values())}"])


def correctable(**counts: int) -> str:
    """``aer_dev_correctable``."""
    return errors(_CORRECTABLE, "COR", **counts)


def uncorrectable(total: str, **counts: int) -> str:
    """``aer_dev_fatal`` (FATAL) and ``aer_dev_nonfatal`` (NONFATAL)."""
    return errors(_UNCORRECTABLE, total, **counts)


def config(ids: str, port: int, *, acs: int | None = None, latched: tuple[int, int] = (0, 0)) -> bytes:
    """A configuration space with a PCI Express, an AER and, when `acs` is given, an ACS capability."""
    data = bytearray(4096)
    vendor, device = (int(part, 16) for part in ids.split(":"))
    data[0:4] = vendor.to_bytes(2, "little") + device.to_bytes(2, "little")
    data[6:8] = (0x0010).to_bytes(2, "little")  # a list of capabilities
    data[0x34] = 0x40
    data[0x40:0x44] = bytes([0x01, 0x60, 0x03, 0x00])  # power management, next at 0x60
    data[0x60:0x64] = bytes([0x10, 0x00, 0x02 | port << 4, 0x00])  # PCI Express, the last
    data[0x100:0x104] = (0x0001 | 2 << 16 | 0x148 << 20).to_bytes(4, "little")
    data[0x104:0x108] = latched[0].to_bytes(4, "little")
    data[0x110:0x114] = latched[1].to_bytes(4, "little")
    if acs is None:
        data[0x100:0x104] = (0x0001 | 2 << 16).to_bytes(4, "little")
    else:
        data[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        data[0x14C:0x150] = (0x5F).to_bytes(2, "little") + acs.to_bytes(2, "little")
    return bytes(data)


class Node:
    """The tree below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gpus: list[str] = []
        self.nics: list[str] = []
        self.nvswitches: list[str] = []
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        put(root / "proc/sys/kernel/random/boot_id", "0b0e2b0a-1111-4222-8333-944455556666")

    def pci(self, address: str) -> Path:
        """The folder of a function."""
        return (self.root / "sys/bus/pci/devices" / address).resolve()

    def function(
        self, address: str, above: str, class_: str, ids: str, *, port: int = ENDPOINT, numa: int = 0, driver: str = "",
        speed: str = "32.0 GT/s PCIe", width: int = 16, acs: int | None = None, group: int | None = None, bar: int = 0,
    ) -> Path:  # fmt: skip
        """One function below `above`, which is an address or a root bus."""
        parent = self.root / "sys/devices" / above if above.startswith("pci") else self.pci(above)
        here = parent / address
        vendor, device = ids.split(":")
        texts = {
            "class": f"0x{class_}", "vendor": f"0x{vendor}", "device": f"0x{device}", "subsystem_vendor": f"0x{vendor}",
            "subsystem_device": "0x16c1", "revision": "0xa1", "numa_node": numa, "local_cpulist": "0-55", "enable": 1,
            "current_link_speed": speed, "max_link_speed": "32.0 GT/s PCIe", "current_link_width": width,
            "max_link_width": 16, "power_state": "D0", "power/runtime_status": "active", "power/control": "on",
            "d3cold_allowed": 1, "reset_method": "flr bus", "aer_dev_correctable": correctable(),
            "aer_dev_nonfatal": uncorrectable("NONFATAL"), "aer_dev_fatal": uncorrectable("FATAL"),
            "resource": f"0x0000210000000000 0x{0x210000000000 + (bar or 16 << 20) - 1:016x} 0x0000000000140204\n"
            + "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 12,
        }  # fmt: skip
        if port == ROOT_PORT:
            texts |= {f"aer_rootport_total_err_{kind}": "0" for kind in ("cor", "nonfatal", "fatal")}
        for name, text in texts.items():
            put(here / name, str(text).rstrip("\n"))
        put(here / "config", config(ids, port, acs=acs))
        if driver:
            link(here / "driver", f"../../../bus/pci/drivers/{driver}")
        if group is not None:
            link(here / "iommu_group", f"../../../kernel/iommu_groups/{group}")
        link(self.root / "sys/bus/pci/devices" / address, here)
        return here

    def switch(self, bus: int, numa: int) -> tuple[str, str]:
        """A root port with a switch of two ports below; the addresses of the two."""
        top, up = f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"
        ports = f"0000:{bus + 2:02x}:00.0", f"0000:{bus + 2:02x}:01.0"
        self.function(
            top, f"pci0000:{bus:02x}", "060400", "8086:352a", port=ROOT_PORT, numa=numa, driver="pcieport", acs=0x1D
        )
        self.function(up, top, "060400", "1000:c030", port=UPSTREAM, numa=numa, driver="pcieport")
        for address in ports:
            self.function(address, up, "060400", "1000:c030", port=DOWNSTREAM, numa=numa, driver="pcieport", acs=0)
        return ports

    def gpu(self, address: str, above: str, index: int, numa: int) -> None:
        """A GPU with its entry in /proc and its device file."""
        self.function(address, above, "030200", GPU, numa=numa, driver="nvidia", bar=16 << 20)
        uuid = f"GPU-0a1b2c3d-{index:04x}-4e5f-8a9b-0c1d2e3f4a5b"
        put(
            self.root / f"proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 300\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.89.00.01\n"
            f"Bus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t {address}\nDevice Minor: \t {index}\nGPU Excluded:\t No",
        )
        self.device_file(f"nvidia{index}")
        self.gpus.append(address)

    def device_file(self, name: str, mode: int = 0o666) -> Path:
        """A device file; a plain one, since tests may not make others."""
        path = self.root / "dev" / name
        put(path, "")
        path.chmod(mode)
        return path

    def driver(self, *modules: str, version: str = "550.54.15") -> None:
        """The driver's own files and the loaded modules."""
        lines = [f"{name} 4096 1 - Live 0x0000000000000000 (POE)" for name in modules]
        put(self.root / "proc/modules", "\n".join(["xfs 1 1 - Live 0x0", *lines]))
        if "nvidia" in modules:
            text = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\nGCC version:  gcc 12"
            put(self.root / "proc/driver/nvidia/version", text)
            put(self.root / "proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nDeviceFileMode: 438")
            for name in ("nvidiactl", "nvidia-uvm"):
                self.device_file(name)

    def adapter(
        self, index: int, pci: str, *, layer: str = "InfiniBand", rate: str = "400 Gb/sec (4X NDR)", state: str = "4: ACTIVE",
        phys: str = "5: LinkUp",
    ) -> Path:  # fmt: skip
        """An RDMA device with one port and the interface behind it."""
        name, here = f"mlx5_{index}", self.pci(pci) / f"infiniband/mlx5_{index}"
        fields = {"node_type": "1: CA", "node_guid": f"946d:ae03:004b:{index:04x}", "fw_ver": "28.39.1002", "hca_type": "MT4129",
                  "board_id": "MT_0000000838", "hw_rev": "0x0", "node_desc": f"gpu-1 {name}"}  # fmt: skip
        for key, value in fields.items():
            put(here / key, value)
        port = here / "ports/1"
        texts = {"state": state, "phys_state": phys, "rate": rate, "link_layer": layer, "lid": f"0x{index + 1:x}",
                 "sm_lid": "0x1", "gids/0": f"fe80:0000:0000:0000:946d:ae03:004b:{index:04x}",
                 "gid_attrs/types/0": "IB/RoCE v1"}  # fmt: skip
        texts |= {f"counters/{c}": "0" for c in _COUNTERS} | {f"hw_counters/{c}": "0" for c in _HARDWARE}
        for key, value in texts.items():
            put(port / key, value)
        for gid in range(1, 16):
            put(port / f"gids/{gid}", "0000:0000:0000:0000:0000:0000:0000:0000")
        link(here / "device", f"../../../{pci}")
        link(self.root / "sys/class/infiniband" / name, here)
        nic = self.pci(pci) / f"net/ibp{index}s0"
        up = state == "4: ACTIVE"
        infiniband = layer == "InfiniBand"
        facts = {"operstate": "up" if up else "down", "carrier": int(up), "type": 32 if infiniband else 1, "mtu": 4092,
                 "speed": 400000 if up else -1, "flags": "0x1003", "carrier_changes": 2, "carrier_down_count": 1}  # fmt: skip
        for file, shown in (facts | {f"statistics/{s}": 0 for s in _STATISTICS}).items():
            put(nic / file, str(shown))
        link(self.root / "sys/class/net" / nic.name, nic)
        return here

    def slot(self, name: str, address: str) -> None:
        """A slot that the platform names."""
        put(self.root / f"sys/bus/pci/slots/{name}/address", address.rpartition(".")[0])

    def counter(self, index: int, file: str) -> Path:
        """A counter of an adapter's port: ``counters/symbol_error``."""
        return (self.root / f"sys/class/infiniband/mlx5_{index}").resolve() / "ports/1" / file

    def remove(self, address: str) -> None:
        """Take a function off the bus."""
        here = self.pci(address)
        (self.root / "sys/bus/pci/devices" / address).unlink()
        shutil.rmtree(here)


def healthy(root: Path) -> Node:
    """Two sockets, each with four switches that carry a GPU and an adapter, and two NVSwitches.

    Its two thousand files are written once a process and shared by hard links: `put`, `block` and `restrict` make a file
    this tree's own before they change it.
    """
    first = _first()
    node = Node(root)
    node.gpus, node.nics, node.nvswitches = first.gpus[:], first.nics[:], first.nvswitches[:]
    _share(first.root, root)
    return node


def restrict(path: Path, mode: int) -> None:
    """Give a file other rights."""
    put(path, path.read_bytes())
    path.chmod(mode)


@cache
def _first() -> Node:
    """The tree that the others share."""
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-sysfs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _healthy(folder)


def _share(source: Path, target: Path) -> None:
    """The same folders and links, and the same files."""
    target.mkdir(exist_ok=True)
    for entry in os.scandir(source):
        there = target / entry.name
        if entry.is_symlink():
            there.symlink_to(os.readlink(entry.path))  # noqa: PTH115 - an entry is no Path
        elif entry.is_dir():
            _share(Path(entry.path), there)
        elif not there.exists():
            try:
                os.link(entry.path, there)
            except OSError:  # tests keep their folders on another file system
                shutil.copyfile(entry.path, there)


def _healthy(root: Path) -> Node:
    node = Node(root)
    for index in range(8):
        numa, bus = index // 4, 0x10 + 0x10 * index
        left, right = node.switch(bus, numa)
        nic = f"0000:{bus + 4:02x}:00.0"
        node.gpu(f"0000:{bus + 3:02x}:00.0", left, index, numa)
        node.function(nic, right, "020700", NIC, numa=numa, driver="mlx5_core")
        node.nics.append(nic)
        node.adapter(index, nic)
    for index in range(4):
        bus = 0xA0 + 2 * index
        node.function(
            f"0000:{bus:02x}:01.0", f"pci0000:{bus:02x}", "060400", "8086:352a", port=ROOT_PORT, numa=1, acs=0x1D
        )
        address = f"0000:{bus + 1:02x}:00.0"
        node.function(address, f"0000:{bus:02x}:01.0", "068000", NVSWITCH, numa=1, driver="nvidia-nvswitch")
        node.nvswitches.append(address)
    node.driver("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "mlx5_core", "mlx5_ib", "ib_core")
    node.slot("21", node.gpus[0])
    return node
