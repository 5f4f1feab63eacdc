"""The `pci` collector's document: GPUs, NVSwitches, network adapters and drives on the bus, and the driver's view of them.

The facts are those of `lspci`, read from sysfs, and what sysfs and /proc tell besides: error counters, power,
the links above a GPU, GPUs without a driver, device files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, gpu
from probes.base import Context, DocumentFormat
from probes.parse._pci_device import (
    AER_CORRECTABLE,
    CLASSES,
    CORRECTABLE,
    DOWNSTREAM,
    SIGNAL,
    UNCORRECTABLE,
    VENDORS,
    Device,
    bits,
    counts,
    devices_of,
    regions,
)
from probes.parse._pci_driver import FACTS as DRIVER_FACTS
from probes.parse._pci_driver import emit_driver
from probes.parse._pci_gpu import FACTS as GPU_FACTS
from probes.parse._pci_gpu import GONE, RUNTIME, emit_gpu
from probes.parse._pci_vendor import accelerator, may_be_gpu
from probes.parse._sysfs import Sheet, load, recognises, table, whole, why_not, words

NAME = "pci"
REVISION = 3
SCHEMA = "gpudiag/pci/1"
OTHERS = "node.pci.other_gpus"

_POWER = ("D0", "D1", "D2", "D3hot", "D3cold", "unknown", "error")


def sniff(head: str) -> int:
    """100 for the collector's document; 0 otherwise."""
    return recognises(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each function, of each GPU, and of the node."""
    document = load(text)
    if document.get("schema") != SCHEMA:
        return []
    sheet = Sheet.of(NAME, REVISION, context, document)
    devices = devices_of(document)
    known = {d.pci: d for d in devices}
    slots = {words(address): name for name, address in sorted(table(document.get("slots")).items()) if words(address)}
    for device in devices:
        subject = Subject(Scope.PCI, device.pci, sheet.node)
        _identity(sheet, device, subject, slots)
        if device.silence:
            for name in ("pci.link.speed", "pci.link.width"):
                sheet.missing(name, subject, Status.TIMEOUT, device.silence, device.folder)
        else:
            _link(sheet, device, subject)
        _latched(sheet, device, subject)
        _counters(sheet, device, subject)
        _power(sheet, device, subject)
        _place(sheet, device, subject, table(document.get("iommu_groups")))
        if device.kind == "gpu" and not device.function:
            emit_gpu(sheet, device, known)
    _node(sheet, document, devices)
    emit_driver(sheet, document, devices)
    return sheet.out


def _identity(sheet: Sheet, device: Device, subject: Subject, slots: Mapping[str, str]) -> None:
    raw, folder = device.raw, device.folder
    code, ids = words(raw.get("class"))[2:6], device.ids
    sheet.fact("pci.kind", subject, device.kind, f"{folder}/class", words(raw.get("class")))
    sheet.fact("pci.class", subject, CLASSES.get(code, code or "unknown"), f"{folder}/class", words(raw.get("class")))
    if ids:
        vendor = VENDORS.get(words(raw.get("vendor")), "")
        sheet.fact("pci.id", subject, ids, f"{folder}/device", f"{words(raw.get('vendor'))} {words(raw.get('device'))}")
        sheet.fact("pci.name", subject, f"{vendor} device [{ids}]".strip(), f"{folder}/device", ids)
    sub = [words(raw.get(f"subsystem_{key}")).removeprefix("0x") for key in ("vendor", "device")]
    if all(sub) and device.kind != "bridge":
        sheet.fact("pci.subsystem", subject, ":".join(sub), f"{folder}/subsystem_device", ":".join(sub))
    slot = slots.get(device.pci.rpartition(".")[0])
    if slot:
        sheet.fact("pci.slot", subject, slot, f"/sys/bus/pci/slots/{slot}/address", device.pci.rpartition(".")[0])
    if device.driver:
        sheet.fact("pci.driver", subject, device.driver, f"{folder}/driver", f"driver -> {device.driver}")
    _accelerator(sheet, device, subject)
    _answers(sheet, device, subject)


def _accelerator(sheet: Sheet, device: Device, subject: Subject) -> None:
    """Whose accelerator it is, when it is one of another vendor than NVIDIA, and whether a driver has it."""
    vendor, code = words(device.raw.get("vendor")).removeprefix("0x"), words(device.raw.get("class"))[2:6]
    whose = "" if device.function else accelerator(vendor, code, device.pci, device.driver or "")
    if not whose:
        return
    sheet.fact("pci.accelerator", subject, whose, f"{device.folder}/vendor", f"vendor 0x{vendor}, class 0x{code}")
    call = f"{device.folder}/driver"
    if device.driver is None:
        sheet.missing("pci.accelerator.bound", subject, Status.TIMEOUT, device.silence or "not told", call)
    else:
        sheet.fact("pci.accelerator.bound", subject, bool(device.driver), call, f"driver: {device.driver or 'none'}")


def _answers(sheet: Sheet, device: Device, subject: Subject) -> None:
    call, answers = f"{device.folder}/config", device.answers
    also = [("gpu.on_bus", gpu(device.pci, sheet.host))] if device.kind == "gpu" and not device.function else []
    for name, about in (("pci.device.responding", subject), *also):
        if answers is not None:
            sheet.fact(name, about, answers, call, f"first bytes {words(device.config.get('head'))[:16]}")
        elif device.silence:
            sheet.missing(name, about, Status.TIMEOUT, device.silence, call)
        else:
            sheet.missing(name, about, *why_not(device.raw.get("config")), call)


def _link(sheet: Sheet, device: Device, subject: Subject) -> None:
    raw, folder = device.raw, device.folder
    for what, unit in (("speed", device.speed), ("width", device.width)):
        for which, suffix in (("current", ""), ("max", ".max")):
            key = f"{which}_link_{what}"
            value, name = unit(which), f"pci.link.{what}{suffix}"
            if key not in raw:
                continue  # a conventional or integrated device has no link
            if device.answers is False:
                sheet.missing(name, subject, Status.FAILED, GONE, f"{folder}/{key}", words(raw[key]))
            elif value is not None:
                sheet.fact(name, subject, value, f"{folder}/{key}", words(raw[key]))
            elif key == "current_link_width" and whole(raw[key]) == 0:
                sheet.fact(name, subject, 0, f"{folder}/{key}", "0: the link is down")
            else:
                sheet.missing(name, subject, *why_not(raw[key]), f"{folder}/{key}", words(raw[key]))
    pairs = [(what, unit("current"), unit("max")) for what, unit in (("speed", device.speed), ("width", device.width))]
    if device.answers is not False and all(now is not None and most is not None for _, now, most in pairs):
        below = tuple(what for what, now, most in pairs if now is not None and most is not None and now < most)
        shown = f"{pairs[0][1]:g} of {pairs[0][2]:g} GT/s, {pairs[1][1]} of {pairs[1][2]} lanes"
        sheet.fact("pci.link.downgraded", subject, below, f"{folder}/current_link_width", shown)


def _latched(sheet: Sheet, device: Device, subject: Subject) -> None:
    """AER status and ACS control: in the configuration space behind the first 64 bytes, which root may read."""
    call, config = f"{device.folder}/config", device.config
    names = ("pci.aer.uncorrectable", "pci.aer.correctable")
    data = device.bytes_of("aer")
    if device.answers is False:
        for name in names:
            sheet.missing(name, subject, Status.FAILED, GONE, call)
    elif len(data) >= 0x14:
        for name, offset, table_ in ((names[0], 4, UNCORRECTABLE), (names[1], AER_CORRECTABLE, CORRECTABLE)):
            word = data[offset : offset + 4]
            sheet.fact(name, subject, bits(word, table_), call, f"AER status 0x{int.from_bytes(word, 'little'):08x}")
    elif config.get("limited"):
        detail = f"{words(config['limited'])}: run sudo gpudiag check"
        for name in names:
            sheet.missing(name, subject, Status.DENIED, detail, call)
        if device.kind == "bridge":
            sheet.missing("pci.acs.redirect", subject, Status.DENIED, detail, call)
    acs = device.bytes_of("acs")
    if device.kind == "bridge" and len(acs) >= 8:
        control = int.from_bytes(acs[6:8], "little")  # bit 0 source validation, 2 request, 3 completion redirect
        shown = f"ACS control 0x{control:04x}"
        sheet.fact("pci.acs.enabled", subject, bool(control & 0b1101), call, shown)
        sheet.fact("pci.acs.redirect", subject, bool(control & 0b1100), call, shown)


def _counters(sheet: Sheet, device: Device, subject: Subject) -> None:
    for severity in ("correctable", "nonfatal", "fatal"):
        key, name = f"aer_dev_{severity}", f"pci.aer.count.{severity}"
        found, call = counts(device, severity), f"{device.folder}/{key}"
        if key not in device.raw:
            if device.silence:  # else the device has no such capability
                sheet.missing(name, subject, Status.TIMEOUT, device.silence, call)
            continue
        if found is None:
            sheet.missing(name, subject, *why_not(device.raw[key]), call)
            continue
        total = sum(n for word, n in found.items() if not word.startswith("TOTAL_"))
        shown = ", ".join(f"{word} {n}" for word, n in found.items() if n) or "all counters are 0"
        sheet.fact(name, subject, total, call, shown)
        if severity == "correctable":
            sheet.fact("pci.aer.count.signal", subject, sum(found.get(w, 0) for w in SIGNAL), call, shown)
        elif severity == "nonfatal":
            sheet.fact("pci.aer.count.unsupported", subject, found.get("UnsupReq", 0), call, shown)
    for suffix, name in (("cor", "correctable"), ("nonfatal", "nonfatal"), ("fatal", "fatal")):
        key = f"aer_rootport_total_err_{suffix}"
        if (value := whole(device.raw.get(key))) is not None:
            call = f"{device.folder}/{key}"
            sheet.fact(f"pci.aer.received.{name}", subject, value, call, words(device.raw[key]))


def _power(sheet: Sheet, device: Device, subject: Subject) -> None:
    state, runtime = words(device.raw.get("power_state")), words(device.raw.get("power/runtime_status"))
    if state in _POWER:
        sheet.fact("pci.power_state", subject, state, f"{device.folder}/power_state", state)
    if runtime in RUNTIME:
        control = words(device.raw.get("power/control"))
        shown = f"{runtime}, control {control}" if control else runtime
        sheet.fact("pci.runtime_status", subject, runtime, f"{device.folder}/power/runtime_status", shown)
    if (vfs := whole(device.raw.get("sriov_numvfs"))) is not None:
        sheet.fact("pci.sriov.vfs", subject, vfs, f"{device.folder}/sriov_numvfs", words(device.raw["sriov_numvfs"]))


def _place(sheet: Sheet, device: Device, subject: Subject, groups: Mapping[str, Any]) -> None:
    for index, size, line in regions(device) if device.kind != "bridge" else ():
        sheet.fact(f"pci.bar{index}.size", subject, size, f"{device.folder}/resource", line)
    text = words(device.raw.get("numa_node"))
    call = f"{device.folder}/numa_node"
    about = [("pci.numa", subject)]
    if device.kind == "gpu" and not device.function:
        about.append(("gpu.numa", gpu(device.pci, sheet.host)))
    for name, whom in about:
        if text == "-1":
            detail = "the firmware does not tell which NUMA node the device belongs to"
            sheet.missing(name, whom, Status.UNSUPPORTED, detail, call, text)
        elif (numa := whole(text)) is not None:
            sheet.fact(name, whom, numa, call, text)
    group = words(device.raw.get("iommu_group"))
    if (number := whole(group)) is not None:
        sheet.fact("pci.iommu_group", subject, number, f"{device.folder}/iommu_group", group)
        if kind := words(groups.get(group)):
            sheet.fact("pci.iommu.type", subject, kind, f"/sys/kernel/iommu_groups/{group}/type", kind)


def _node(sheet: Sheet, document: Mapping[str, Any], devices: list[Device]) -> None:
    bus, call = table(document.get("bus")), "/sys/bus/pci/devices"
    names = ("node.pci.gpu_count", "node.pci.nvswitch_count", "node.pci.nic_count")
    if "functions" not in bus or bus.get("hung") or bus.get("unread"):
        hung = words(bus.get("hung"))
        status, why = (Status.TIMEOUT, f"{hung or call} did not come back") if hung or bus.get("unread") else why_not(
            {"error": bus.get("error")}, "not told"
        )  # fmt: skip
        for name in (*names, OTHERS, "node.pci.gone"):
            sheet.missing(name, sheet.node, status, why, call)
        return
    real = [d for d in devices if not d.function]
    gpus = [d for d in real if d.kind == "gpu"]
    # as lspci: ports of NVIDIA's own adapters
    nics = [d for d in real if d.kind == "nic" and words(d.raw.get("vendor")) == "0x15b3"]
    for name, found in zip(names, (gpus, [d for d in real if d.kind == "nvswitch"], nics), strict=True):
        sheet.fact(name, sheet.node, len(found), call, ", ".join(d.pci for d in found[:16]) or "none")
    _others(sheet, bus, devices, call)
    gone = tuple(d.pci for d in devices if d.answers is False)
    silent = [d.pci for d in devices if d.hung]
    if silent:
        why = f"{', '.join(silent[:8])} did not answer in time"
        sheet.missing("node.pci.gone", sheet.node, Status.TIMEOUT, why, call, ", ".join(gone[:8]))
    else:
        sheet.fact(
            "node.pci.gone", sheet.node, gone, call, ", ".join(gone[:8]) or f"all {len(devices)} that were read answer"
        )
    _drivers(sheet, gpus, call)
    _acs(sheet, devices, call)
    _iommu(sheet, document, gpus)


def _others(sheet: Sheet, bus: Mapping[str, Any], devices: list[Device], call: str) -> None:
    """GPUs of other vendors, and cards that may be some: that there are none is known only where each function told its class."""
    listed = bus.get("unclassed", [])
    untold = [words(name) or "a function" for name in (listed if isinstance(listed, list) else [listed])]
    found = []
    for device in devices:
        vendor, code = words(device.raw.get("vendor")).removeprefix("0x"), words(device.raw.get("class"))[2:6]
        if not (vendor and code):
            untold.append(device.pci)
        elif may_be_gpu(vendor, code, device.pci, device.driver or ""):
            found.append(device.pci)
    if untold and not found:
        why = f"what {', '.join(untold[:8])} is could not be read"
        sheet.missing(OTHERS, sheet.node, Status.FAILED, why, call)
    else:
        shown = ", ".join(found[:16]) or f"none among {len(devices)} devices"
        sheet.fact(OTHERS, sheet.node, tuple(found), call, shown)


def _drivers(sheet: Sheet, gpus: list[Device], call: str) -> None:
    if any(d.driver is None for d in gpus):
        for name in ("node.pci.gpus.unbound",):
            sheet.missing(name, sheet.node, Status.TIMEOUT, "the driver of a GPU could not be read", call)
        return
    unbound = tuple(d.pci for d in gpus if not d.driver)
    shown = ", ".join(f"{d.pci} {d.driver or 'without a driver'}" for d in gpus[:16]) or "no GPU"
    sheet.fact("node.pci.gpus.unbound", sheet.node, unbound, call, shown)


def _acs(sheet: Sheet, devices: list[Device], call: str) -> None:
    """Ports of PCIe switches that send requests up: at a root port there is no other way than up."""
    bridges = [d for d in devices if d.kind == "bridge" and d.answers is not False]
    if not bridges:
        return
    if any(d.config.get("limited") for d in bridges):
        detail = "the access control registers of bridges are shown to root only: run sudo gpudiag check"
        sheet.missing("node.pci.acs_bridges", sheet.node, Status.DENIED, detail, call)
        return
    ports = [d for d in bridges if d.port_type == DOWNSTREAM]
    found = [d.pci for d in ports if len(acs := d.bytes_of("acs")) >= 8 and acs[6] & 0b1100]
    shown = ", ".join(found[:16]) or f"none of {len(ports)} switch ports redirects"
    sheet.fact("node.pci.acs_bridges", sheet.node, len(found), call, shown)


def _iommu(sheet: Sheet, document: Mapping[str, Any], gpus: list[Device]) -> None:
    name, call = "node.pci.gpus.translated", "/sys/kernel/iommu_groups/*/type"
    if words(document.get("machine")) != "x86_64":
        why = "on this processor the translation of addresses belongs to how GPUs share memory"
        sheet.missing(name, sheet.node, Status.NOT_APPLICABLE, why, call)
        return
    groups = table(document.get("iommu_groups"))
    kinds = {d.pci: words(groups.get(words(d.raw.get("iommu_group")))) for d in gpus}
    if any(not kind and d.raw.get("iommu_group") for d, kind in zip(gpus, kinds.values(), strict=True)):
        sheet.missing(
            name, sheet.node, Status.UNSUPPORTED, "the kernel does not tell the type of a GPU's IOMMU group", call
        )
        return
    translated = tuple(d.pci for d in gpus if kinds[d.pci].startswith("DMA") and d.driver == "nvidia")
    shown = ", ".join(f"{pci} {kind}" for pci, kind in list(kinds.items())[:8] if kind) or "no GPU is in an IOMMU group"
    sheet.fact(name, sheet.node, translated, call, shown)


FORMAT = DocumentFormat(
    name=NAME,
    title="PCI snapshot",
    revision=REVISION,
    provides=(
        "pci.kind", "pci.accelerator", "pci.accelerator.bound", "pci.class", "pci.id", "pci.name", "pci.subsystem", "pci.slot", "pci.driver", "pci.device.responding",
        "pci.link.speed", "pci.link.speed.max", "pci.link.width", "pci.link.width.max", "pci.link.downgraded",
        "pci.aer.uncorrectable", "pci.aer.correctable", "pci.acs.enabled", "pci.acs.redirect",
        "pci.aer.count.correctable", "pci.aer.count.signal", "pci.aer.count.nonfatal", "pci.aer.count.unsupported",
        "pci.aer.count.fatal", "pci.aer.received.correctable", "pci.aer.received.nonfatal", "pci.aer.received.fatal",
        "pci.power_state", "pci.runtime_status", "pci.sriov.vfs", *(f"pci.bar{index}.size" for index in range(6)),
        "pci.numa", "pci.iommu_group", "pci.iommu.type",
        "node.pci.gpu_count", OTHERS, "node.pci.nvswitch_count", "node.pci.nic_count", "node.pci.gone", "node.pci.acs_bridges",
        "node.pci.gpus.unbound", "node.pci.gpus.translated",
        "gpu.on_bus", "gpu.numa", *GPU_FACTS, *DRIVER_FACTS,
    ),
    sniff=sniff,
    parse=parse,
)  # fmt: skip
