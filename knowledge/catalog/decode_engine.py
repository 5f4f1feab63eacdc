"""Bodies of XIDs that engines and channels raise: 13, 31, 32, 43, 45, 69, 109 and their like."""

from __future__ import annotations

from knowledge.catalog.decode_common import Fields, channel, find_hex, find_int, hex_text, present
from knowledge.lazy import lazy

# Graphics SM Warp Exception on (GPC 8, TPC 5, SM 1): Multiple Warp Errors
# Graphics SM Warp Exception on (GPC 1, TPC 0): Out Of Range Address
_SM = lazy(r"Graphics SM (Warp|Global) Exception")
_SM_KIND = lazy(r"Exception on \([^)]{1,60}\): (\S[^\n]{0,120})")
_GPC, _TPC, _SM_NUMBER = (lazy(rf"\b{unit} ?(\d{{1,4}})\s*[,)]") for unit in ("GPC", "TPC", "SM"))
# Graphics Exception: ESR 0x546fb0=0x11f000e 0x546fb4=0x24 0x546fa8=0xf81eb60 0x546fac=0x1174
# Graphics Exception: Shader Program Header 11 Error
_GRAPHICS = lazy(r"Graphics Exception(?:: (?!ESR|ChI[Dd]|channel)(\S[^\n]{0,120}))?")
_ESR = lazy(r"\b0x([0-9a-fA-F]{1,8})=0x([0-9a-fA-F]{1,16})\b")
# Graphics Exception: ChID 0003, Class 00008297, Offset 000015e0, Data 00000000
# Class Error: ChId 0008, Class 0000cbc0, Offset 00000184, Data ffffffff, ErrorCode 00000004
_CLASS, _OFFSET, _DATA, _ERROR_CODE = (
    lazy(rf"\b{name} (?:0x)?([0-9a-fA-F]{{8}})\b") for name in ("Class", "Offset", "Data", "ErrorCode")
)
# 0003 00000000 00008297 00001098 00000000 00000044      (channel, instance, class, offset, data, status)
_OLD_13 = lazy(r"\s*([0-9a-fA-F]{4}) [0-9a-fA-F]{8} ([0-9a-fA-F]{8}) ([0-9a-fA-F]{8}) ([0-9a-fA-F]{8})\b")


def graphics(text: str) -> Fields:
    """XID 13: which SM faulted and how; error status registers; the form of old drivers."""
    sm, plain, old = _SM.search(text), _GRAPHICS.search(text), _OLD_13.match(text)
    kind = _SM_KIND.search(text)
    out = channel(text)
    out |= present(
        exception_kind=sm[1].lower() if sm else "graphics" if plain else None,
        exception=(kind[1] if kind else plain[1].rstrip() if plain and plain[1] else None),
        gpc=find_int(_GPC, text), tpc=find_int(_TPC, text), sm=find_int(_SM_NUMBER, text),
        esr=" ".join(f"{hex_text(a)}={hex_text(b)}" for a, b in _ESR.findall(text)) or None,
    )  # fmt: skip
    if old:
        names = zip(("class_id", "offset", "data"), old.groups()[1:], strict=True)
        out |= {"channel": int(old[1], 16)} | {name: hex_text(digits) for name, digits in names}
    return out | _class_words(text)


def class_error(text: str) -> Fields:
    """XID 69: the class, method offset and data that the engine refused."""
    return channel(text) | _class_words(text)


def _class_words(text: str) -> Fields:
    return present(
        class_id=find_hex(_CLASS, text), offset=find_hex(_OFFSET, text), data=find_hex(_DATA, text),
        error_code=find_hex(_ERROR_CODE, text),
    )  # fmt: skip


# Ch 00000010, intr 10000000. MMU Fault: ENGINE CE0 HUBCLIENT_CE0 faulted @ 0x0_04a00000. Fault is of type
#   FAULT_INFO_TYPE_UNSUPPORTED_KIND ACCESS_TYPE_WRITE
# channel 0x0000000c, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC2 GPCCLIENT_PROP_0 faulted @ 0x0_00000000. ...
_ENGINE = lazy(r"\bENGINE ([A-Z][A-Z0-9_]{0,40})\s")
_CLIENT = lazy(r"\b((?:GPC|HUB|GPU|FBP)CLIENT_[A-Z0-9_]{1,40})\s")
_FAULT_GPC = lazy(r"\bENGINE \S{1,40} GPC(\d{1,3})\s")
_ADDRESS = lazy(r"faulted @ 0x([0-9a-fA-F_]{1,24})(?=[.,\s])")
_FAULT = lazy(r"\b(FAULT_[A-Z_]{2,60})\b")
_ACCESS = lazy(r"\b(ACCESS_TYPE_[A-Z_]{2,60})\b")
# Ch 0000000b, engmask 00000120, intr 10000000
_ENGMASK = lazy(r"\bengmask ([0-9a-fA-F]{8})\b")
_INTR = lazy(r"\bintr0? (?:0x)?([0-9a-fA-F]{8})\b")


def mmu(text: str) -> Fields:
    """XID 31 (and 137): who touched which address in what way."""
    engine, client, address = _ENGINE.search(text), _CLIENT.search(text), _ADDRESS.search(text)
    fault, access = _FAULT.search(text), _ACCESS.search(text)
    return channel(text) | present(
        engine=engine[1] if engine else None, client=client[1] if client else None,
        gpc=find_int(_FAULT_GPC, text),
        address=hex_text(address[1]) if address and address[1].strip("_") else None,
        fault_type=fault[1] if fault else None, access_type=access[1] if access else None,
        engmask=find_hex(_ENGMASK, text), intr=find_hex(_INTR, text),
    )  # fmt: skip


# Channel ID 0000000d intr0 00040000
# channel 0x00000007 intr1 00000004 HCE_DBG0 00000300 HCE_DBG1 0000118e
_INTR1 = lazy(r"\bintr1 (?:0x)?([0-9a-fA-F]{8})\b")


def pbdma(text: str) -> Fields:
    """XID 32: the channel and the interrupt words of the host DMA unit."""
    return channel(text) | present(intr=find_hex(_INTR, text), intr1=find_hex(_INTR1, text))


# Ch 00000001 caused by previous Xid 149
_PREVIOUS = lazy(r"caused by previous Xid (\d{1,4})\b")


def torn_down(text: str) -> Fields:
    """XID 43 and 45: the channel, and the XID that caused it where the driver says so."""
    return channel(text) | present(caused_by=find_int(_PREVIOUS, text), engmask=find_hex(_ENGMASK, text))


# Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005
# channel 0x0000000d, CTX SWITCH TIMEOUT, Info 0x14c011
_ERROR = lazy(r"\b(CTX SWITCH TIMEOUT)\b")
_INFO = lazy(r"\bInfo 0x([0-9a-fA-F]{1,8})\b")


def context_switch(text: str) -> Fields:
    """XID 109: the channel and the scheduler's word."""
    error = _ERROR.search(text)
    return channel(text) | present(error=error[1] if error else None, info=find_hex(_INFO, text))
