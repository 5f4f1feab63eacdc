"""Numbers of traces as people read them: times with their unit, shares, sizes; three digits that count."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

_TIMES = ((3600 * 10**9, "h"), (60 * 10**9, "min"), (10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
_SIZES = ((1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_MINUTES = 10  # shorter is told in seconds
NONE = "-"  # the trace does not tell


def digits(value: float) -> str:
    """Three digits that count, and never an exponent: 1234, 123, 12.3, 1.23, 0.123, 0."""
    size = abs(value)
    if size == 0:
        return "0"
    places = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:.{places}f}"


def duration(ns: float | None) -> str:
    """``12.3 ms``; ``-`` when there is none."""
    if ns is None or not isfinite(ns):
        return NONE
    if ns == 0:
        return "0"
    return _in(ns, _unit(ns))


def durations(values: Iterable[float | None]) -> list[str]:
    """Times that stand under each other, in the unit of the longest: they are compared, not read."""
    known = [*values]
    longest = max((abs(v) for v in known if v is not None and isfinite(v)), default=0)
    unit = _unit(longest)
    places = _places(longest / unit[0])
    return [_beside(v, unit, places) for v in known]


def _beside(ns: float | None, unit: tuple[int, str], places: int) -> str:
    if ns is None or not isfinite(ns):
        return NONE
    if ns == 0:
        return "0"
    least = 10**-places
    value = ns / unit[0]
    return f"<{least:g} {unit[1]}" if 0 < value < least else f"{value:.{places}f} {unit[1]}"


def _unit(ns: float) -> tuple[int, str]:
    size = abs(ns)
    if 60 * 10**9 <= size < _MINUTES * 60 * 10**9:
        return 10**9, "s"
    return next((u for u in _TIMES if size >= 0.9995 * u[0]), (1, "ns"))


def _in(ns: float, unit: tuple[int, str]) -> str:
    return f"{round(ns)} ns" if unit[0] == 1 and abs(ns) >= 1 else f"{digits(ns / unit[0])} {unit[1]}"


def _places(longest: float) -> int:
    return 0 if longest >= 9_999.5 else 1 if longest >= 9.995 else 2


def signed(ns: float | None) -> str:
    """A difference of times: ``+12.3 ms``."""
    if ns is None:
        return NONE
    return f"+{duration(ns)}" if ns > 0 else duration(ns).replace("-", "\u2212", 1) if ns < 0 else "0"


def share(fraction: float | None) -> str:
    """``61.7 %``; what is there and too small to print, of either sign, is no zero."""
    if fraction is None or not isfinite(fraction):
        return NONE
    percent = fraction * 100
    if percent == 0:
        return "0 %"
    if 0 < abs(percent) < 0.1:
        return "<0.1 %"
    whole = abs(percent) >= 999.5 or abs(percent - 100) < 1e-9
    return f"{percent:.0f} %" if whole else f"{percent:.1f} %"


def size(count: float | None) -> str:
    """``1.23 GiB``."""
    if count is None:
        return NONE
    unit = next((u for u in _SIZES if abs(count) >= u[0]), (1, "B"))
    return f"{digits(count / unit[0])} {unit[1]}" if unit[0] > 1 else f"{round(count)} B"


def number(count: float | None) -> str:
    """``12,345``."""
    return NONE if count is None else f"{round(count):,}"


def ratio(a: float, b: float) -> float | None:
    """`a` of `b`; None where there is no `b`."""
    return a / b if b else None
