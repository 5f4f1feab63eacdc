"""What Intel's drivers xe and i915 say: hung work, devices that are given up, hardware errors.

Source of the lines: drivers/gpu/drm/xe and i915 of Linux 5.4 to 6.17, their patches, and logs in public issues.
"""

from __future__ import annotations

import re

from knowledge.observation import Scalar
from probes.parse._kernel_common import Reading, body, from_kernel, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

EVENTS = ("intel_gpu_hang", "intel_gpu_hardware_error", "intel_gpu_wedged")
BURSTS = dict.fromkeys(EVENTS, 2 * SECOND)  # `LogFormat.bursts`
TRIGGERS = (r"xe \d{4,8}:", r"i915 \d{4,8}:")
HINTS = ("xe 0", "i915 0")
_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
# xe 0000:03:00.0: [drm] Tile0: GT0: ...      i915 0000:00:02.0: [drm] ...
_DEVICE = rf"\b(?:xe|i915) ({_ADDRESS}): "
# xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.
# i915 0000:00:02.0: [drm] *ERROR* Failed to reset chip
_WEDGED = r"CRITICAL: Xe has declared device \S{1,16} as wedged|\*ERROR\* (?:GT\d: )?Failed to reset chip"
# ... Timedout job: seqno=106926, lrc_seqno=106926, guc_id=6, flags=0x20 in llama-bench [260404]
# ... GPU HANG: ecode 12:1:85dffffb, in python3 [1234]
_HANG = r"(?:Timedout job: seqno=|GPU HANG: ecode )"
_WHO = r" in (.{1,40}?) \[(-?\d{1,10})\]"
# ... Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=6
_ENGINE = r"Engine reset: engine_class=(\w{1,12})"
# xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported NONFATAL error 0x20000
_HARDWARE = r"\[Hardware Error\]: .{0,60}\b(NONFATAL|FATAL|CORRECTABLE)\b"


def named(entry: Entry) -> bool:
    """True for a line in which one of the drivers names a device."""
    return any(hint in entry.message for hint in HINTS) and rx(_DEVICE).search(entry.message) is not None


def _processor_graphics(address: str) -> bool:
    """The graphics of an Intel processor are always device 2 of bus 0: a screen, and no GPU that computes for anybody here."""
    return re.fullmatch(r"(?:0+:)?00:02\.\d", address) is not None


def read(reading: Reading) -> None:
    """All recognisers of this module."""
    last: dict[tuple[str, str], Entry] = {}
    engines: dict[str, tuple[Entry, str]] = {}
    for entry in reading.entries:
        message = entry.message
        device = rx(_DEVICE).search(message) if any(hint in message for hint in HINTS) else None
        if not device or not from_kernel(entry) or _processor_graphics(device[1]):
            continue
        subject = reading.gpu(entry, device[1])
        key = str(subject)
        if engine := rx(_ENGINE).search(message):
            engines[key] = entry, engine[1]
            continue
        fields: dict[str, Scalar] = {"text": body(message)}
        if rx(_WEDGED).search(message):
            fact = "intel_gpu_wedged"
        elif hardware := rx(_HARDWARE).search(message):
            fact, fields["severity"] = "intel_gpu_hardware_error", hardware[1].lower()
        elif rx(_HANG).search(message):
            fact, who, before = "intel_gpu_hang", rx(_WHO).search(message), engines.pop(key, None)
            fields |= {
                "engine": before[1] if before and within(before[0], entry, 10 * SECOND) else "",
                "process": who[1] if who and int(who[2]) > 0 else "",
                "pid": int(who[2]) if who and int(who[2]) > 0 else None,
            }
        else:
            continue
        again = last.get((fact, key))
        last[fact, key] = entry
        if again is not None and within(again, entry, 2 * SECOND):  # several lines of one fault
            reading.again.add(entry.number)
            continue
        reading.event(fact, subject, entry, fields)
