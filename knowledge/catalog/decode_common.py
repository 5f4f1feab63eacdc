"""What the decoders of XID message bodies share: field values, numbers, channels.

Patterns run on one bounded line and hold no nested quantifiers. Each value is read on its own, so
that a truncated line still gives what stands before the cut.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from knowledge.lazy import lazy
from knowledge.observation import Scalar

Fields: TypeAlias = dict[str, Scalar]

# Ch 00000008        ChID 0003        ChId 0008        Channel ID 0000000d        channel 0x0000000c
_CHANNEL = lazy(
    r"\bch(?:annel(?: id)?|id)?[ ]{1,4}(?:0x([0-9a-f]{1,8})|([0-9a-f]{8})|([0-9a-f]{4}))\b(?!\()", re.IGNORECASE
)


def hex_text(digits: str, width: int = 0) -> str:
    """A hexadecimal number in one spelling: lower case, ``0x``, without the driver's underscores."""
    return f"0x{int(digits.replace('_', ''), 16):0{width}x}"


def find_int(pattern: re.Pattern[str], text: str, base: int = 10) -> int | None:
    """The first group of `pattern` as a number; None when it does not occur."""
    found = pattern.search(text)
    return int(found[1], base) if found else None


def find_hex(pattern: re.Pattern[str], text: str) -> str | None:
    """The first group of `pattern` as hexadecimal text; None when it does not occur."""
    found = pattern.search(text)
    return hex_text(found[1]) if found else None


def present(**values: Scalar) -> Fields:
    """The values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def channel(text: str) -> Fields:
    """The channel that a line names. Drivers print it in hexadecimal, with or without ``0x``."""
    found = _CHANNEL.search(text)
    return present(channel=int(found[1] or found[2] or found[3], 16) if found else None)
