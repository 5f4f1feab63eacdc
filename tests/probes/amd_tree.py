"""GPUs of AMD as files, put into the tree of `sysfs_tree`: what the bus and the driver amdgpu show in sysfs."""

from __future__ import annotations

from pathlib import Path

from tests.probes.collectors.sysfs_tree import Node, link, put

GPUS = ("0000:05:00.0", "0000:15:00.0", "0000:65:00.0", "0000:75:00.0")
BLOCKS = ("umc", "sdma", "gfx", "mmhub", "xgmi_wafl")
_FILES = {
    "product_name": "AMD Instinct MI300X OAM", "vbios_version": "113-M3000100-102", "gpu_busy_percent": "97",
    "mem_info_vram_total": "206141652992", "mem_info_vram_used": "179000000000", "pcie_replay_count": "0",
}  # fmt: skip
_SENSORS = {
    "temp2_label": "junction", "temp2_input": "71000", "temp2_crit": "100000", "temp2_emergency": "110000",
    "temp3_label": "mem", "temp3_input": "58000", "temp3_crit": "105000", "temp3_emergency": "115000",
    "power1_input": "612000000", "power1_cap": "750000000", "freq1_label": "sclk", "freq1_input": "1945000000",
}  # fmt: skip


def machine(root: Path, *, driver: bool = True) -> Node:
    """Four MI300X and no GPU of NVIDIA; without `driver` nothing is bound to them."""
    node = Node(root)
    for number, address in enumerate(GPUS):
        bus, numa = int(address[5:7], 16) - 1, number // 2
        top = f"0000:{bus:02x}:01.0"
        node.function(top, f"pci0000:{bus:02x}", "060400", "8086:352a", port=4, numa=numa, driver="pcieport", acs=0x1D)
        here = node.function(address, top, "120000", "1002:74a1", numa=numa, driver="amdgpu" if driver else "")
        if driver:
            _show(root, here, address, number)
    put(root / "proc/sys/kernel/hostname", "gpu-1")
    put(root / "proc/modules", "amdgpu 12345678 0 - Live 0x0000000000000000" if driver else "ahci 1 0 - Live 0x0")
    return node


def _show(root: Path, here: Path, address: str, number: int) -> None:
    link(root / "sys/bus/pci/drivers/amdgpu" / address, here)
    for name, text in (_FILES | {"serial_number": f"69243900011{number}"}).items():
        put(here / name, text)
    for name, text in _SENSORS.items():
        put(here / "hwmon/hwmon3" / name, text)
    for block in BLOCKS:
        put(here / f"ras/{block}_err_count", "ue: 0\nce: 0\nde: 0")
    put(here / "ras/gpu_vram_bad_pages", "")
    put(here / "power/runtime_status", "active")


def sicken(node: Node, address: str = GPUS[2]) -> None:
    """Errors of one GPU's memory, two of its pages taken out of use."""
    here = node.pci(address)
    put(here / "ras/umc_err_count", "ue: 2\nce: 7\nde: 1")
    put(here / "ras/gpu_vram_bad_pages", "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P")
