"""Durations as people write them in rules and on the command line."""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
          "d": 86400 * 10**9, "w": 7 * 86400 * 10**9}  # fmt: skip
_PART = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?(ns|us|ms|s|m|h|d|w)")


def parse_duration(text: str) -> int:
    """Nanoseconds of ``"90s"``, ``"1h30m"``, ``"2.5ms"``, exact. ValueError when it is not a duration."""
    total, end = 0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        unit, decimals = _UNITS[part[3]], part[2] or ""
        total += int(part[1]) * unit + round(int(decimals or "0") * unit / 10 ** len(decimals))
        end = part.end()
    if not text or end != len(text):
        raise ValueError(f"{text!r} is not a duration (write 90s, 10m, 24h, 7d)")
    return total


def format_duration(ns: int) -> str:
    """The shortest exact spelling: 5400e9 is ``1h30m``; a negative one has a sign in front."""
    if ns <= 0:
        return f"-{format_duration(-ns)}" if ns else "0s"
    out, rest = "", ns
    for unit in ("d", "h", "m", "s", "ms", "us", "ns"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            out += f"{count}{unit}"
    return out
