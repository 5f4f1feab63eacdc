"""Bodies of NVLink XIDs (74, 136, 144-150, 155) and of NVSwitch lines (SXid)."""

from __future__ import annotations

import re

from knowledge.catalog.decode_common import Fields, find_int, hex_text, present
from knowledge.catalog.decode_nvlink74 import REGISTERS, decode_nvlink74
from knowledge.lazy import lazy

# NVLink: fatal error detected on link 14(0x100000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
# NVLink: fatal error detected on link 6
# NVLink: Link training failed for link 3(0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
# NVLink: Link training failed for links 0x3f(0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
_LINK = lazy(r"\blink (\d{1,2})(?=[\s(,.:]|$)", re.IGNORECASE)
_LINKS = lazy(r"\blinks 0x([0-9a-fA-F]{1,16})(?=[\s(])")
_GROUP = lazy(r"\(([0-9a-fA-Fx, ]{3,120})(\)?)")
_WORD = lazy(r"0x([0-9a-fA-F]{1,8})(?=[\s,)])")


def registers(text: str) -> tuple[tuple[int, ...], bool]:
    """The register words in parentheses, and whether the group is closed (the line not cut within it)."""
    group = _GROUP.search(text)
    if group is None:
        return (), False
    return tuple(int(w, 16) for w in _WORD.findall(group[1] + group[2])), bool(group[2])


def link_error(text: str) -> Fields:
    """XID 74: the link, the registers, the set bits of each, and what they mean together.

    Class and meaning are given only for a whole group of seven: of a cut one, nobody knows the rest.
    """
    words, closed = registers(text)
    out = present(link=find_int(_LINK, text), registers=" ".join(hex_text(f"{w:x}") for w in words) or None)
    decoded = decode_nvlink74(words)
    for number in range(1, len(words) + 1):
        if bits := decoded.of(number):
            out[f"reg{number}_bits"] = ",".join(map(str, bits))
    if closed and len(words) == REGISTERS:
        strongest = decoded.link_class
        out["link_class"] = str(strongest) if strongest else "none"
        parts = [f"register {b.register} bit {b.bit}: {b.group.meaning.en}" for b in decoded.bits]
        out["link_meaning"] = "; ".join(parts) or "no bit is set"
        if decoded.unknown:
            out["unknown_bits"] = ",".join(f"{b.register}:{b.bit}" for b in decoded.unknown)
    return out


def training(text: str) -> Fields:
    """XID 136: the link or links that did not train. Their registers are other ones than those of 74."""
    words, _ = registers(text)
    links = _LINKS.search(text)
    return present(
        link=find_int(_LINK, text), links=hex_text(links[1]) if links else None,
        registers=" ".join(hex_text(f"{w:x}") for w in words) or None,
    )  # fmt: skip


# NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)
# NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]
# MSE degraded Fatal XC0 i0 Link -1 (0x00000000 0x00000000 ...)
# RLW_REMAP Nonfatal XC0 i0 Link 02             NVLINK: RLW_REMAP Nonfatal XC0 i0 Link 02
# NVLPW_CTRL Fatal XC0 i0 Link 03 : Link Down While Active.
# TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link 00 (0x0000000a 0x00000004 0x00000000 0x00000000)      both names of the unit
_HEAD = lazy(
    r"\s*(?:NVLINK: )?([A-Z][A-Za-z0-9_]{1,30}(?:/[A-Z][A-Za-z0-9_]{1,30})?(?: [Dd]egraded)?)\s{1,8}(Fatal|Nonfatal|Non-fatal)\b"
)
_XC = lazy(r"\bXC ?(\d{1,3})\b")
_INJECTED = lazy(r"\si ?(\d{1,3})\s")
_LINK5 = lazy(r"\bLink (?:(-?\d{1,2})(?=[\s(\[:])|(\d\d|-1)$)")
_GROUP5 = lazy(r"[(\[]([0-9a-fA-Fx, ]{3,160})([)\]]?)")
_WORD5 = lazy(r"0x([0-9a-fA-F]{8}\b|[0-9a-fA-F]{1,7}(?=[\s,)\]]))")


def nvlink5(text: str) -> Fields:
    """XID 144-150 and 155: what the line prints. What it means is `knowledge.catalog.nvlink5`.

    ``XC`` is cross-containment (work on other GPUs is hit), ``i`` an injected error, a link of -1
    no particular link: none is told.
    """
    head = _HEAD.match(text)
    if head is None:
        return {}
    link, xc, injected = _LINK5.search(text), _XC.search(text), _INJECTED.search(text)
    group = _GROUP5.search(text)
    words = [hex_text(w, 8) for w in _WORD5.findall(group[1] + group[2])] if group else []
    return present(
        unit=head[1], printed_severity=head[2].replace("-", ""),
        cross_contained=int(xc[1]) != 0 if xc else None, injected=int(injected[1]) != 0 if injected else None,
        link=number if link and (number := int(link[1] or link[2])) >= 0 else None,
        intrinfo=words[0] if words else None, error_status=words[1] if len(words) > 1 else None,
        debug_data=" ".join(words[2:]) or None,
        down_while_active=True if "Link Down While Active" in text else None,
    )  # fmt: skip


# 12028, Non-fatal, Link 61 egress non-posted PRIV error (First)
# 20034, Severity 1 Engine instance 60 Sub-engine instance 00
# 20034, Data {0x10000000, 0x10000000, 0x00000000, ...}
# detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61
_SX_LINK = lazy(r"\bLink (\d{1,3})(?=[\s,.]|$)")
_SX_PORT = lazy(r"\bport (\d{1,3})(?=[\s,.]|$)")
_SX_WORD = lazy(r"\b(Non-fatal|Nonfatal|Fatal)\b", re.IGNORECASE)
_ENGINE = lazy(r"\bEngine instance (\d{1,4})\s")
_SUB_ENGINE = lazy(r"\bSub-engine instance (\d{1,4})\b")
_PHYSICAL = lazy(r"\bphysical id (\d{1,4})\s")


def switch_line(text: str) -> Fields:
    """An SXid body, from the switch driver or the fabric manager: word, link, engine instance."""
    word, link = _SX_WORD.search(text), find_int(_SX_LINK, text)
    return present(
        severity_word=word[1] if word else None, link=link if link is not None else find_int(_SX_PORT, text),
        engine_instance=find_int(_ENGINE, text), sub_engine_instance=find_int(_SUB_ENGINE, text),
        physical_id=find_int(_PHYSICAL, text), first=True if "(First)" in text else None,
    )  # fmt: skip
