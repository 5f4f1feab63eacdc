"""One PCI function of a `pci` snapshot: identity, what it says in its configuration space, links, error counters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knowledge.identity import is_pci, normalise_pci
from knowledge.record import dataclass
from probes.parse._sysfs import table, whole, words

NVIDIA, MELLANOX = "0x10de", "0x15b3"
# Names of the PCI SIG's class codes, as pci.ids spells them
CLASSES = {
    "0108": "Non-Volatile memory controller", "0200": "Ethernet controller", "0207": "Infiniband controller",
    "0280": "Network controller", "0300": "VGA compatible controller", "0302": "3D controller",
    "0380": "Display controller", "0604": "PCI bridge", "0680": "Bridge", "0c06": "InfiniBand", "1200": "Processing accelerators",
}  # fmt: skip
VENDORS = {"0x10de": "NVIDIA", "0x15b3": "Mellanox", "0x1002": "AMD", "0x8086": "Intel", "0x14e4": "Broadcom",
           "0x1d0f": "Amazon", "0x1000": "Broadcom/LSI", "0x11f8": "Microchip", "0x1022": "AMD",
           "0x19e5": "Huawei", "0x1da3": "Habana Labs", "0x1ed5": "Moore Threads", "0xcabc": "Cambricon", "0x1d94": "Hygon",
           "0x1e36": "Enflame", "0x1e3e": "Iluvatar CoreX", "0x1d22": "Baidu", "0x1ded": "Alibaba", "0x1e52": "Tenstorrent",
           "0x1d95": "Graphcore", "0x1ed2": "FuriosaAI"}  # fmt: skip
# AER status bits, PCI Express base specification 7.8.4; the names are those of lspci
UNCORRECTABLE = {4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt", 17: "RxOF",
                 18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol"}  # fmt: skip
CORRECTABLE = {0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout", 13: "AdvNonFatalErr"}
AER_CORRECTABLE = 0x10  # offset of their status register in the capability
# Corrected errors of the physical and the data link layer: a damaged signal. The rest is advisory.
SIGNAL = frozenset(("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"))
ROOT_PORT, DOWNSTREAM = 4, 6  # device/port type of the PCI Express capabilities register
WIDTHS = (1, 2, 4, 8, 12, 16, 32)  # 0 and 63 are what a link that is down or a device that is gone gives

# 32.0 GT/s PCIe
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s")
# 0x0000004000100000 0x000000400017ffff 0x0000000000140204
_REGION = re.compile(r"0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16})")
# BadTLP 12
_COUNT = re.compile(r"(\w{1,40}) ([0-9]{1,20})")
_MEMORY = 0x200  # IORESOURCE_MEM


@dataclass(frozen=True, slots=True)
class Device:
    """One function, as the collector kept it."""

    pci: str
    raw: Mapping[str, Any]
    kind: str  # one of pci.kind

    @property
    def folder(self) -> str:
        """Where a person finds it."""
        return f"/sys/bus/pci/devices/{self.pci}"

    @property
    def function(self) -> bool:
        """True for a virtual function (SR-IOV), which is a share of another device."""
        return bool(words(self.raw.get("physfn")))

    @property
    def ids(self) -> str:
        """``10de:2330``; empty when not told."""
        parts = [words(self.raw.get(key)).removeprefix("0x") for key in ("vendor", "device")]
        return ":".join(parts) if all(parts) else ""

    @property
    def config(self) -> dict[str, Any]:
        """What its configuration space gave."""
        return table(self.raw.get("config"))

    @property
    def answers(self) -> bool | None:
        """False when its configuration space reads as ones; None when it was not read."""
        head = words(self.config.get("head"))
        return None if len(head) < 8 else head[:8] != "ffffffff"

    @property
    def hung(self) -> str:
        """The file that did not come back; empty when all did."""
        return words(self.raw.get("hung"))

    @property
    def silence(self) -> str:
        """Why what is not told of the device was not read; empty when everything was read."""
        if self.hung:
            waited = self.raw.get("waited_s")
            return f"{self.hung} did not come back" + (f" within {waited:g} s" if isinstance(waited, float) else "")
        return "the time was spent before this device was read" if "unread" in self.raw else ""

    @property
    def driver(self) -> str | None:
        """Bound driver, empty for none; None when not told."""
        if self.raw.get("driver") is None:
            return None if self.silence or "device" not in self.raw else ""
        return words(self.raw["driver"]) or None

    @property
    def path(self) -> list[str]:
        """Addresses from the root port down to the device itself."""
        path = self.raw.get("path")
        return [p for p in path if isinstance(p, str)] if isinstance(path, list) else []

    def bytes_of(self, capability: str) -> bytes:
        """A capability of the configuration space; empty when it is not there or may not be read."""
        text = words(self.config.get(capability))
        return bytes.fromhex(text) if re.fullmatch(r"(?:[0-9a-f]{2}){1,256}", text) else b""

    @property
    def port_type(self) -> int | None:
        """Device/port type of PCI Express; None when it may not be read."""
        data = self.bytes_of("express")
        return data[2] >> 4 if len(data) > 2 else None

    def speed(self, which: str) -> float | None:
        """``current`` or ``max`` speed in GT/s."""
        found = _SPEED.match(words(self.raw.get(f"{which}_link_speed")))
        return float(found[1]) if found and float(found[1]) > 0 else None

    def width(self, which: str) -> int | None:
        """``current`` or ``max`` lanes."""
        lanes = whole(self.raw.get(f"{which}_link_width"))
        return lanes if lanes in WIDTHS else None


def devices_of(document: Mapping[str, Any]) -> list[Device]:
    """All functions of the document, ordered by address."""
    found = {}
    for name, raw in table(document.get("devices")).items():
        pci = normalise_pci(name)
        if isinstance(raw, dict) and is_pci(pci):
            found[pci] = Device(pci, raw, _kind(raw))
    return [found[pci] for pci in sorted(found)]


def _kind(raw: Mapping[str, Any]) -> str:
    code, vendor = words(raw.get("class"))[2:6], words(raw.get("vendor"))
    if code[:2] == "03":
        return "gpu" if vendor == NVIDIA else "display"
    if code == "0680" and vendor == NVIDIA:
        return "nvswitch"
    if code[:2] == "02" or code == "0c06":
        return "nic"
    return {"0108": "nvme", "0604": "bridge"}.get(code, "accelerator" if code[:2] == "12" else "other")


def holder(driver: str) -> str:
    """What kind of kernel driver has a GPU (values of ``gpu.kernel_driver``); ``none`` of an empty name."""
    known = {"nvidia": "nvidia", "nouveau": "nouveau", "nova_core": "nouveau", "": "none"}
    return known.get(driver, "vfio" if "vfio" in driver else "other")


def bits(word: bytes, names: Mapping[int, str]) -> tuple[str, ...]:
    """Names of the bits that are set in a little-endian register."""
    value = int.from_bytes(word, "little")
    return tuple(name for bit, name in names.items() if value >> bit & 1)


def regions(device: Device) -> Iterator[tuple[int, float, str]]:
    """Index, MiB and line of each memory region 0 to 5."""
    text = device.raw.get("resource")
    for index, line in enumerate(text.split("\n")[:6] if isinstance(text, str) else ()):
        found = _REGION.fullmatch(line.strip())
        if found and int(found[3], 16) & _MEMORY and int(found[2], 16) > int(found[1], 16):
            yield index, (int(found[2], 16) - int(found[1], 16) + 1) / 2**20, line.strip()


def counts(device: Device, severity: str) -> dict[str, int] | None:
    """Error counters of ``correctable``, ``nonfatal`` or ``fatal``; None when the kernel keeps none."""
    text = device.raw.get(f"aer_dev_{severity}")
    found = {m[1]: int(m[2]) for m in _COUNT.finditer(text[:4096])} if isinstance(text, str) else {}
    return found or None


@dataclass(frozen=True, slots=True)
class Link:
    """One link between two ports."""

    lower: Device
    upper: Device | None

    def can(self, what: str) -> float | None:
        """The most that both ends are capable of. An upper end that claims less than the link has is virtual."""
        mine, now = getattr(self.lower, what)("max"), getattr(self.lower, what)("current")
        above = getattr(self.upper, what)("max") if self.upper else None
        if mine is None or above is None or (now is not None and above < now):
            return None if mine is None else float(mine)
        return float(min(mine, above))

    def below(self) -> str:
        """``8 of 16 lanes``: what is less than both ends are capable of; empty when nothing is."""
        lanes, most = self.lower.width("current"), self.can("width")
        if lanes is not None and most is not None and lanes < most:
            return f"{lanes} of {most:g} lanes"
        speed, fastest = self.lower.speed("current"), self.can("speed")
        return f"{speed:g} of {fastest:g} GT/s" if speed and fastest and speed < fastest else ""


def links(device: Device, known: Mapping[str, Device]) -> list[Link]:
    """The links on the way from the root port, the device's own last.

    A path alternates: root port | switch: upstream port, downstream port | ... | device; the steps within a
    switch are no links.
    """
    path: Sequence[str] = device.path or [device.pci]
    out = []
    for index in range(1, len(path), 2):
        lower, upper = known.get(path[index]), known.get(path[index - 1])
        if lower is not None:
            out.append(Link(lower, upper))
    if not out or out[-1].lower.pci != device.pci:
        out.append(Link(device, None))
    return out
