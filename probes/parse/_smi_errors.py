"""Sentences that nvidia-smi prints instead of, or before, its output when the driver does not answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.lazy import lazy
from knowledge.observation import Status
from probes.base import Line
from probes.parse._smi_emit import Emitter
from probes.parse._smi_values import RESET, Reading
from probes.parse._speakers import hearsay_line

# Failed to initialize NVML: Driver/library version mismatch
# Failed to initialize NVML: Insufficient Permissions
# nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.
# ... error creating nvml.Device 3: nvml: GPU is lost, which is unexpected
_INIT = lazy(
    r"(?:[Ff]ailed to initialize NVML|nvidia-container-cli: initialization error|nvml error|creating nvml\.Device \d{1,3}: nvml)"
    r": (.{1,120})"
)
# NVML library version: 535.183
_NVML = lazy(r"NVML library version: (\S{1,40})")
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 ...      cat /proc/driver/nvidia/version, pasted below
_MODULE = lazy(r"NVRM version: .{1,80}?Kernel Module(?: for \S{1,20})? {1,4}(\d{1,5}(?:\.\d{1,5}){1,2})\b")
# NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ...
_NO_DRIVER = lazy(r"NVIDIA-SMI has failed because (?:it couldn't|you are not|it could not)")
# NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.
_NO_LIBRARY = lazy(r"NVIDIA-SMI couldn't find (?:\S{0,60}libnvidia-ml|\S{0,60}nvml)")
_NO_DEVICES = lazy(r"\s*No devices were found\s*")
# Unable to determine the device handle for GPU 0000:BA:00.0: Unknown Error
# Unable to determine the device handle for GPU 0000:BA:00.0: GPU requires reset
# Unable to determine the device handle for GPU0: 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU
_HANDLE = lazy(
    r"Unable to determine the device handle for gpu\s{0,2}(?:\d{0,3}:\s{0,2})?([0-9a-f]{3,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"
    r":?\s{0,3}(.{0,160})",
    re.IGNORECASE,
)
# WARNING: infoROM is corrupted at gpu 0000:3B:00.0
_INFOROM = lazy(r"infoROM is corrupted at gpu ([0-9a-f]{3,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", re.IGNORECASE)
# nvidia/550.90.07, 5.15.0-119-generic, x86_64: installed            nvidia, 550.90.07, 5.15.0-119-generic, x86_64: installed      (dkms status)
_DKMS = lazy(r"nvidia(?:/|, )[\d.]{3,20}, ([\w.+-]{3,80}), \w{3,20}: installed\b.{0,80}")
# 5.15.0-124-generic        (uname -r)
_RELEASE = lazy(r"\s*(\d{1,2}\.\d{1,3}\.\d{1,3}(?:[-.][\w.+-]{1,60})?)\s*")
_ABSENT = lazy(r"(?:nvidia-smi: (?:command )?not found|command not found: nvidia-smi)")

PROVIDES = (
    "node.driver.module.fits",
    "node.driver.state",
    "node.kernel.version",
    "node.driver.nvml_version",
    "node.driver.version",
    "node.gpu.count",
    "gpu.nvml.reachable",
    "gpu.inforom.valid",
    "gpu.reset_required",
)


def sniff(head: str) -> int:
    """95 when the head is one of these sentences and no table or report follows."""
    if "+---" in head or "NVSMI LOG" in head or "<nvidia_smi_log" in head or head.count("\n") > 60:
        return 0
    found = any(p.search(head) for p in (_INIT, _NO_DRIVER, _NO_LIBRARY, _HANDLE, _INFOROM, _ABSENT))
    return 95 if found or any(_NO_DEVICES.fullmatch(line) for line in head.splitlines()) else 0


def errors(emit: Emitter, lines: Sequence[Line], resets: bool = True) -> bool:
    """Facts of the error sentences among `lines`; False when there are none.

    Without `resets` a GPU that is refused because it wants a reset is one that does not answer: of an output that nobody
    would ask for that.
    """
    before = len(emit.out)
    lost = False
    module_fits(emit, lines)
    for line in lines:
        text = line.text
        if ("N" not in text and "n" not in text) or hearsay_line(text):
            continue
        if (found := _HANDLE.search(text)) and resets and RESET.search(found[2]):
            emit.add("gpu.reset_required", emit.gpu(_widen(found[1])), True, line.number, text)
        elif found:
            lost = True
            emit.add("gpu.nvml.reachable", emit.gpu(_widen(found[1])), False, line.number, text)
            emit.add("node.driver.state", emit.node, "lost_gpu", line.number, text)
        elif found := _INIT.search(text):
            emit.add("node.driver.state", emit.node, init_state(found[1]), line.number, text)
        elif found := _MODULE.search(text):
            emit.add("node.driver.version", emit.node, found[1], line.number, text)
        elif found := _NVML.search(text):
            emit.add("node.driver.nvml_version", emit.node, found[1], line.number, text)
        elif _NO_DRIVER.search(text):
            emit.add("node.driver.state", emit.node, "not_loaded", line.number, text)
        elif _NO_LIBRARY.search(text):
            emit.add("node.driver.state", emit.node, "library_missing", line.number, text)
        elif _NO_DEVICES.fullmatch(text):
            # Behind a lost handle the sentence only says that no other GPU is left.
            if not lost:
                emit.add("node.driver.state", emit.node, "no_devices", line.number, text)
            emit.add("node.gpu.count", emit.node, 0, line.number, text)
        elif found := _INFOROM.search(text):
            emit.add("gpu.inforom.valid", emit.gpu(_widen(found[1])), False, line.number, text)
        elif _ABSENT.search(text):
            reading = Reading(None, Status.FAILED, "nvidia-smi is not installed or not in the path")
            emit.add("node.driver.state", emit.node, reading, line.number, text)
    return len(emit.out) > before


def module_fits(emit: Emitter, lines: Sequence[Line]) -> None:
    """Whether DKMS has the module for the kernel that runs, where both were pasted; nothing where one is missing."""
    built = [(line, found[1]) for line in lines if "installed" in line.text and (found := _DKMS.search(line.text))]
    running = [
        (line, found[1]) for line in lines if line.text[:1].isdigit() and (found := _RELEASE.fullmatch(line.text))
    ]
    if len(running) != 1 or not built:
        return
    line, release = running[0]
    fits = release in {kernel for _, kernel in built}
    emit.add("node.kernel.version", emit.node, release, line.number, line.text)
    emit.add(
        "node.driver.module.fits",
        emit.node,
        fits,
        built[0][0].number,
        f"{built[0][0].text.strip()}; running: {release}",
    )


def _widen(address: str) -> str:
    """Some drivers print three digits of the PCI domain."""
    domain, rest = address.split(":", 1)
    return f"{domain.rjust(4, '0')}:{rest}"


def init_state(reason: str) -> Reading:
    """State of the driver from NVML's reason."""
    words = reason.strip().lower().replace("_", " ")
    if "mismatch" in words:
        return Reading("library_mismatch")
    if "not loaded" in words:
        return Reading("not_loaded")
    if "insufficient permission" in words:
        return Reading(None, Status.DENIED, f"NVML: {reason.strip()}")
    if any(said in words for said in ("library not found", "could not load nvml", "load library failed")):
        return Reading("library_missing")
    if "gpu is lost" in words:
        return Reading("lost_gpu")
    return Reading("nvml_failed")
