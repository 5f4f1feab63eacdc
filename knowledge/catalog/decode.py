"""Decoders of XID message bodies: what stands after ``NVRM: Xid (PCI:...): <code>, pid=..., name=..., ``.

Each decoder reads what is there and leaves out what is not; a truncated body gives fewer fields,
never other ones. Nothing here raises on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from knowledge.catalog import decode_engine, decode_firmware, decode_link, decode_memory
from knowledge.catalog.decode_common import Fields, channel
from knowledge.lazy import lazy
from knowledge.observation import Scalar

LIMIT = 2000  # characters; the driver's own lines are shorter than 1000

_DECODERS: Mapping[int, Callable[[str], Fields]] = {
    13: decode_engine.graphics, 31: decode_engine.mmu, 32: decode_engine.pbdma, 43: decode_engine.torn_down,
    45: decode_engine.torn_down, 48: decode_memory.double_bit, 61: decode_firmware.power_unit,
    62: decode_firmware.power_unit, 63: decode_memory.remap, 64: decode_memory.remap, 69: decode_engine.class_error,
    74: decode_link.link_error, 79: decode_firmware.off_bus, 92: decode_memory.storm, 94: decode_memory.contained,
    95: decode_memory.contained, 109: decode_engine.context_switch, 119: decode_firmware.rpc,
    120: decode_firmware.gsp, 136: decode_link.training, 137: decode_engine.mmu, 140: decode_memory.residual,
    143: decode_firmware.init_error, 154: decode_firmware.recovery, 155: decode_link.nvlink5,
    156: decode_memory.repair, 157: decode_memory.repair, 160: decode_memory.repair, 161: decode_memory.repair,
    171: decode_memory.companion, 172: decode_memory.companion, 175: decode_firmware.memory_timeout,
    **dict.fromkeys(range(144, 151), decode_link.nvlink5),
}  # fmt: skip

# Texts that only one code (or one pair) prints. A line whose code is another one contradicts itself.
_SIGNATURES: tuple[tuple[re.Pattern[str], tuple[int, ...]], ...] = (
    (lazy(r"NVLink: fatal error detected on link", re.IGNORECASE), (74,)),
    (lazy(r"GPU has fallen off the bus", re.IGNORECASE), (79,)),
    (lazy(r"Graphics SM (?:Warp|Global) Exception|Graphics Exception: (?:ESR|ChID)"), (13,)),
    (lazy(r"\bMMU Fault: ENGINE"), (31, 137)),
    (lazy(r"double bit error \(DBE\) has been detected"), (48,)),
    (lazy(r"Row Remapper: New row"), (63,)),
    (lazy(r"Row Remapper Error: \("), (64,)),
    (lazy(r"\bContained: [A-Z]"), (94,)),
    (lazy(r"\bUncontained: [A-Z]"), (95,)),
    (lazy(r"\bClass Error: Ch", re.IGNORECASE), (69,)),
    (lazy(r"CTX SWITCH TIMEOUT"), (109,)),
    (lazy(r"Timeout (?:after \d{1,5}s of )?waiting for RPC"), (119,)),
    (lazy(r"GSP (?:task|kernel) exception"), (120,)),
    (lazy(r"Link training failed for links?"), (136,)),
    (lazy(r"possible firmware handling failure"), (140,)),
    (lazy(r"while polling for FSP boot complete"), (143,)),
    (lazy(r"GPU recovery action changed from"), (154,)),
    (lazy(r"\s*SAW_\w{1,20}\s{1,8}(?:Fatal|Nonfatal)\s"), (144, 155)),
    (lazy(r"\s*RLW_\w{1,20}\s{1,8}(?:Fatal|Nonfatal)\s"), (145, 155)),
    (lazy(r"\s*TLW_\w{1,20}\s{1,8}(?:Fatal|Nonfatal)\s"), (146, 155)),
    (lazy(r"\s*NETIR\w{0,20}\s{1,8}(?:Fatal|Nonfatal)\s"), (149, 155)),
)


def text_belongs_to(code: int, text: str) -> int | None:
    """The XID whose text this is, when it is another one than `code`; None when nothing contradicts."""
    for pattern, codes in _SIGNATURES:
        if pattern.search(text):
            return None if code in codes else codes[0]
    return None


@lru_cache(maxsize=4096)
def _decode(code: int, text: str) -> Mapping[str, Scalar]:
    other = text_belongs_to(code, text)
    decoder = _DECODERS.get(other if other is not None else code, channel)
    fields = decoder(text)
    if other is not None:
        fields["text_conflict"] = other
    return MappingProxyType(fields)


def decode(code: int, text: str) -> dict[str, Scalar]:
    """The fields of an XID body, by the names that ``knowledge/data/facts/xid.yaml`` declares.

    `text` is what follows the code, without pid and name. When the text is that of another XID,
    it is read as such and ``text_conflict`` names that XID.
    """
    return dict(_decode(code, text[:LIMIT]))


def decode_sxid(text: str) -> dict[str, Scalar]:
    """The fields of an SXid body, from the switch driver or the fabric manager."""
    return dict(decode_link.switch_line(text[:LIMIT]))
