"""Values of NVML as the collector keeps them: raw numbers with units, sentinels and error codes -> readings.

Sources: the public NVML API (nvml.h as nvidia-ml-py declares it).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Status
from knowledge.text import clean
from probes.parse._smi_values import Reading, blank

Raw: TypeAlias = Any  # what JSON holds
Take: TypeAlias = Callable[[Raw], Reading]

LOST, RESET_REQUIRED, CORRUPTED_INFOROM = 15, 16, 14
NO_PERMISSION, NOT_LOADED, NO_LIBRARY, MISMATCH = 4, 9, 12, 18
# INVALID_ARGUMENT: the library is older than the number it was asked for. NOT_FOUND, NO_DATA: nothing of the kind.
_UNSUPPORTED = frozenset({2, 3, 6, 13, 21, 22, 25, 26})
_DENIED = frozenset({NO_PERMISSION, 17})
_TIMEOUT = 10
_ABSENT = ("AttributeError", "unknown to this pynvml")  # pynvml is older than the call
REMEDY = "needs the administrator: run sudo gpudiag check"

# nvmlReturn_t of a fabric registration, as nvidia-smi words it.
_RESULTS = {
    0: "success", 1: "uninitialized", 2: "invalid_argument", 3: "not_supported", 4: "insufficient_permissions",
    6: "not_found", 7: "insufficient_size", 9: "driver_not_loaded", 10: "timeout", 14: "corrupted_inforom",
    15: "gpu_is_lost", 16: "gpu_requires_reset", 19: "in_use", 20: "insufficient_memory", 23: "insufficient_resources",
    27: "not_ready", 29: "invalid_state", 999: "unknown_error",
}  # fmt: skip
MIB = 1 << 20


def failed(raw: Raw) -> Reading | None:
    """The reading of a call that failed; None when `raw` is a value."""
    if not isinstance(raw, Mapping) or "error" not in raw:
        return None
    said, code = clean(str(raw["error"]))[:200], code_of(raw)
    if code in _DENIED:
        return Reading(None, Status.DENIED, f"{said}: {REMEDY}")
    if code in _UNSUPPORTED or said.startswith(_ABSENT):
        return Reading(None, Status.UNSUPPORTED, said)
    return Reading(None, Status.TIMEOUT if code == _TIMEOUT else Status.FAILED, said)


def code_of(raw: Raw) -> int | None:
    """NVML's error number; None for a value."""
    code = raw.get("code") if isinstance(raw, Mapping) and "error" in raw else None
    return code if isinstance(code, int) else None


def odd(raw: Raw, wanted: str) -> Reading:
    """The reading of a value that has the wrong shape."""
    return Reading(None, Status.FAILED, f"not understood as {wanted}: {shown(raw)[:80]}")


_ENCODER = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` makes one for each value


def shown(raw: Raw) -> str:
    """A raw value as it stands in the document."""
    return _ENCODER.encode(raw)


def number(factor: float = 1, *, whole: bool = True) -> Take:
    """A number times `factor`; all bits set is no number. `whole` rounds to an integer."""

    def take(raw: Raw) -> Reading:
        if not isinstance(raw, int | float) or isinstance(raw, bool):
            return odd(raw, "a number")
        bad = blank(raw)
        if bad is not None:
            return bad
        return Reading(round(raw * factor) if whole else round(raw * factor, 6))

    return take


def flag(raw: Raw) -> Reading:
    """0 or 1."""
    return Reading(raw == 1) if raw in (0, 1) and isinstance(raw, int) else blanked(raw, "0 or 1")


def blanked(raw: Raw, wanted: str) -> Reading:
    """Why `raw` is not one of the expected values."""
    bad = blank(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    return bad or odd(raw, wanted)


def text(raw: Raw) -> Reading:
    """A string that says something."""
    value = clean(raw).strip()[:400] if isinstance(raw, str) else ""
    return Reading(value) if value else odd(raw, "text")


def pci(raw: Raw) -> Reading:
    """``busId`` of an nvmlPciInfo_t."""
    found = normalise_pci(clean(str(raw.get("busId")))) if isinstance(raw, Mapping) else UNKNOWN_PCI
    return odd(raw, "a PCI address") if found.startswith(UNKNOWN_PCI) else Reading(found)


def words(values: Mapping[int, str], other: str = "") -> Take:
    """A number of a closed list; `other` stands for one that is not in it."""

    def take(raw: Raw) -> Reading:
        word = values.get(raw) if isinstance(raw, int) and not isinstance(raw, bool) else None
        if word is None and other and isinstance(raw, int) and blank(raw) is None:
            word = other
        return Reading(word) if word is not None else blanked(raw, "one of " + ", ".join(values.values()))

    return take


def told(values: Mapping[int, str]) -> Take:
    """A number of a closed list of which 0 means that it is not reported."""
    some = words(values)
    return lambda raw: Reading(None, Status.UNSUPPORTED, "the driver does not report it") if raw == 0 else some(raw)


def member(name: str | int, take: Take) -> Take:
    """A member of a structure or of a list."""

    def inner(raw: Raw) -> Reading:
        try:
            return take(raw[name])
        except (KeyError, IndexError, TypeError):
            return odd(raw, f"a structure with {name}")

    return inner


def length(raw: Raw) -> Reading:
    """How many there are in a list."""
    return Reading(len(raw)) if isinstance(raw, list) else odd(raw, "a list")


def pstate(raw: Raw) -> Reading:
    """P0 to P15; 32 is unknown."""
    return (
        Reading(raw)
        if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= 15
        else blanked(raw, "P0 to P15")
    )


def version2(raw: Raw) -> Reading:
    """``[9, 0]`` -> ``9.0``."""
    fine = isinstance(raw, list) and len(raw) == 2 and all(isinstance(v, int) and 0 <= v < 100 for v in raw)
    return Reading(f"{raw[0]}.{raw[1]}") if fine else odd(raw, "a version")


def cuda(raw: Raw) -> Reading:
    """12090 -> ``12.9``."""
    fine = isinstance(raw, int) and not isinstance(raw, bool) and 1000 <= raw < 1000000
    return Reading(f"{raw // 1000}.{raw % 1000 // 10}") if fine else odd(raw, "a CUDA version")


def result(raw: Raw) -> Reading:
    """The word of an nvmlReturn_t that tells how something went."""
    if not isinstance(raw, int) or isinstance(raw, bool):
        return odd(raw, "a result")
    return Reading(_RESULTS.get(raw, f"error_{raw}"))


def uuid(raw: Raw) -> Reading:
    """16 bytes in hexadecimal -> 8-4-4-4-12."""
    value = raw.lower() if isinstance(raw, str) else ""
    if len(value) != 32 or not all(c in "0123456789abcdef" for c in value):
        return odd(raw, "a UUID")
    return Reading("-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:])))


def ber(raw: Raw) -> Reading:
    """A bit error rate: mantissa in bits 8 to 11, negative decimal exponent in bits 0 to 7 (NVML_NVLINK_BER_*)."""
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw < 1 << 12:
        return blanked(raw, "a bit error rate")
    value = float(f"{raw >> 8}e-{raw & 0xFF}")
    return Reading(value) if value <= 1 else odd(raw, "a bit error rate")


def two_bits(shift: int, values: Mapping[int, str | bool]) -> Take:
    """A field of two bits (four of the configuration) in the fabric's health mask; 0 is "not supported"."""
    width = 0xF if len(values) > 2 else 0x3

    def take(raw: Raw) -> Reading:
        if not isinstance(raw, int) or isinstance(raw, bool) or raw < 0 or blank(raw) is not None:
            return blanked(raw, "a health mask")
        bits = raw >> shift & width
        if bits == 0:
            return Reading(None, Status.UNSUPPORTED, "the fabric does not report it")
        return Reading(values[bits]) if bits in values else odd(raw, "a health mask")

    return take
