"""What a `pci` snapshot tells of a GPU: its driver, its link, and the links above it."""

from __future__ import annotations

from collections.abc import Mapping

from knowledge.observation import Status, Subject, gpu
from probes.parse._pci_device import AER_CORRECTABLE, CORRECTABLE, SIGNAL, Device, bits, holder, links
from probes.parse._sysfs import Sheet, whole, why_not, words
from probes.parse.lspci import GENERATIONS

FACTS = (
    "gpu.kernel_driver", "gpu.runtime_status", "gpu.pcie.gen", "gpu.pcie.gen.device_max", "gpu.pcie.width",
    "gpu.pcie.width.max", "gpu.pcie.uplink.width", "gpu.pcie.uplink.degraded", "gpu.pcie.signal_bad",
)  # fmt: skip
RUNTIME = ("active", "suspended", "suspending", "resuming", "error", "unsupported")
GONE = "every read returns all ones: it has left the bus"


def emit_gpu(sheet: Sheet, device: Device, known: Mapping[str, Device]) -> None:
    """The facts of one GPU; `known` are all functions by address."""
    subject, folder = gpu(device.pci, sheet.host), device.folder
    if device.driver is not None:
        sheet.fact(
            "gpu.kernel_driver",
            subject,
            holder(device.driver),
            f"{folder}/driver",
            f"driver: {device.driver or 'none'}",
        )
    else:
        sheet.missing("gpu.kernel_driver", subject, Status.TIMEOUT, device.silence or "not told", f"{folder}/driver")
    runtime = words(device.raw.get("power/runtime_status"))
    if runtime in RUNTIME:
        sheet.fact("gpu.runtime_status", subject, runtime, f"{folder}/power/runtime_status", runtime)
    _link(sheet, device, subject, known)
    _signal(sheet, device, subject)


def _signal(sheet: Sheet, device: Device, subject: Subject) -> None:
    """Whether its AER status has latched errors of a poor signal, where the configuration space was read so far."""
    data = device.bytes_of("aer")
    if device.answers is False or len(data) < AER_CORRECTABLE + 4:
        return
    latched = bits(data[AER_CORRECTABLE : AER_CORRECTABLE + 4], CORRECTABLE)
    shown = ", ".join(latched) or "no correctable error is latched"
    sheet.fact("gpu.pcie.signal_bad", subject, not SIGNAL.isdisjoint(latched), f"{device.folder}/config", shown)


def _link(sheet: Sheet, device: Device, subject: Subject, known: Mapping[str, Device]) -> None:
    folder, raw = device.folder, device.raw
    here = ("gpu.pcie.gen", "gpu.pcie.width")
    if device.answers is False or device.silence:
        why = GONE if device.answers is False else device.silence
        for name in here:
            sheet.missing(name, subject, Status.FAILED if device.answers is False else Status.TIMEOUT, why, folder)
        return
    way = links(device, known)
    own, above = way[-1], way[:-1]
    speed, fastest, lanes, most = (
        device.speed("current"),
        device.speed("max"),
        device.width("current"),
        own.can("width"),
    )
    if speed in GENERATIONS:
        shown = words(raw["current_link_speed"])
        sheet.fact("gpu.pcie.gen", subject, GENERATIONS[speed], f"{folder}/current_link_speed", shown)
    if fastest in GENERATIONS:
        shown = words(raw["max_link_speed"])
        sheet.fact("gpu.pcie.gen.device_max", subject, GENERATIONS[fastest], f"{folder}/max_link_speed", shown)
    if lanes is not None:
        sheet.fact("gpu.pcie.width", subject, lanes, f"{folder}/current_link_width", str(lanes))
    elif "current_link_width" in raw:
        down = whole(raw["current_link_width"]) == 0
        status, why = (Status.FAILED, "the link is down") if down else why_not(raw["current_link_width"])
        sheet.missing("gpu.pcie.width", subject, status, why, f"{folder}/current_link_width")
    if most is not None:
        upper = own.upper.pci if own.upper else "not known"
        shown = (
            f"{device.width('max')} here, {own.upper.width('max') if own.upper else '?'} at the port above ({upper})"
        )
        sheet.fact("gpu.pcie.width.max", subject, int(most), f"{folder}/max_link_width", shown)
    names = ("gpu.pcie.uplink.width", "gpu.pcie.uplink.degraded")
    told = [(link, width) for link in above if (width := link.lower.width("current")) is not None]
    if not above:
        for name in names:
            why = "no PCIe switch stands between this GPU and the processor"
            sheet.missing(name, subject, Status.NOT_APPLICABLE, why, folder)
    elif len(told) == len(above):
        narrow, width = min(told, key=lambda item: item[1])
        sheet.fact(
            names[0], subject, width, f"{narrow.lower.folder}/current_link_width", f"{narrow.lower.pci}: {width} lanes"
        )
        bad = [(link.lower, said) for link in above if (said := link.below())]
        shown = ", ".join(f"{lower.pci} has {said}" for lower, said in bad) or "every link above is at its maximum"
        sheet.fact(names[1], subject, tuple(lower.pci for lower, _ in bad), narrow.lower.folder, shown)
