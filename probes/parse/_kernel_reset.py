"""Resets of GPUs, as the kernel and nvidia-smi tell of them: asked for, done, failed, or refused because somebody uses the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from knowledge.observation import Scalar, Subject
from probes.parse._kernel_common import PCI, Reading, body, from_kernel, rx
from probes.parse._kernel_shape import Entry

TRIGGERS = (
    r"giving up", r"gpu-reset", r"nvidia-smi .{0,80}-r", r"reset GPU", r"successfully reset", r"could not be reset", r"[Uu]nable to reset", r"couldn't run", r"currently in use by", r"GPU 0000[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]: [A-Z]",
    r"\d: (?:resetting|reset done)",
)  # fmt: skip
HINTS = ("giving up", "gpu-reset", "nvidia-smi", "reset", "GPU 0000", "currently in use")
_FULL = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
# nvidia 0000:2a:00.0: not ready 65535ms after FLR; giving up          vfio-pci ...: not ready 65535ms after bus reset; giving up
_GIVEN_UP = rf"(?:([\w-]{{1,40}}) )?({_FULL}): not ready (\d{{1,9}})ms after (.{{1,40}}?); giving up"
# nvidia 0000:2a:00.0: resetting          nvidia 0000:2a:00.0: reset done
_KERNEL = rf"(?:([\w-]{{1,40}}) )?({_FULL}): (resetting|reset done)$"
# GPU 00000000:2A:00.0 was successfully reset.
_DONE = rf"GPU ({PCI}) was successfully reset"
# GPU 00000000:2A:00.0 could not be reset: Unknown Error
_FAILED = rf"GPU ({PCI}) could not be reset(?:: *(.{{1,200}}))?"
# Unable to reset this GPU: GPU 00000000:2A:00.0 has fallen off the bus
_UNABLE = rf"[Uu]nable to reset (?:this )?GPU\b(?=.{{0,80}}?({PCI})\b)(.{{1,200}})"
# GPU Reset couldn't run because GPU 00000000:06:00.0 is the primary GPU.
_REFUSED = rf"GPU [Rr]eset couldn't run because GPU ({PCI}) (.{{1,200}})"
# GPU 00000000:5D:00.0 is currently in use by another process.
_HELD = rf"GPU ({PCI}) is currently (in use by .{{1,160}})"
# The following GPUs could not be reset:
#   GPU 00000000:0C:00.0: In use by another client
_LIST = "The following GPUs could not be reset"
_LISTED = rf"^\s*GPU ({PCI}): (.{{1,200}})"
# By which the answer of nvidia-smi to a reset is known where it stands alone.
SAID = r"GPU [0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9] (?:was successfully reset|could not be reset|is currently in use by)|The following GPUs could not be reset"
# That it was not tried: somebody uses the GPU, or it is not there.
_IN_USE = (
    r"(?i)\bin use\b|fallen off the bus|\bbeing used\b|\bprimary\b|another (?:client|process)|not supported|permission"
)
# sudo: ops : COMMAND=/usr/bin/nvidia-smi --gpu-reset -i 2          $ nvidia-smi -r -i 0000:2a:00.0
_ASKED = r"\bnvidia-smi\b(?=.{0,120}?(?:--gpu-reset\b| -r(?:\s|$)))(.{0,160})"
_OF = rf"(?:-i|--id)[ =]({PCI}|\d{{1,3}})\b"


def read(reading: Reading) -> None:
    """Each as `gpu_reset_attempt`."""
    listed = -1
    for entry in reading.entries:
        message = entry.message
        if _LIST in message:
            listed = entry.number
        elif entry.number - listed <= 16 and listed >= 0 and (found := rx(_LISTED).search(message)):
            _told(reading, entry, found[1], _stage(found[2]), found[2])
        elif "reset" in message.lower() or any(
            word in message for word in ("giving up", "nvidia-smi", "currently in use")
        ):
            _line(reading, entry)


def _line(reading: Reading, entry: Entry) -> None:
    message = entry.message
    if (found := rx(_GIVEN_UP).search(message)) and from_kernel(entry, found.start()):
        if _is_gpu(reading, entry, found):
            _told(reading, entry, found[2], "failed", f"not ready {int(found[3]) // 1000} s after {found[4]}", "kernel")
    elif (found := rx(_KERNEL).search(message)) and from_kernel(entry, found.start()):
        if _is_gpu(reading, entry, found):
            _told(reading, entry, found[2], "begun" if found[3] == "resetting" else "succeeded", "", "kernel")
    elif found := rx(_DONE).search(message):
        _told(reading, entry, found[1], "succeeded")
    elif found := rx(_FAILED).search(message):
        _told(reading, entry, found[1], _stage(found[2] or ""), found[2] or "")
    elif found := rx(_UNABLE).search(message):
        _told(reading, entry, found[1], _stage(found[2]), found[2].lstrip(" :"))
    elif found := rx(_REFUSED).search(message) or rx(_HELD).search(message):
        _told(reading, entry, found[1], "refused", found[2])
    elif found := rx(_ASKED).search(message):
        for subject, index in _asked(reading, entry, found[1]):
            fields: dict[str, Scalar] = {
                "stage": "begun",
                "index": index,
                "reporter": "nvidia-smi",
                "text": body(message),
            }
            reading.event("gpu_reset_attempt", subject, entry, fields)


def _is_gpu(reading: Reading, entry: Entry, found: re.Match[str]) -> bool:
    return found[1] in ("nvidia", "amdgpu") or reading.is_gpu(entry, found[2])


def _stage(reason: str) -> str:
    return "refused" if rx(_IN_USE).search(reason) else "failed"


def _told(reading: Reading, entry: Entry, address: str, stage: str, reason: str = "", by: str = "nvidia-smi") -> None:
    fields: dict[str, Scalar] = {
        "stage": stage,
        "reason": body(reason, 200).rstrip("."),
        "reporter": by,
        "text": body(entry.message),
    }
    reading.event("gpu_reset_attempt", reading.gpu(entry, address), entry, fields)


def _asked(reading: Reading, entry: Entry, arguments: str) -> Iterator[tuple[Subject, int | None]]:
    """The GPU that a command names, by its address or by its number; the node without one: it is about all of them."""
    found = rx(_OF).search(arguments)
    if found is None:
        yield reading.node(entry), None
    elif not found[1].isdigit():
        yield reading.gpu(entry, found[1]), None
    else:
        yield reading.node(entry), int(found[1])
