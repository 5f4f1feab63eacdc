"""Bodies of memory XIDs: 48, 63, 64, 92, 94, 95, 140, 156, 157, 160, 161, 171, 172.

The forms are those of the open driver (``ras_events.c``) and of older drivers' logs.
"""

from __future__ import annotations

import re

from knowledge.catalog.decode_common import Fields, channel, find_hex, find_int, present
from knowledge.lazy import lazy

_PHYSICAL = lazy(r"\bphysAddr:? 0x([0-9a-fA-F_]{1,24})(?![0-9a-fA-F_])")
_PARTITION = lazy(r"(?<!sub)partition (\d{1,3})\b")
_SUBPARTITION = lazy(r"\bsubpartition (\d{1,3})\b")

# An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x18f31d80
#   partition 16, subpartition 3.
# An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 4, subpartition 1
# An uncorrectable ECC error has been detected on GPU in GSP-RISCV location 3
# The place must be whole: of a cut one ("in the frame") nobody knows whether it was the framebuffer.
_DETECTED_IN = lazy(r"detected (?:on GPU )?in (?:the )?(?!the\b)([A-Za-z][\w /-]{0,60}?)(?= at | location |[.,(])")
_IN_FRAMEBUFFER = lazy(r"detected (?:on GPU )?in the framebuffer\b")


def double_bit(text: str) -> Fields:
    """XID 48: framebuffer or SRAM, and where. NVIDIA counts every place but the framebuffer as SRAM."""
    where = _DETECTED_IN.search(text)
    unit = "framebuffer" if _IN_FRAMEBUFFER.search(text) else where[1].strip() if where else None
    return channel(text) | present(
        location=None if unit is None else "framebuffer" if unit == "framebuffer" else "sram",
        unit=unit, address=find_hex(_PHYSICAL, text), partition=find_int(_PARTITION, text),
        subpartition=find_int(_SUBPARTITION, text),
    )  # fmt: skip


# HBM, Uncorrectable DRAM error in FBPA 6 subpartition 0 physAddr 0x13fe7fbde0
# SM ICACHE, Uncorrectable SRAM error in GPC 7 TPC 6
# GSP-RISCV, Uncorrectable SRAM Error in location 3
# Double Bit ECC Error in FBPA 4 subpartition 1
_COMPANION_UNIT = lazy(r"([A-Za-z][\w /-]{0,40}), Uncorrectable (DRAM|SRAM)")
_FBPA = lazy(r"\bFBPA (\d{1,3})\b")
_GPC, _TPC = lazy(r"\bGPC (\d{1,3})\b"), lazy(r"\bTPC (\d{1,3})\b")


def companion(text: str) -> Fields:
    """XID 171 and 172: what kind of memory the error of XID 48 sits in, and where."""
    unit, fbpa = _COMPANION_UNIT.search(text), find_int(_FBPA, text)
    dram = fbpa is not None or (unit is not None and unit[2] == "DRAM")
    return present(
        location="framebuffer" if dram else "sram" if unit else None,
        unit=unit[1].strip() if unit else None, address=find_hex(_PHYSICAL, text), partition=fbpa,
        subpartition=find_int(_SUBPARTITION, text), gpc=find_int(_GPC, text), tpc=find_int(_TPC, text),
    )  # fmt: skip


# Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate.
# Row Remapper Error: (0x00000002eebc4100) - All reserved rows for bank are remapped
# DRAM Retirement failed due to no spare for retirement at 0x0000000000001234
# Bank Remapper: New bank marked for remapping, reset gpu to activate.
# Dynamic Page Retirement: New page retired, reboot to activate (0x00000000000b4e8f).
# Dynamic Page Retirement: FATAL, unable to retire page (0x3fdf5e)
# Row Remapper: Failed to remap row (0x000000000ecc4c17)
_MECHANISMS = (
    (lazy(r"\brow remapp|\bremap row\b", re.IGNORECASE), "row_remapper"),
    (lazy(r"\bbank remapper", re.IGNORECASE), "bank_remapper"),
    (lazy(r"\bpage retirement", re.IGNORECASE), "page_retirement"),
    (lazy(r"\bdram retirement", re.IGNORECASE), "dram_retirement"),
)
_REPAIR_ADDRESS = lazy(r"(?:\((?:0x)?|\bat 0x)([0-9a-fA-F]{5,16})(?![0-9a-fA-F])")
_PENDING = lazy(r"new (?:row|bank|page)\b.{0,60}?\b(?:marked|retired)\b", re.IGNORECASE)
# "Remapper Error" goes on with its reason: where that is cut off or new, it may be any.
_FAILED = lazy(r"remapper error|retirement failed|unable to retire|remapping failed|failed to remap", re.IGNORECASE)
_UNTOLD = lazy(r"unable to retire|remapping failed|failed to remap", re.IGNORECASE)
_FAILURES = (
    (lazy(r"all reserved rows for bank are remapped", re.IGNORECASE), "bank_full"),
    (lazy(r"remapping table is full", re.IGNORECASE), "table_full"),
    (lazy(r"\bno (?:more )?spare\b", re.IGNORECASE), "no_spare"),
    (lazy(r"full inforom object", re.IGNORECASE), "inforom_full"),
    (lazy(r"hw limit reached", re.IGNORECASE), "hardware_limit"),
    (lazy(r"disabled retirement", re.IGNORECASE), "disabled"),
    (lazy(r"already pending remapping|due to pending ", re.IGNORECASE), "already_pending"),
    (lazy(r"remap a reserved row", re.IGNORECASE), "reserved_row"),
    (lazy(r"\binternal\b|unknown error", re.IGNORECASE), "internal"),
)
# What these failures have in common: no spare is left for this place, which is NVIDIA's RMA criterion.
_EXHAUSTED = frozenset({"bank_full", "table_full", "no_spare"})


def remap(text: str) -> Fields:
    """XID 63 and 64: by which mechanism, at what address, pending or failed, and why (`untold`: the line does not say)."""
    mechanism = next((name for pattern, name in _MECHANISMS if pattern.search(text)), None)
    failure = next((name for pattern, name in _FAILURES if pattern.search(text)), None) if mechanism else None
    if mechanism and failure is None and _UNTOLD.search(text):
        failure = "untold"
    state = "failed" if failure or _FAILED.search(text) else "pending" if _PENDING.search(text) else None
    return channel(text) | present(
        mechanism=mechanism, address=find_hex(_REPAIR_ADDRESS, text) if mechanism else None,
        repair_state=state if mechanism else None, failure=failure,
        spares_exhausted=True if failure in _EXHAUSTED else None,
    )  # fmt: skip


# Disabling ECC single-bit error interrupts in framebuffer at logical partition 3, due to high error rate
# SM SBE interrupt storm detected
_STORM_FB = lazy(r"interrupts in framebuffer")
_STORM_SM = lazy(r"\bSM SBE interrupt storm")


def storm(text: str) -> Fields:
    """XID 92: which memory has the storm of corrected errors."""
    location = "framebuffer" if _STORM_FB.search(text) else "sram" if _STORM_SM.search(text) else None
    return present(location=location, partition=find_int(_PARTITION, text))


# Contained: SM (0x1). RST: No, D-RST: No
# Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No
# Contained: DRAM (0x3,0x1). physAddr: 0x1f4a8000 RST: No, D-RST: Yes
# Ch 00000009
_CONTAINMENT = lazy(r"\b(contained|uncontained)\b", re.IGNORECASE)
_UNIT = lazy(r"ontained: ([A-Za-z][\w /-]{0,60}?)\s*[.(]")
_UNIT_ARGUMENTS = lazy(r"ontained: [\w /-]{1,60}\((0x[0-9a-fA-F, x]{1,40})\)")
_RESET = lazy(r"(?<![-\w])RST: (Yes|No)\b")
_DRAIN = lazy(r"\bD-RST\S? (Yes|No)\b")


def contained(text: str) -> Fields:
    """XID 94 and 95: the unit, and whether the driver wants a reset (RST) or a drained reset (D-RST)."""
    how, unit, arguments = _CONTAINMENT.search(text), _UNIT.search(text), _UNIT_ARGUMENTS.search(text)
    reset, drain = _RESET.search(text), _DRAIN.search(text)
    return channel(text) | present(
        containment=how[1].lower() if how else None, unit=unit[1].strip() if unit else None,
        unit_arguments=arguments[1].replace(" ", "").lower() if arguments else None,
        address=find_hex(_PHYSICAL, text),
        reset_required=reset[1] == "Yes" if reset else None, drain_required=drain[1] == "Yes" if drain else None,
    )  # fmt: skip


# An uncorrectable ECC error detected (possible firmware handling failure) DRAM:0, LTC:0, MMU:0, PCIE:0
_COUNTS = {unit: lazy(rf"\b{unit}:\s?(-?\d{{1,11}})(?=,|\s|$)") for unit in ("DRAM", "LTC", "MMU", "PCIE")}


def residual(text: str) -> Fields:
    """XID 140: uncorrectable errors by unit. A negative number is the driver's own overflow; it is kept as printed."""
    return {f"ecc_{unit.lower()}": n for unit, p in _COUNTS.items() if (n := find_int(p, text)) is not None}


# Marking Channel 3 in FBPA 2 along with its pair for repair. Perform node reboot to activate repair.
# Repairing LTS failed as there are no more spare L2 slices.
# Retiring TPC 4 from GPC 2 with a spare from the same GPC.
# Unable to retire TPC 7 from GPC 3 in MIG mode as there are no spare TPCs in the same GPC.
_TARGET = lazy(
    r"\b(?:Marking|Repairing|Retiring|retire) (Channel|LTS|TPC)(?: (\d{1,3}))?(?: (?:in|from) (FBPA|FBP|FPB|GPC) (\d{1,3}))?\b"
)
_NO_SPARE = lazy(r"\bno (?:more )?spare")
_REPAIR_PENDING = lazy(r"\s*(?:Marking|Retiring) ")
_REPAIR_FAILED = lazy(r"\s*(?:Unable to retire|Repairing \w{1,10} failed)\b")
_ACTIVATE = lazy(r"Perform (.{1,30}?) to activate")


def repair(text: str) -> Fields:
    """XID 156, 157, 160, 161: what is retired or repaired, what activates it, whether a spare was left."""
    target, activate = _TARGET.search(text), _ACTIVATE.search(text)
    state = "failed" if _REPAIR_FAILED.match(text) else "pending" if _REPAIR_PENDING.match(text) else None
    return present(
        repair_target=target[1].lower() if target else None,
        repair_index=int(target[2]) if target and target[2] else None,
        container=target[3] if target else None,
        container_index=int(target[4]) if target and target[4] else None,
        activation="_".join(activate[1].lower().split()) if activate else None,
        repair_state=state, spares_exhausted=True if _NO_SPARE.search(text) else None,
    )  # fmt: skip
