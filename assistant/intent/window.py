"""The span of time that a question about a log means: "at 4am", "between 03:00 and 04:00", "since 14:00", "the last 2 hours"."""

from __future__ import annotations

import re
from typing import NamedTuple

from knowledge.lazy import lazy

AROUND = 30  # minutes on either side of a time that is named: people round
DAY = 24 * 60
_CLOCK = lazy(r"(?<![0-9:.])([01]?[0-9]|2[0-3]):([0-5][0-9])(?![0-9])")
_HOUR = lazy(
    r"\b(?:at|around|about|since|after|from)\s+([0-9]{1,2})(?:\s*o'?clock)?(?=\s*(?:$|[?.!,]|in the|on\b))",
    re.IGNORECASE,
)
_UNTIL = lazy(r"\b(?:before|until|till|by|up to)\b|之前|以前|为止", re.IGNORECASE)
_ON = lazy(r"\b(?:since|after|from)\b|以来|以后|之后|开始|起(?![因床])", re.IGNORECASE)
_HAN = {c: n for n, c in enumerate("零一二三四五六七八九十")} | {"两": 2}
_PARTS = {"pm": 12, "下午": 12, "晚上": 12, "傍晚": 12}  # hours that are added to one of the first half of the day
_TIME = (
    r"(?:20[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}[ T])?(?P<d{0}>凌晨|早上|上午|中午|下午|傍晚|晚上)?\s*(?P<h{0}>[0-9]{{1,2}}|[一二两三四五六七八九十]{{1,3}})"
    r"(?:\s*(?:[:：](?P<m{0}>[0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?|(?P<c{0}>[点时])(?P<q{0}>半|[0-5]?[0-9](?:分)?)?(?:钟|整)?))?\s*(?P<p{0}>am|pm|h|o'clock)?(?![0-9a-z])"
)
_SPAN = lazy(
    rf"(?:(?<![a-z])(?:between|from)\s+|从\s*|在\s*)?(?<![0-9:.,-]){_TIME.format(1)}\s*(?:and|to|till|until|through|[-–—~～]|到|至|和|与)\s*{_TIME.format(2)}(?P<end>\s*(?:之间|期间))?(?!\s*(?:gpus?|cards?|nodes?|ranks?|steps?|g?i?b|m?s|%|°|w|张|块|个))",
    re.IGNORECASE,
)
_BACK = lazy(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Window(NamedTuple):
    """A span of the day on the log's own clock, or one that is counted back from its last line."""

    start: int = 0  # minute of the day
    minutes: int = DAY
    back: int = 0  # ns; 0: the time of the day counts

    def has(self, at: int, last: int) -> bool:
        """Whether a time in ns lies in it; `last` is the latest of the log, from which a span is counted back."""
        return at >= last - self.back if self.back else self.holds(minute_of(at))

    def holds(self, minute: float) -> bool:
        """Whether a time of the day, in minutes, lies in the span, which may go past midnight."""
        return (minute - self.start) % DAY <= self.minutes

    def off(self, minute: float) -> float:
        """How far a time of the day lies from the middle of the span, in minutes."""
        return abs((minute - self.start) % DAY - self.minutes / 2)


def minute_of(at: int) -> float:
    """The minute of the day of a time in ns."""
    return at / 60e9 % DAY


def window_of(text: str, since: str) -> Window | None:
    """The span that `text` names (`since`: its slot of that name, which has words read as clock times); None for all."""
    if (span := _span(text)) is not None:
        return span
    if back := _BACK.fullmatch(since):
        return Window(back=int(float(back[1]) * _SECONDS[back[2]] * 10**9))
    found = _CLOCK.search(since) or _CLOCK.search(text)
    hour = None if found else _HOUR.search(text)
    if found is None and hour is None:
        return None
    at = int(found[1]) * 60 + int(found[2]) if found else int(hour[1]) * 60 if hour else 0
    if at >= DAY:
        return None
    if _UNTIL.search(text):
        return Window(0, at)
    if _ON.search(text):
        return Window(at, DAY - at)
    return Window((at - AROUND) % DAY, 2 * AROUND)


def _span(text: str) -> Window | None:
    """From one time of the day to another: two bare numbers are none."""
    for found in _SPAN.finditer(text):
        worded = found[0][:1] in "fFbB从在" or found["end"]
        if not (worded) and not all(found[f"m{n}"] or found[f"c{n}"] for n in "12"):
            continue
        if not any(found[f"{part}{n}"] for part in "mcp" for n in "12") and not found[0].lower().startswith("between"):
            continue  # "from 4 to 8 GPUs"
        start, end = (_minutes(found, n) for n in "12")
        if start is not None and end is not None and start != end:
            return Window(start, (end - start) % DAY)
    return None


def _minutes(found: re.Match[str], n: str) -> int | None:
    said, part = found[f"h{n}"], found[f"d{n}"] or (found[f"p{n}"] or "").lower() or found["d1"] or ""
    hour = int(said) if said.isdigit() else _han(said)
    if hour is None or hour > 24:
        return None
    if hour < 12:
        hour += _PARTS.get(part, 0)
    quarter = found[f"q{n}"] or ""
    minute = found[f"m{n}"] or ("30" if quarter == "半" else quarter.rstrip("分")) or "0"
    return (hour * 60 + int(minute)) % DAY


def _han(said: str) -> int | None:
    head, ten, tail = said.partition("十")
    if not ten:
        return _HAN.get(said)
    return _HAN.get(head or "一", 1) * 10 + _HAN.get(tail or "零", 0)
