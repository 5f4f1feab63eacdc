"""Numbers and strings out of the text of a trace: exact, total, the same in Python and in `scanner.c`.

Every function takes the bytes of one JSON value, quoted or not, well formed or not, and never raises.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Final

from probes.trace.columns import ABSENT

_STRIP: Final = bytes(range(33)) + b'"'
_NUMBER = re.compile(rb"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_FURTHEST: Final = 10**6  # exponents beyond mean zero or too large anyway
_LONGEST: Final = 127  # bytes of a number that is read as a float
_CONTROL: Final = bytes(32 if c < 32 else c for c in range(256))


def tidy(data: bytes) -> bytes:
    """`data` with a space for each control character: outside strings they are white space, inside forbidden."""
    return data.translate(_CONTROL)


def text_of(raw: bytes) -> str:
    """A JSON string literal (with its quotes) as text, any other value as its JSON text.

    Escapes that JSON does not know stay as they are (old Kineto wrote Windows paths and regular expressions
    unescaped); bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD.
    """
    raw = tidy(raw)
    if raw[:1] != b'"':
        return raw.decode("utf-8", "replace").strip()
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text[1:-1]
    try:
        found = str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]
    return found.encode("utf-8", "replace").decode() if any("\ud800" <= c <= "\udfff" for c in found) else found


def _scaled(raw: bytes, shift: int) -> tuple[bool, int, bool] | None:
    """A decimal number times 10**shift: whether it is negative, its whole part, whether the rest is a half or more.

    None for what is no number, or has more than 20 digits before the point.
    """
    match = _NUMBER.fullmatch(raw.strip(_STRIP))
    if match is None or not (match[2] or match[3]):
        return None
    digits = match[2] + (match[3] or b"")
    point = len(match[2]) + shift + _exponent(match[4])
    short = digits.lstrip(b"0")
    point -= len(digits) - len(short)
    if not short:
        return match[1] == b"-", 0, False
    if point > 20:
        return None
    if point < 0:
        return match[1] == b"-", 0, False
    half = short[point : point + 1] >= b"5"
    return match[1] == b"-", int(short[:point].ljust(point, b"0") or b"0"), half


def _exponent(text: bytes | None) -> int:
    if not text:
        return 0
    size = text.lstrip(b"+-").lstrip(b"0")
    value = min(int(size or b"0"), _FURTHEST) if len(size) < 8 else _FURTHEST
    return -value if text[:1] == b"-" else value


def nanoseconds(raw: bytes) -> int | None:
    """Microseconds as decimal text to whole nanoseconds, exactly (half away from zero below a nanosecond).

    The text may be quoted. None for anything that is no finite number, or 2**62 ns and more.
    """
    whole, _, part = raw.partition(b".")
    if len(whole) <= 15 and len(part) == 3 and whole.isdigit() and part.isdigit():  # as Kineto writes it
        return int(whole + part)
    found = _scaled(raw, 3)
    if found is None:
        return None
    negative, value, half = found
    value += half
    if value >= 2**62:
        return None
    return -value if negative else value


def integer(raw: bytes) -> int:
    """A number, quoted or not, as int64, towards zero; ABSENT for anything else.

    From 2**63 to 2**64 it is taken for unsigned and wraps, so that ids that were written unsigned stay distinct.
    """
    if len(raw) <= 18 and raw.isdigit():
        return int(raw)
    found = _scaled(raw, 0)
    if found is None:
        return int(ABSENT)
    negative, value, _ = found
    if value < 2**63:
        return -value if negative else value
    return value - 2**64 if value < 2**64 and not negative else int(ABSENT)


def floating(raw: bytes) -> float:
    """A finite number, quoted or not; nan for anything else."""
    text = raw.strip(_STRIP)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]) or len(text) > _LONGEST:
        return float("nan")
    value = float(text)
    return value if isfinite(value) else float("nan")
