"""Durations as people write them in rules and on the command line, and values with the units of facts as people read them."""

from __future__ import annotations

from functools import lru_cache

from knowledge.lazy import lazy

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
          "d": 86400 * 10**9, "w": 7 * 86400 * 10**9}  # fmt: skip
_PART = lazy(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?(ns|us|ms|s|m|h|d|w)")


_SYMBOLS = {
    "percent": "%",
    "C": "°C",
    "count": "",
    "ratio": "",
}  # the vocabulary's words; the others are symbols themselves
_ZH = {"per day": "次/天", "per hour": "次/小时", "per minute": "次/分钟", "per second": "次/秒"}
TIMES = ("ns", "us", "ms", "s")  # units that the sentence of a fact may name: ``{ran_ms:ms}``


def symbol(unit: str, lang: str = "en") -> str:
    """What is written behind a number of a fact's `unit`: ``%``, ``°C``, ``MiB``; nothing behind what is counted. Only rates
    have words, and those are of a language."""
    return _ZH.get(unit, _SYMBOLS.get(unit, unit)) if lang == "zh" else _SYMBOLS.get(unit, unit)


def measured(value: object, unit: str) -> str:
    """A value with the symbol of its unit: ``91 °C``, ``34.1 %``, ``3``; floats to six figures."""
    said = f"{value:.6g}" if isinstance(value, float) else str(value)
    sign = symbol(unit)
    return f"{said} {sign}" if sign else said


def span(value: float, unit: str) -> str:
    """A duration in the largest unit up to seconds of which it is at least one: 600000 ms is ``600 s``; two days and more in days."""
    ns = value * _UNITS[unit]
    if abs(ns) >= 2 * _UNITS["d"]:
        return f"{ns / _UNITS['d']:.3g} d"
    sign = next((u for u in ("s", "ms", "us") if abs(ns) >= _UNITS[u]), "ns")
    return f"{ns / _UNITS[sign]:.6g} {sign}"


@lru_cache(512)  # rules say few, each in many places
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
