"""The driver's side of a `pci` snapshot: /proc/driver/nvidia, the loaded modules, the device files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.identity import is_pci, normalise_pci
from knowledge.observation import Status, gpu
from knowledge.record import dataclass
from probes.parse._pci_device import Device
from probes.parse._sysfs import Sheet, table, whole, why_not, words

PROC = "/proc/driver/nvidia"
FACTS = (
    "node.driver.version", "node.driver.open", "node.driver.module_loaded", "node.driver.modules", "node.driver.gpu_count",
    "node.driver.gpus_gone", "node.driver.options", "node.device_nodes.missing", "node.device_nodes.denied",
    "node.pci.gpus.hidden", "node.pci.gpus.expected", "gpu.uuid", "gpu.minor", "gpu.name", "gpu.vbios",
)  # fmt: skip
_FIELDS = {"Model": "gpu.name", "GPU UUID": "gpu.uuid", "Video BIOS": "gpu.vbios", "Device Minor": "gpu.minor"}

# NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (dvs-builder@...)
_VERSION = re.compile(r"NVRM version: .{0,80}?Kernel Module.{0,40}?\s([0-9]{3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)\b")
_FIELD = re.compile(r"([A-Z][A-Za-z ]{1,30}):[ \t]*(\S.{0,120}?)\s*$", re.MULTILINE)
_OPTION = re.compile(r"(\w{1,60}): (.{0,200})")
_BOTH = 0o006  # readable and writable for everybody


@dataclass(frozen=True, slots=True)
class Known:
    """A GPU that the driver has an entry of."""

    pci: str
    minor: int | None


def emit_driver(sheet: Sheet, document: Mapping[str, Any], devices: list[Device]) -> None:
    """Version and modules, the GPUs that the driver knows, the device files, and what is hidden from this process."""
    raw = table(document.get("driver"))
    gpus = [d for d in devices if d.kind == "gpu" and not d.function]
    loaded = _modules(sheet, raw)
    _version(sheet, raw, loaded)
    known = _known(sheet, raw, loaded)
    if known is not None:
        _gone(sheet, known, devices, document)
    _nodes(sheet, document, known or [], loaded, raw)
    _hidden(sheet, document, known, gpus)


def _modules(sheet: Sheet, raw: Mapping[str, Any]) -> tuple[str, ...] | None:
    lines = raw.get("modules")
    names = ("node.driver.modules", "node.driver.module_loaded")
    if not isinstance(lines, list):
        status, detail = (Status.TIMEOUT, f"{raw['hung']} did not come back") if raw.get("hung") else why_not(lines)
        for name in names:
            sheet.missing(name, sheet.node, status, detail, "/proc/modules")
        return None
    modules = tuple(sorted({words(line).split(" ")[0] for line in lines if words(line)}))
    sheet.fact(names[0], sheet.node, modules, "/proc/modules", ", ".join(modules))
    line = next((words(text) for text in lines if words(text).startswith("nvidia ")), "")
    sheet.fact(names[1], sheet.node, "nvidia" in modules, "/proc/modules", line or "no line of a module nvidia")
    return modules


def _version(sheet: Sheet, raw: Mapping[str, Any], loaded: tuple[str, ...] | None) -> None:
    text = raw.get("version")
    call = f"{PROC}/version"
    first = words(text.split("\n")[0]) if isinstance(text, str) else ""
    if found := _VERSION.search(first):
        sheet.fact("node.driver.version", sheet.node, found[1], call, first)
        sheet.fact("node.driver.open", sheet.node, "Open Kernel Module" in first, call, first)
    elif text is not None or (loaded and "nvidia" in loaded):
        status, detail = why_not(text, "the driver shows no version here")
        for name in ("node.driver.version", "node.driver.open"):
            sheet.missing(name, sheet.node, status, detail, call, first)
    params = raw.get("params")
    if isinstance(params, str):
        options = tuple(
            f"{m[1]}: {m[2]}" for line in params.split("\n")[:200] if (m := _OPTION.fullmatch(line.strip()))
        )
        sheet.fact("node.driver.options", sheet.node, options, f"{PROC}/params", f"{len(options)} options")
    elif params is not None:
        sheet.missing("node.driver.options", sheet.node, *why_not(params), f"{PROC}/params")


def _known(sheet: Sheet, raw: Mapping[str, Any], loaded: tuple[str, ...] | None) -> list[Known] | None:
    """The driver's own list; None when it has none or may not be read."""
    entries, call = raw.get("gpus"), f"{PROC}/gpus"
    if not isinstance(entries, dict) or set(entries) == {"error"}:
        if raw.get("hung"):
            sheet.missing("node.driver.gpu_count", sheet.node, Status.TIMEOUT, f"{raw['hung']} did not come back", call)
        elif entries is not None or loaded is None or "nvidia" in loaded:
            sheet.missing("node.driver.gpu_count", sheet.node, *why_not(entries, f"{call} does not exist"), call)
        return None
    found = []
    for name in sorted(entries):
        pci = normalise_pci(name)
        if is_pci(pci):
            found.append(Known(pci, _entry(sheet, pci, entries[name], f"{call}/{name}/information")))
    sheet.fact("node.driver.gpu_count", sheet.node, len(found), call, ", ".join(k.pci for k in found[:16]))
    return found


def _entry(sheet: Sheet, pci: str, text: object, call: str) -> int | None:
    """The facts of one GPU; its minor number, the N of /dev/nvidiaN."""
    subject = gpu(pci, sheet.host)
    if not isinstance(text, str):
        for name in _FIELDS.values():
            sheet.missing(name, subject, *why_not(text), call)
        return None
    minor = None
    for found in _FIELD.finditer(text[:4096]):
        name, value = _FIELDS.get(found[1], ""), words(found[2])
        if not name or not value:
            continue
        if "?" in value or value == "N/A":
            why = "the driver has not started this GPU yet"
            sheet.missing(name, subject, Status.UNSUPPORTED, why, call, words(found[0]))
        elif name == "gpu.minor":
            minor = whole(value)
            if minor is not None:
                sheet.fact(name, subject, minor, call, words(found[0]))
        else:
            sheet.fact(name, subject, value, call, words(found[0]))
    return minor


def _gone(sheet: Sheet, known: list[Known], devices: list[Device], document: Mapping[str, Any]) -> None:
    """GPUs that the driver still has and the bus has not."""
    bus = table(document.get("bus"))
    if "functions" not in bus:
        return  # the bus could not be read: it is said there
    there = {d.pci for d in devices}
    gone = tuple(k.pci for k in known if k.pci not in there)
    shown = f"the driver lists {len(known)} GPUs" + (f"; not on the bus: {', '.join(gone)}" if gone else "")
    sheet.fact("node.driver.gpus_gone", sheet.node, gone, f"{PROC}/gpus", shown)


def _nodes(
    sheet: Sheet, document: Mapping[str, Any], known: list[Known], loaded: tuple[str, ...] | None, raw: Mapping[str, Any]
) -> None:  # fmt: skip
    names = ("node.device_nodes.missing", "node.device_nodes.denied")
    nodes = table(document.get("nodes"))
    if nodes.get("hung") or nodes.get("unread"):
        for name in names:
            sheet.missing(name, sheet.node, Status.TIMEOUT, "/dev did not come back", "/dev")
        return
    if loaded is not None and "nvidia" not in loaded and not known:
        for name in names:
            sheet.missing(name, sheet.node, Status.NOT_APPLICABLE, "the NVIDIA driver is not loaded", "/dev")
        return
    if loaded is None and not known and raw.get("version") is None:
        return
    wanted = ["nvidiactl", *(f"nvidia{k.minor}" for k in known if k.minor is not None)]
    if loaded and "nvidia_uvm" in loaded:
        wanted.append("nvidia-uvm")
    lacking = tuple(f"/dev/{name}" for name in wanted if not isinstance(nodes.get(name), dict))
    denied = tuple(f"/dev/{name}" for name in wanted if _denied(nodes.get(name)))
    shown = f"{len(wanted) - len(lacking)} of {len(wanted)} device files are there"
    sheet.fact(names[0], sheet.node, lacking, "/dev/nvidia*", shown)
    who = document.get("uid")
    for_whom = f"for user id {who}" if isinstance(who, int) else "for this user"
    marks = [f"/dev/{n} has mode {words(table(nodes.get(n)).get('mode'))}" for n in wanted if _denied(nodes.get(n))]
    sheet.fact(
        names[1],
        sheet.node,
        denied,
        "/dev/nvidia*",
        ", ".join(marks[:4]) or f"all that are there can be used {for_whom}",
    )


def _mode(node: object) -> int | None:
    mode = words(table(node).get("mode"))
    return int(mode, 8) if re.fullmatch(r"[0-7]{3,4}", mode) else None


def _denied(node: object) -> bool:
    """Whether mode and owner keep this user out. What a device cgroup forbids has a mode that allows it."""
    mode = _mode(node)
    return table(node).get("usable") is False and mode is not None and mode & _BOTH != _BOTH


def _hidden(sheet: Sheet, document: Mapping[str, Any], known: list[Known] | None, gpus: list[Device]) -> None:
    """GPUs that the driver has and this process is not given: containers mask /proc and /dev, jobs have device cgroups."""
    bus = table(document.get("bus"))
    if "functions" not in bus or any(d.driver is None for d in gpus):
        return
    nodes = table(document.get("nodes"))
    ours = [d for d in gpus if d.driver == "nvidia"]
    if known is None and ours:
        for name in ("node.pci.gpus.hidden", "node.pci.gpus.expected"):
            sheet.missing(
                name, sheet.node, Status.UNSUPPORTED, "the driver's list of GPUs is not shown here", f"{PROC}/gpus"
            )
        return
    minors = {k.pci: k.minor for k in known or []}
    # without the control file none was made yet (first use after boot), or there are no GPUs here at all: said elsewhere
    made = isinstance(nodes.get("nvidiactl"), dict)
    hidden = []
    for device in ours:
        minor = minors.get(device.pci)
        node = nodes.get(f"nvidia{minor}")
        kept_out = table(node).get("usable") is False and not _denied(node)
        if device.pci not in minors or (made and minor is not None and (node is None or kept_out)):
            hidden.append(device.pci)
    foreign = [d for d in gpus if d.driver not in ("nvidia", "")]
    shown = f"{len(gpus)} on the bus, {len(hidden)} not given to this process, {len(foreign)} held by another driver"
    sheet.fact("node.pci.gpus.hidden", sheet.node, tuple(hidden), f"{PROC}/gpus, /dev/nvidia*", shown)
    sheet.fact(
        "node.pci.gpus.expected", sheet.node, len(gpus) - len(hidden) - len(foreign), "/sys/bus/pci/devices", shown
    )
