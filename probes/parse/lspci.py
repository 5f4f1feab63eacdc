"""``lspci`` of any verbosity: GPUs, NVSwitches, RDMA adapters, and the bridges above them.

A device that has left the bus answers every read with ones: lspci prints ``rev ff`` and
``!!! Unknown header type 7f``. What it says of such a device besides is from a cache.

Of lines that were picked out (``lspci -vvv | grep -E 'LnkCap|LnkSta'``) nobody knows the device, unless the command asked for those
of NVIDIA (``-d 10de:``): links below what their devices can are named as not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scope, Status, Subject, gpu
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._pci_device import SIGNAL, holder
from probes.parse._pci_vendor import NAMES, accelerator

NAME = "lspci"
REVISION = 7

# 19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
# 0000:19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
# 19:00.0 0302: 10de:2330 (rev ff)
_HEAD = lazy(
    r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([A-Z3][\w/. -]{1,60}?(?: \[[0-9a-f]{4}\])?|[0-9a-f]{4}): (.{1,300})"
)
_REVISION = lazy(r" \(rev ([0-9a-f]{2})\)")
_ID = lazy(r"\b([0-9a-f]{4}):([0-9a-f]{4})\b")
_CLASS_CODE = lazy(r"\[([0-9a-f]{4})\]$|^([0-9a-f]{4})$")

# 		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
# 		LnkSta:	Speed 16GT/s (downgraded), Width x8 (downgraded)
_SPEED = lazy(r"Speed (?:(\d{1,3}(?:\.\d)?)GT/s|(\w{1,20}))(?: \((\w{1,20})\))?")
_WIDTH = lazy(r"Width x(\d{1,2})(?: \((\w{1,20})\))?")
# 	Bus: primary=3a, secondary=3b, subordinate=3b, sec-latency=0
_BELOW = lazy(r"\s{1,16}Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}),.{0,80}")
_BITS = lazy(r"([A-Za-z]{2,20})\+")
# 	Region 2: Memory at 210000000000 (64-bit, prefetchable) [size=128G]
_REGION = lazy(r"\s{1,16}Region ([0-5]): Memory at .{1,120}?\[size=(\d{1,6})([KMGT]?)\]")
# $ lspci -vv -s 1b:00.0 | grep Lnk        root@n1:~# lspci -d 10de: -vvv | grep -e LnkCap -e LnkSta
_ASKED = lazy(r".{0,200}\blspci (.{0,200})")
_OF_NVIDIA = lazy(r"(?:^|\s)-\w{0,5}d ?(?:0x)?10de:")
_AT = lazy(r"(?:^|\s)-\w{0,5}s ?((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_SHOW = "`lspci -vv -d 10de: | grep -E '^[0-9a-f]|Lnk'`"
_LINK = lazy(r"\s{0,20}Lnk(?:Cap|Sta|Ctl)\d?:\s.{1,400}")
_STATE = lazy(r"\s{0,20}Lnk(?:Cap|Sta):\s{1,4}.{0,60}\bWidth x\d.{0,200}")
_NUMA = lazy(r"NUMA node:? (\d{1,4})\b")
_IOMMU = lazy(r"IOMMU group:? (\d{1,6})\b")
_DRIVER = lazy(r"\s{1,16}Kernel driver in use: ([\w.-]{1,60})")
# GH100 [H100 SXM5 80GB]      GA100 [A100 PCIe 80GB]      GB100 [B200]
_BOARD = lazy(r"\[\w[^\]]{1,80}\]")
_MODULE = lazy(r"\[[^\]]{0,60}\b(?:SXM\d?|B[23]00)\b")
_SIZES = {"": 2**-20, "K": 2**-10, "M": 1, "G": 2**10, "T": 2**20}

# Classes of display controllers and accelerators, as lspci names them.
_CLASSES = {"VGA compatible controller": "0300", "3D controller": "0302", "Display controller": "0380",
            "Processing accelerators": "1200"}  # fmt: skip

# GT/s of each generation: PCI-SIG base specifications 1.0 to 6.0
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


class _Kind(StrEnum):
    GPU = "gpu"
    NVSWITCH = "nvswitch"
    NIC = "nic"
    ACCELERATOR = "accelerator"  # or a display controller: whose, and whether it is one, `_accelerator` tells
    BRIDGE = "bridge"


@dataclass(slots=True)
class _Device:
    """One block of the listing."""

    pci: str
    line: int
    text: str
    class_: str
    name: str
    kind: _Kind | None
    gone: bool
    body: list[Line] = field(default_factory=list)
    port_lanes: int = 0  # that the port above it allows; 0 where the listing does not tell


def sniff(head: str) -> int:
    """95 for a detailed listing, 80 for a list of devices with at least two, 85 for the links alone; 0 otherwise."""
    heads = [line for line in head.splitlines() if _HEAD.match(line)]
    if not heads:
        return 85 if _picked(clean_lines(head)) else 0
    detailed = re.search(
        r"^\s{1,16}(?:Subsystem|Control|Flags|Capabilities|Kernel driver in use): ", head, re.MULTILINE
    )
    gone = re.search(r"^\s{1,16}!!! Unknown header type", head, re.MULTILINE)
    if detailed or gone:
        return 95
    return 80 if len(heads) > 1 else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Links, error status, driver and place of GPUs, NVSwitches and adapters; ACS of bridges; counts on the node."""
    emit = Emitter(NAME, REVISION, context)
    devices = _devices(text) or [d for d in _picked(clean_lines(text)) if d.kind is _Kind.GPU]
    _ports(devices)
    for device in devices:
        if device.kind is _Kind.BRIDGE:
            _bridge(emit, device)
        elif device.kind is _Kind.ACCELERATOR:
            _accelerator(emit, device)
        elif device.kind is not None and device.text:
            _endpoint(emit, device)
        elif device.kind is not None:
            for line in device.body:
                _detail(emit, device, _subject(emit, device), line)
    if any(device.text for device in devices):
        _counts(emit, devices)
    return emit.out


def _picked(lines: Sequence[Line]) -> list[_Device]:
    """The devices of lines that tell of links and nothing else; GPUs where the command asked for NVIDIA's."""
    written = [line for line in lines if line.text.strip()]
    asked = _ASKED.fullmatch(written[0].text[:500]) if written else None
    rows = written[1:] if asked else written
    if not all(_LINK.fullmatch(line.text) for line in rows) or not any(_STATE.fullmatch(line.text) for line in rows):
        return []
    kind = _Kind.GPU if asked and _OF_NVIDIA.search(asked[1]) else None
    at = _AT.search(asked[1]) if asked else None
    out: list[_Device] = []
    seen: set[str] = set()
    for line in rows:
        name = line.text.strip().partition(":")[0]
        if not out or name in seen or (name == "LnkCap" and seen):
            out.append(_Device(f"{UNKNOWN_PCI}row {len(out)}", line.number, "", "", "", kind, gone=False))
            seen = set()
        seen.add(name)
        out[-1].body.append(line)
    if at and len(out) == 1:
        out[0].pci = normalise_pci(at[1])
    return out


def unread(text: str) -> list[tuple[int, Text]]:
    """Links below what their device can, of devices that the text does not name: an adapter in a narrow slot looks the same."""
    out = []
    for device in _picked(clean_lines(text)):
        states = {line.text.strip().partition(":")[0]: line for line in device.body}
        if device.kind is not None or "LnkSta" not in states:
            continue
        now, can = states["LnkSta"], states["LnkCap"].text if "LnkCap" in states else ""
        if below := _below(now.text, can):
            known = not device.pci.startswith(UNKNOWN_PCI)
            whose, whose_zh = (f"whether {device.pci} is a GPU", f"{device.pci} 是否为 GPU") if known else ("which device it is", "属于哪个设备")  # fmt: skip
            idle, idle_zh = ("; a GPU that idles slows its link on purpose", "；空闲的 GPU 会主动降速") if "x" not in below else ("", "")  # fmt: skip
            en = f"a link runs at {below}, and {whose} is not shown: show the devices too ({_SHOW}){idle}"
            zh = f"有链路运行在 {below}，但未写明{whose_zh}：请连同设备一起输出（{_SHOW}）{idle_zh}"
            out.append((now.number, Text(en, zh)))
    return out


def _below(now: str, can: str) -> str:
    """``x8 of x16``, ``2.5GT/s of 32GT/s``; of what the line itself marks as downgraded also without what the device can."""
    out = []
    for pattern, unit in ((_WIDTH, "x{}"), (_SPEED, "{}GT/s")):
        here, most = pattern.search(now), pattern.search(can)
        if here is None or not here[1]:
            continue
        marked = "downgraded" in here.groups()
        if most is not None and most[1] and float(here[1]) < float(most[1]):
            out.append(f"{unit.format(here[1])} of {unit.format(most[1])}")
        elif marked:
            out.append(f"{unit.format(here[1])} (downgraded)")
    return ", ".join(out)


def _devices(text: str) -> list[_Device]:
    out: list[_Device] = []
    for line in clean_lines(text):
        if found := _HEAD.match(line.text):
            pci = normalise_pci(found[1])
            revision = _REVISION.search(found[3])
            gone = revision is not None and revision[1] == "ff"
            name = _REVISION.sub("", found[3]).split(" (prog-if")[0].strip()
            out.append(_Device(pci, line.number, line.text, found[2], name, _kind(found[2], found[3]), gone))
        elif out and line.text[:1] in ("\t", " ") and out[-1].kind is not None:
            out[-1].body.append(line)
            out[-1].gone = out[-1].gone or "!!! Unknown header type 7f" in line.text
    return out


def _ports(devices: Sequence[_Device]) -> None:
    """Note at each device how many lanes the port above it allows: the bridge whose secondary bus is the device's."""
    lanes: dict[str, int] = {}
    for device in devices:
        if device.kind is not _Kind.BRIDGE:
            continue
        bus = next((found[1] for line in device.body if (found := _BELOW.fullmatch(line.text))), "")
        cap = next((line.text for line in device.body if line.text.strip().startswith("LnkCap:")), "")
        if bus and (width := _WIDTH.search(cap)):
            lanes[f"{device.pci.split(':')[0]}:{bus}"] = int(width[1])
    for device in devices:
        device.port_lanes = lanes.get(device.pci.rpartition(":")[0], 0)


def _kind(class_: str, rest: str) -> _Kind | None:
    code_ = _CLASS_CODE.search(class_)
    code = (code_[1] or code_[2]) if code_ else ""
    ids = _ID.findall(rest)
    vendor = ids[-1][0] if ids else ""
    nvidia = vendor == "10de" or rest.startswith("NVIDIA")
    if nvidia and (code[:2] == "03" or class_.startswith(("3D controller", "VGA compatible", "Display controller"))):
        return _Kind.GPU
    if nvidia and (code == "0680" or class_.startswith("Bridge")):
        return _Kind.NVSWITCH
    mellanox = vendor == "15b3" or rest.startswith("Mellanox") or "ConnectX" in rest or "BlueField" in rest
    if mellanox and (code[:2] == "02" or class_.startswith(("Ethernet", "Infiniband", "InfiniBand", "Network"))):
        return _Kind.NIC
    if code in _CLASSES.values() or class_.split(" [", maxsplit=1)[0] in _CLASSES:
        return _Kind.ACCELERATOR
    return _Kind.BRIDGE if code == "0604" or class_.startswith("PCI bridge") else None


def _accelerator(emit: Emitter, device: _Device) -> None:
    """An accelerator of another vendor than NVIDIA; what only drives a screen is left out."""
    found = _CLASS_CODE.search(device.class_)
    code = (found[1] or found[2]) if found else _CLASSES.get(device.class_, "")
    ids = _ID.findall(device.text)
    vendor = ids[-1][0] if ids else next((n for name, n in NAMES.items() if device.name.startswith(name)), "")
    bound = next((named[1] for line in device.body if (named := _DRIVER.match(line.text))), "")
    whose = accelerator(vendor, code, device.pci, bound)
    if not whose:
        return
    subject = _subject(emit, device)
    emit.fact("pci.accelerator", subject, whose, device.line, device.text)
    if bound or any("Kernel modules:" in line.text for line in device.body):
        emit.fact("pci.accelerator.bound", subject, bool(bound), device.line, device.text)
    _endpoint(emit, device)


def _subject(emit: Emitter, device: _Device) -> Subject:
    return Subject(Scope.PCI, device.pci, emit.node)


def _endpoint(emit: Emitter, device: _Device) -> None:
    subject = _subject(emit, device)
    emit.fact("pci.class", subject, device.class_.split(" [", maxsplit=1)[0], device.line, device.text)
    emit.fact("pci.name", subject, device.name, device.line, device.text)
    if device.kind is not None:
        emit.fact("pci.kind", subject, device.kind.value, device.line, device.text)
    emit.fact("pci.device.responding", subject, not device.gone, device.line, device.text)
    if device.kind is _Kind.GPU:
        emit.fact("gpu.on_bus", gpu(device.pci, emit.context.host), not device.gone, device.line, device.text)
        if _BOARD.search(device.name):
            module = _MODULE.search(device.name) is not None
            emit.fact("gpu.bus.module", gpu(device.pci, emit.context.host), module, device.line, device.text)
    if device.gone:
        reason = "every read returns all ones: it has left the bus"
        for name in ("pci.link.speed", "pci.link.width", "pci.aer.uncorrectable", "pci.aer.correctable"):
            emit.missing(name, subject, Status.FAILED, reason, line=device.line, excerpt=device.text)
        if device.kind is _Kind.GPU:
            for name in ("gpu.pcie.gen", "gpu.pcie.width"):
                emit.missing(name, gpu(device.pci, emit.context.host), Status.FAILED, reason, line=device.line)
    for line in device.body:
        _detail(emit, device, subject, line)


def _detail(emit: Emitter, device: _Device, subject: Subject, line: Line) -> None:
    text = line.text.strip()
    if found := _DRIVER.match(line.text):
        emit.fact("pci.driver", subject, found[1], line.number, text)
        if device.kind is _Kind.GPU:
            emit.fact("gpu.kernel_driver", gpu(device.pci, emit.context.host), holder(found[1]), line.number, text)
    if device.gone:
        return
    if text.startswith("LnkCap:"):
        _link(emit, device, subject, line, ".max")
    elif text.startswith("LnkSta:"):
        _link(emit, device, subject, line, "")
    elif text.startswith(("UESta:", "CESta:")):
        name = "pci.aer.uncorrectable" if text[0] == "U" else "pci.aer.correctable"
        bits = tuple(_BITS.findall(text))
        emit.fact(name, subject, bits, line.number, text)
        if text[0] == "C" and device.kind is _Kind.GPU:
            target = gpu(device.pci, emit.context.host)
            emit.fact("gpu.pcie.signal_bad", target, not SIGNAL.isdisjoint(bits), line.number, text)
    elif text.startswith("Capabilities: <access denied>"):
        reason = "lspci needs root to read the capabilities"
        for name in ("pci.link.speed", "pci.link.width", "pci.aer.uncorrectable", "pci.aer.correctable"):
            emit.missing(name, subject, Status.DENIED, reason, line=line.number, excerpt=text)
        if device.kind is _Kind.GPU:
            for name in ("gpu.pcie.gen", "gpu.pcie.width"):
                host = emit.context.host
                emit.missing(name, gpu(device.pci, host), Status.DENIED, reason, line=line.number, excerpt=text)
    elif found := _REGION.match(line.text):
        size = int(found[2]) * _SIZES[found[3]]
        emit.fact(f"pci.bar{found[1]}.size", subject, float(size), line.number, text)
    if found := _NUMA.search(text):
        emit.fact("pci.numa", subject, int(found[1]), line.number, text)
        if device.kind is _Kind.GPU:
            emit.fact("gpu.numa", gpu(device.pci, emit.context.host), int(found[1]), line.number, text)
    if found := _IOMMU.search(text):
        emit.fact("pci.iommu_group", subject, int(found[1]), line.number, text)


def _link(emit: Emitter, device: _Device, subject: Subject, line: Line, suffix: str) -> None:
    text = line.text.strip()
    speed, width = _SPEED.search(text), _WIDTH.search(text)
    target = gpu(device.pci, emit.context.host) if device.kind is _Kind.GPU else None
    if speed and speed[1]:
        rate = float(speed[1])
        emit.fact(f"pci.link.speed{suffix}", subject, rate, line.number, text)
        if target and rate in GENERATIONS:
            name = "gpu.pcie.gen.device_max" if suffix else "gpu.pcie.gen"
            emit.fact(name, target, GENERATIONS[rate], line.number, text)
    elif speed:
        emit.missing(
            f"pci.link.speed{suffix}", subject, Status.FAILED, f"printed as {speed[2]}", line=line.number, excerpt=text
        )
    if width:
        lanes = int(width[1])
        emit.fact(f"pci.link.width{suffix}", subject, lanes, line.number, text)
        if target:
            lanes = min(lanes, device.port_lanes or lanes) if suffix else lanes
            emit.fact(f"gpu.pcie.width{suffix}", target, lanes, line.number, text)
    if not suffix and (speed or width):
        below = [
            name
            for name, mark in (("speed", speed[3] if speed else ""), ("width", width[2] if width else ""))
            if mark == "downgraded"
        ]
        emit.fact("pci.link.downgraded", subject, tuple(below), line.number, text)


def _bridge(emit: Emitter, device: _Device) -> None:
    """Whether a bridge sends peer-to-peer traffic up to the root (ACS), and which errors it has latched."""
    subject = _subject(emit, device)
    if device.gone:
        emit.fact("pci.device.responding", subject, False, device.line, device.text)
        return
    for line in device.body:
        text = line.text.strip()
        if text.startswith("ACSCtl:"):
            bits = tuple(_BITS.findall(text))
            # NCCL's troubleshooting page looks for SrcValid+; the redirect bits are what sends traffic up
            emit.fact(
                "pci.acs.enabled", subject, bool({"SrcValid", "ReqRedir", "CmpltRedir"} & set(bits)), line.number, text
            )
            emit.fact("pci.acs.redirect", subject, "ReqRedir" in bits or "CmpltRedir" in bits, line.number, text)
        elif text.startswith("UESta:") and (set_ := tuple(_BITS.findall(text))):
            emit.fact("pci.aer.uncorrectable", subject, set_, line.number, text)
        elif text.startswith("CESta:") and (set_ := tuple(_BITS.findall(text))):
            emit.fact("pci.aer.correctable", subject, set_, line.number, text)


def _counts(emit: Emitter, devices: list[_Device]) -> None:
    # a listing of one device or one vendor has no host bridge: what it lacks may still be there
    whole = any(device.class_.startswith("Host bridge") or "0600" in device.class_ for device in devices)
    for kind, name in ((_Kind.GPU, "gpu_count"), (_Kind.NVSWITCH, "nvswitch_count"), (_Kind.NIC, "nic_count")):
        found = [device for device in devices if device.kind is kind]
        shown = ", ".join(device.pci for device in found[:16])
        if found or whole:
            emit.fact(f"node.pci.{name}", emit.node, len(found), found[0].line if found else None, shown)
    gone = [device for device in devices if device.gone and device.kind is not None]
    names = tuple(device.pci for device in gone)
    emit.fact("node.pci.gone", emit.node, names, gone[0].line if gone else None, gone[0].text if gone else "")
    redirecting = [o for o in emit.out if o.fact == "pci.acs.redirect" and o.value is True]
    if any(o.fact == "pci.acs.redirect" for o in emit.out):
        shown = ", ".join(o.subject.id for o in redirecting[:16])
        line = redirecting[0].source.line if redirecting else None
        emit.fact("node.pci.acs_bridges", emit.node, len(redirecting), line, shown)


FORMAT = DocumentFormat(
    name=NAME,
    title="lspci",
    revision=REVISION,
    provides=(
        "pci.accelerator",
        "pci.accelerator.bound",
        "pci.class",
        "pci.kind",
        "pci.name",
        "pci.driver",
        "pci.device.responding",
        "pci.link.speed",
        "pci.link.speed.max",
        "pci.link.width",
        "pci.link.width.max",
        "pci.link.downgraded",
        "pci.aer.uncorrectable",
        "pci.aer.correctable",
        "pci.acs.enabled",
        "pci.acs.redirect",
        *(f"pci.bar{index}.size" for index in range(6)),
        "pci.numa",
        "pci.iommu_group",
        "node.pci.gpu_count",
        "node.pci.nvswitch_count",
        "node.pci.nic_count",
        "node.pci.gone",
        "node.pci.acs_bridges",
        "gpu.on_bus",
        "gpu.kernel_driver",
        "gpu.pcie.gen",
        "gpu.pcie.gen.device_max",
        "gpu.pcie.width",
        "gpu.pcie.width.max",
        "gpu.numa",
        "gpu.pcie.signal_bad",
        "gpu.bus.module",
    ),
    sniff=sniff,
    parse=parse,
    unread=unread,
)
