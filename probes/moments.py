"""When the outputs of one text were taken, where lines between them say so: a heading, what ``date`` printed, a prompt with a clock.

Many tools print no time (``ibstat``, ``nvidia-smi nvlink -e``, ``perfquery``, ``edac-util``). Somebody who looks twice writes the time
ahead of each look. Such a line holds a time and no sentence: a line of a log, which begins with a time, is none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Status
from probes.base import Line, lines_of
from probes.parse._logtime import DAY, SECOND, Stamp, calendar_stamp, parse_iso

_HMS = r"(?P<h>[01]\d|2[0-3]):(?P<mi>[0-5]\d)(?::(?P<s>[0-5]\d)(?:[.,]\d{1,9})?)?"
_HALF = r"(?: (?P<half>[AP]M))?"
_ZONE = r"(?: ?(?P<z>Z|UTC|GMT|[A-Z]{3,4}|[+-]\d\d:?\d\d)(?!:?\w))?"
# 2026-11-03 03:00   2026-11-03T03:00:00Z   2026/11/03 03:00:00 UTC   2026年 11月 03日 星期二 03:00:00 UTC
_NUMBERS = lazy(
    rf"(?<![\d/-])(?P<y>\d{{4}})(?:[-/]|年 ?)(?P<mo>\d\d?)(?:[-/]|月 ?)(?P<d>\d\d?)日?(?:[T _]{{1,2}}|(?= ?星期| ?周))"
    rf"(?: ?(?:星期|周). ?)?{_HMS}{_ZONE}(?!:?\d)"
)
# Tue Nov  3 03:00:00 UTC 2026    Tue Nov 3 03:00:00 AM UTC 2026
_NAMES = lazy(rf"\b[A-Z][a-z]{{2}} (?P<mon>[A-Z][a-z]{{2}}) {{1,2}}(?P<d>\d\d?) {_HMS}{_HALF}{_ZONE} (?P<y>\d{{4}})\b")
# Tue  3 Nov 03:00:00 UTC 2026    Tue 03 Nov 2026 03:00:00 AM UTC
_DAY_FIRST = lazy(
    rf"\b[A-Z][a-z]{{2}},? {{1,2}}(?P<d>\d\d?) (?P<mon>[A-Z][a-z]{{2}}) (?:(?P<y>\d{{4}}) )?{_HMS}{_HALF}{_ZONE}(?: (?P<y2>\d{{4}}))?(?!:?\d)"
)
# 03:00   03:00:12
_CLOCK = lazy(rf"(?<![\d:.-]){_HMS}(?![:.-]?\w)")
_LONG, _SHORT = 200, 60  # characters that such a line has at most; one that is no heading
# Every 2.0s: nvidia-smi nvlink -e            gpu07: Tue Nov  3 03:00:00 2026
_WATCH = lazy(r"Every \d{1,5}(?:[.,]\d{1,3})?s: ")
# === 03:00 ibstat ===    # 03:00    root@n1 2026-11-03 03:00:00 ~# ibstat
_HEADED = lazy(r"\s{0,8}(?:[=*~_-]{2,80}|#{1,6}|>{2,4})\s{0,4}\S")
_PROMPT = lazy(r"\[?[\w.-]{1,40}@[\w.-]{1,80}[^$#%>]{0,160}[$#%>](?: |$)")
# at 03:00    before, 03:00:    T0 03:00    第一次 03:00
_ASIDE = frozenset(
    [
        "at",
        "on",
        "time",
        "date",
        "now",
        "before",
        "after",
        "first",
        "second",
        "third",
        "then",
        "later",
        "look",
        "sample",
        "run",
        "capture",
        "snapshot",
        "scrape",
        "t0",
        "t1",
        "t2",
        "a",
        "b",
        "1",
        "2",
        "3",
        "4",
        "5",
        "时间",
        "第一次",
        "第二次",
        "第三次",
        "之前",
        "之后",
        "采集",
        "前",
        "后",
        "于",
        "在",
    ]
)
_WORD = lazy(r"[\w.@/-]+")
_TOLD = lazy(r"\w: \w")  # behind the time: what a log's line says
_MOST = 6  # words that a heading has beside its time: a command, a name


def moment_of(text: str) -> Stamp | None:
    """The time that a line between outputs says; None for any other line. Of a time without a date the clock is `Clock.DAY`."""
    if len(text) > _LONG or ":" not in text:
        return None
    shown = _HEADED.match(text) or _WATCH.match(text) or _PROMPT.match(text)
    if shown is None and len(text) > _SHORT:
        return None
    for pattern in (_NUMBERS, _NAMES, _DAY_FIRST, _CLOCK):
        if found := pattern.search(text):
            beside = [w for w in _WORD.findall(f"{text[: found.start()]} {text[found.end() :]}") if w.strip(".@/-")]
            alone = all(word.lower() in _ASIDE for word in beside)
            sentence = _HEADED.match(text) and (len(beside) > _MOST or _TOLD.search(text, found.end()))
            return _stamp(found) if alone or (shown and not sentence) else None
    return None


def _stamp(found: re.Match[str]) -> Stamp | None:
    told = found.groupdict()
    hour, minute, second, zone = int(told["h"]), told["mi"], told["s"] or "00", told.get("z") or ""
    if told.get("half"):
        hour = hour % 12 + (12 if told["half"] == "PM" else 0)
    clock = f"{hour:02d}:{minute}:{second}"
    if "mon" in told:
        return calendar_stamp(told["mon"], told["d"], clock, told["y"] or told.get("y2"), zone)
    if "mo" in told:
        placed = zone if zone in ("Z", "UTC", "GMT") or zone[:1] in ("+", "-") else ""
        return parse_iso(f"{told['y']}-{int(told['mo']):02d}-{int(told['d']):02d} {clock}{placed}")
    return Stamp(Clock.DAY, (hour * 60 + int(minute)) * 60 * SECOND + int(second) * SECOND)


class At(NamedTuple):
    """A time and its clock."""

    at: int
    clock: Clock


class Moments(NamedTuple):
    """The lines of one text that say a time, and their times."""

    numbers: tuple[int, ...] = ()
    times: tuple[At, ...] = ()

    def of(self, line: int | None) -> At | None:
        """The time of what stands in `line`: that of the last such line ahead of it."""
        place = self.place(line)
        return self.times[place] if place >= 0 else None

    def place(self, line: int | None) -> int:
        """Which of the looks a line belongs to; -1 ahead of the first."""
        return bisect_right(self.numbers, line or 0) - 1


# 2026-03-01T10:00:00.000001Z   2026/03/01 10:00:00   [2026-03-01 10:00:00   10:00:00
_STAMPED = lazy(r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d")
_LOOKED = 60  # lines by which it is told


def stamped(lines: Sequence[Line]) -> bool:
    """Whether most lines begin with a time, as `kubectl logs --timestamps` and `ts` write it: then it is no heading where it stands alone."""
    some = [line.text for line in lines if line.text.strip()][:_LOOKED]
    return 2 * sum(_STAMPED.match(text) is not None for text in some) > len(some)


def moments(text: str) -> Moments:
    """All times that lines of `text` say. A clock that steps back is that of the next day."""
    numbers: list[int] = []
    times: list[At] = []
    days = 0
    lines = lines_of(text)
    for line in lines if not stamped(lines) else ():
        if (stamp := moment_of(line.text)) is None:
            continue
        at = stamp.value
        if stamp.clock is Clock.DAY:
            last = times[-1] if times and times[-1].clock is Clock.DAY else None
            days += last is not None and at + days * DAY < last.at
            at += days * DAY
        numbers.append(line.number)
        times.append(At(at, stamp.clock))
    return Moments(tuple(numbers), tuple(times))


# nvlink-20261103-0300.txt    ibstat.2026-11-03T03:00:00.log    perfquery_2026-11-03_03-00.txt
_IN_NAME = lazy(r"(?<!\d)(20\d\d)([-_.]?)(\d\d)\2(\d\d)[-_.T]?(\d\d)[-_:.]?(\d\d)(?:[-_:.]?(\d\d))?(?!\d)")


def of_name(name: str) -> Moments:
    """The time that a file's name tells of all that is in it; none where it tells no date and clock."""
    found = _IN_NAME.search(name.rpartition("/")[2])
    stamp = parse_iso("{0}-{2}-{3} {4}:{5}:{s}".format(*found.groups(), s=found[7] or "00")) if found else None
    return Moments((0,), (At(stamp.value, stamp.clock),)) if stamp is not None else Moments()


def dated(told: Sequence[Observation], known: Moments) -> list[Observation]:
    """`told`, with the time of their look for the values whose output prints none."""
    return [replace(o, at=when.at, clock=when.clock) if (when := _open(o, known)) else o for o in told]


def _open(o: Observation, known: Moments) -> At | None:
    """The time of a value that has none of its own, and a place in the text."""
    if o.at is None and o.status is Status.OK and o.source.line is not None and not isinstance(o.value, Event):
        return known.of(o.source.line)
    return None
