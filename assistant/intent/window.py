"""The span of time that a question about a log means: "at 4am", "around 03:10", "since 14:00", "the last 2 hours"."""

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
_ON = lazy(r"\b(?:since|after|from)\b|以来|以后|之后|开始|起(?![因床])", re.IGNORECASE)
_BACK = lazy(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Window(NamedTuple):
    """A span of the day on the log's own clock, or one that is counted back from its last line."""

    start: int = 0  # minute of the day
    minutes: int = DAY
    back: int = 0  # ns; 0: the time of the day counts

    def holds(self, minute: int) -> bool:
        """Whether a minute of the day lies in the span, which may go past midnight."""
        return (minute - self.start) % DAY <= self.minutes


def window_of(text: str, since: str) -> Window | None:
    """The span that `text` names (`since`: its slot of that name, which has words read as clock times); None for all."""
    if back := _BACK.fullmatch(since):
        return Window(back=int(float(back[1]) * _SECONDS[back[2]] * 10**9))
    found = _CLOCK.search(since) or _CLOCK.search(text)
    hour = None if found else _HOUR.search(text)
    if found is None and hour is None:
        return None
    at = int(found[1]) * 60 + int(found[2]) if found else int(hour[1]) * 60 if hour else 0
    if at >= DAY:
        return None
    if _ON.search(text):
        return Window(at, DAY - 1 - at)
    return Window((at - AROUND) % DAY, 2 * AROUND)
