"""Whose accelerator a PCI function is, by vendor, class and, for graphics cards, driver.

Numbers: the PCI ID Repository (pci.ids) for AMD, Intel, Huawei, Habana, Moore Threads, Hygon (Chengdu Haiguang),
Enflame, Baidu, Alibaba, Graphcore and FuriosaAI; device plugins of the vendors for Cambricon (cabc), Iluvatar (1e3e) and
Tenstorrent (1e52). A class of display controllers is shared with what drives a screen: chips of board management
controllers (ASPEED, Matrox, Huawei's Hi171x), emulated cards of virtual machines, and the graphics in a processor.
Those are no accelerators.
"""

from __future__ import annotations

NVIDIA = "10de"
VENDORS = {
    "1002": "amd", "8086": "intel", "19e5": "huawei", "1da3": "habana", "1ed5": "moorethreads", "cabc": "cambricon",
    "1d94": "hygon", "1e36": "enflame", "1e3e": "iluvatar", "1d22": "kunlunxin", "1ded": "thead", "1e52": "tenstorrent",
    "1d95": "graphcore", "1ed2": "furiosa",
}  # fmt: skip
# How lspci begins the names of the same vendors, where it does not print numbers.
NAMES = {
    "Advanced Micro Devices": "1002", "Intel Corporation": "8086", "Huawei": "19e5", "Habana Labs": "1da3",
    "Moore Threads": "1ed5", "Cambricon": "cabc", "Chengdu Haiguang": "1d94", "Shanghai Enflame": "1e36",
    "Iluvatar": "1e3e", "Baidu": "1d22", "Alibaba": "1ded", "Tenstorrent": "1e52", "Graphcore": "1d95", "FuriosaAI": "1ed2",
}  # fmt: skip
_HUAWEI = "19e5"  # what it has of class VGA are the Hi171x of its boards
_PROCESSING, _COMPUTE, _OTHER_DISPLAY, _VGA = "1200", "0302", "0380", "0300"
# Vendors whose devices of class 1200 are no GPUs: FPGAs (Xilinx, Altera), Intel's NPUs within processors.
_NOT_PROCESSORS = frozenset({NVIDIA, "8086", "10ee", "1172"})
# Cards that can drive a screen count when the driver that computes on them has them.
_GRAPHICS_DRIVERS = frozenset({"amdgpu", "i915", "xe", "mtgpu"})


def accelerator(vendor: str, class_: str, pci: str = "", driver: str = "") -> str:
    """The word of the fact ``pci.accelerator``; empty for a device that is none, and for NVIDIA's.

    `vendor` and `class_` are four hex digits each, `pci` an address, `driver` the bound driver (empty for none or unknown).
    """
    name = VENDORS.get(vendor, "")
    if class_ == _PROCESSING:
        return "" if vendor in _NOT_PROCESSORS else name or "other"
    if vendor == NVIDIA or _in_the_processor(vendor, pci):
        return ""
    if class_ == _COMPUTE:
        return name or "other"
    if class_ == _OTHER_DISPLAY:
        return name
    if class_ == _VGA:
        return name if driver in _GRAPHICS_DRIVERS else ""
    return ""


def may_be_gpu(vendor: str, class_: str, pci: str = "", driver: str = "") -> bool:
    """Whether a function is a GPU or accelerator of another vendor than NVIDIA, or may be one: a graphics card that no
    compute driver has may be. What only drives a screen is none, nor is a device of a vendor that makes no GPUs."""
    if accelerator(vendor, class_, pci, driver):
        return True
    maker = vendor in VENDORS and vendor != _HUAWEI and not _in_the_processor(vendor, pci)
    return maker and class_ == _VGA


def _in_the_processor(vendor: str, pci: str) -> bool:
    """Intel's integrated graphics are device 2 of the root bus (00:02.0)."""
    return vendor == "8086" and pci.endswith(("0000:00:02.0", "0000:00:02.1"))
