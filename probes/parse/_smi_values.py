"""Printed values of NVIDIA tools: what is a value, and what only looks like one.

A field that a tool prints is always answered for: it becomes a `Reading` with a value, or
with a status and the reason why there is none. Sources of the sentinels: NVML's error
strings, DCGM's ``dcgm_structs.h`` (BLANK, NOT_FOUND, NOT_SUPPORTED, NOT_PERMISSIONED of
each integer width and of doubles).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Scalar, Status
from knowledge.record import dataclass
from knowledge.text import clean


@dataclass(frozen=True, slots=True)
class Reading:
    """A value, or why there is none."""

    value: Scalar = None
    status: Status = Status.OK
    detail: str = ""

    @property
    def ok(self) -> bool:
        """True when there is a value."""
        return self.status is Status.OK


Convert: TypeAlias = Callable[[str], Reading]

_UNSUPPORTED = {
    "n/a", "na", "not supported", "not available", "not applicable", "unsupported", "not found", "-", "_",
    "requested functionality has been deprecated", "function not found", "not specified", "no data",
}  # fmt: skip
_FAILED = {
    "unknown error", "err!", "err", "error", "timeout", "timed out", "internal error", "uninitialized",
    "driver/library version mismatch", "corrupted inforom", "irq issue", "in use", "invalid argument", "unknown",
}  # fmt: skip
_PREFIXES = (
    (("insufficient permission", "no permission", "insf. permission", "not permissioned", "permission denied"),
     Status.DENIED),
    (("gpu is lost", "gpu_is_lost", "unknown error", "gpu requires reset", "fell off the bus"), Status.FAILED),
)  # fmt: skip
# GPU requires reset (NVML_ERROR_RESET_REQUIRED), in the place of a value
RESET = lazy(r"gpu[ _]requires[ _]reset", re.IGNORECASE)
LOST = lazy(r"gpu[ _]is[ _]lost|fallen off the bus|fell off the bus", re.IGNORECASE)

# value -> why; DCGM prints these numbers when it has no reading.
_BLANKS: dict[float, tuple[Status, str]] = {}
for _base, _width in ((0x7FFFFFF0, "int32"), (0x7FFFFFFFFFFFFFF0, "int64"), (0x800000000000, "double")):
    _BLANKS[float(_base)] = (Status.FAILED, f"blank {_width} of DCGM: no value yet")
    if _width != "int64":  # beyond 2^53 the neighbours are not told apart as doubles; see `blank`
        _BLANKS[float(_base + 1)] = (Status.UNSUPPORTED, f"blank {_width} of DCGM: field not found")
        _BLANKS[float(_base + 2)] = (Status.UNSUPPORTED, f"blank {_width} of DCGM: not supported")
        _BLANKS[float(_base + 3)] = (Status.DENIED, f"blank {_width} of DCGM: not permitted")
_BLANK64 = {
    0x7FFFFFFFFFFFFFF1: (Status.UNSUPPORTED, "blank int64 of DCGM: field not found"),
    0x7FFFFFFFFFFFFFF2: (Status.UNSUPPORTED, "blank int64 of DCGM: not supported"),
    0x7FFFFFFFFFFFFFF3: (Status.DENIED, "blank int64 of DCGM: not permitted"),
}
_ALL_ONES = {0x7FFFFFFFFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}


def absent(text: str) -> Reading | None:
    """The reading of a printed placeholder (``[N/A]``, ``ERR!``...); None when `text` is a value."""
    bare = text.strip().strip("[]").strip().lower().rstrip(".")
    if not bare:
        return Reading(None, Status.FAILED, "printed without a value")
    shown = f"printed as {clean(text.strip())[:120]}"
    if bare in _UNSUPPORTED:
        return Reading(None, Status.UNSUPPORTED, shown)
    if bare in _FAILED:
        return Reading(None, Status.FAILED, shown)
    for prefixes, status in _PREFIXES:
        if bare.startswith(prefixes):
            return Reading(None, status, shown)
    return None


def blank(number: float) -> Reading | None:
    """The reading of a sentinel number; None when it is a real one."""
    if isinstance(number, int):
        if number in _BLANK64:
            return Reading(None, *_BLANK64[number])
        if number in _ALL_ONES:
            return Reading(None, Status.FAILED, f"{number:#x}: all bits set, the device does not answer")
    if not math.isfinite(number):
        return Reading(None, Status.FAILED, f"printed as {number}")
    if float(number) in _BLANKS:
        return Reading(None, *_BLANKS[float(number)])
    if float(number) in (float(0xFFFFFFFF), float(0xFFFFFFFFFFFFFFFF)):
        return Reading(None, Status.FAILED, f"{number:.0f}: all bits set, the device does not answer")
    if abs(number - 4294967.295) < 0.01:  # 2^32-1 milliwatts
        return Reading(None, Status.FAILED, f"{number}: all bits set, the device does not answer")
    return None


def not_understood(text: str, wanted: str) -> Reading:
    """A printed value of a shape that this parser does not know."""
    return Reading(None, Status.FAILED, f"not understood as {wanted}: {clean(text.strip())[:80]!r}")


# "69.85 W", "16x", "2560 bank(s)", "-8 C", "100.00%", "0x10", "1.98e+09"
_NUMBER = lazy(r"([+-]?(?:0x[0-9a-fA-F]{1,16}|\d{1,20}(?:\.\d{0,12})?(?:[eE][+-]?\d{1,3})?))\s{0,4}(\S{0,12})")


def parse_number(text: str) -> tuple[int | float, str] | None:
    """Number and unit word of a printed quantity; None when it is something else."""
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        return None
    digits, unit = found[1], found[2]
    if "x" in digits:
        return int(digits, 16), unit
    if digits.lstrip("+-").isdigit():
        return int(digits), unit
    return float(digits), unit


def quantity(units: Mapping[str, float], *, whole: bool = False) -> Convert:
    """A converter of numbers with a unit to the unit whose factor is 1.

    A number whose unit is missing, where `units` has no empty one, stands on a cut line: FAILED.
    """
    lowered = {unit.lower(): factor for unit, factor in units.items()}

    def convert(text: str) -> Reading:
        if reading := absent(text):
            return reading
        parsed = parse_number(text)
        if parsed is None:
            return not_understood(text, "a number")
        number, unit = parsed
        if reading := blank(number):
            return reading
        factor = lowered.get(unit.lower())
        if factor is None:
            return not_understood(text, f"a number in {', '.join(u for u in units if u) or 'no unit'}")
        value = number * factor
        if whole:
            return Reading(round(value)) if abs(value - round(value)) < 1e-9 else not_understood(text, "a whole number")
        return Reading(float(value))

    return convert


def unitless(convert: Convert, unit: str) -> Convert:
    """`convert`, for a source that names the unit elsewhere (a CSV header) or not at all."""

    def with_unit(text: str) -> Reading:
        parsed = parse_number(text)
        return convert(f"{text.strip()} {unit}" if parsed is not None and not parsed[1] and unit else text)

    return with_unit


def text_value(text: str) -> Reading:
    """Any text that is not a placeholder."""
    return absent(text) or Reading(clean(text.strip())[:400])


def slug(text: str) -> str:
    """``Ada Lovelace`` -> ``ada_lovelace``: lower-case words joined by underscores."""
    return re.sub(r"[^a-z0-9]+", "_", clean(text).lower()).strip("_")


def slug_value(text: str) -> Reading:
    """A name that rules compare: a `slug`."""
    if reading := absent(text):
        return reading
    word = slug(text)
    return Reading(word) if word else not_understood(text, "a word")


def outcome(text: str) -> Reading:
    """The result of an operation as NVML words it: an error is the answer here, not the lack of one."""
    reading, word = absent(text), slug(text)
    if reading is not None and (reading.status is not Status.FAILED or LOST.search(text)):
        return reading
    return Reading(word) if word else not_understood(text, "a word")


_TRUE = {"enabled", "yes", "active", "on", "true", "1", "valid", "ok"}
_FALSE = {"disabled", "no", "not active", "off", "false", "0", "inactive", "invalid"}


def boolean(text: str) -> Reading:
    """``Enabled``/``Disabled``, ``Yes``/``No``, ``Active``/``Not Active``, ``On``/``Off``, ``True``/``False``."""
    if reading := absent(text):
        return reading
    word = text.strip().strip("[]").rstrip("*").strip().lower()
    if word in _TRUE:
        return Reading(True)
    if word in _FALSE:
        return Reading(False)
    return not_understood(text, "yes or no")


def enumeration(values: Mapping[str, str]) -> Convert:
    """A closed set of words: slug of the printed one -> value of the fact."""

    def convert(text: str) -> Reading:
        word = values.get(slug(text))
        if word is not None:
            return Reading(word)
        return absent(text) or not_understood(text, f"one of {', '.join(sorted(set(values.values())))}")

    return convert


def pci_value(text: str) -> Reading:
    """A PCI address in canonical form."""
    if reading := absent(text):
        return reading
    address = normalise_pci(text)
    return not_understood(text, "a PCI address") if address.startswith(UNKNOWN_PCI) else Reading(address)


def pstate(text: str) -> Reading:
    """``P0`` .. ``P15`` as a number."""
    if reading := absent(text):
        return reading
    found = re.fullmatch(r"[Pp](\d{1,2})", text.strip())
    return Reading(int(found[1])) if found else not_understood(text, "a performance state")
