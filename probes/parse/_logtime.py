"""Times as logs print them, and the clocks they were read from.

A `Stamp` is what one line says. `settle` turns the stamps of a file, in file order, into
nanoseconds: it carries a year over New Year, a second boot past the first, and the deltas
of ``dmesg -d``. Nothing here looks at the clock of the machine.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from knowledge.lazy import lazy
from knowledge.observation import Clock
from knowledge.record import dataclass

SECOND = 10**9
DAY = 86_400 * SECOND
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Abbreviated month names of the languages that syslog, journalctl and `dmesg -T` are seen in: `abmon` and `ab_alt_mon` of
# glibc's locales, each with what begins with it. Where two languages use one word for different months the commoner one
# has it: Croatian lip, srp and lis are read as Polish lip (July), Czech srp (August) and Polish lis (November).
MONTHS = (
    "jan ene gen janv janvier januar january ian led oca янв січ tammi sty ιαν jän jaan saus sij xan urt yan яну јан сту "
    "ينا ژانویه ינו जन იან հնվ қаң ม.ค",
    "feb fev févr fév fevr febr februar february úno şub фев лют helmi lut φεβ veebr vas velj ots феб few "
    "فبر فوریه פבר फ़र თებ փտր ақп ก.พ",
    "mar mär mrz märz mars mrt march mär. bře мар бер maalis márc μαρ març μάρ kov ožu сак mac mäe "
    "مار مارس מרץ मार მარ մար нау มี.ค",
    "apr abr avr avril april dub nis апр кві huhti kwi ápr απρ bal tra api кра epr أبر آوریل אפר अप्रैल აპრ ապր сәу เม.ย",
    "may mai mag maj mei kvě май мая тра touko máj μαϊ μαΐ μάι geg svi мај maí mej maý mee "
    "ماي مه מאי मई მაი մայ мам พ.ค",
    "jun giu juin june juni iun čen haz июн чер kesä cze jún ιουν ιούν jūn juuni birž xuñ eka юни јун чэр iyn i̇yn iýn "
    "يون ژوئن יונ जून ივნ հնս мау มิ.ย",
    "jul lug juil juillet july juli iul čec tem июл лип heinä lip júl ιουλ ιούλ jūl juuli liep xul uzt jui юли јул ліп iyl i̇yl iýl "
    "يول ژوئیه יול जुल ივლ հլս шіл ก.ค",
    "aug ago août aout august srp ağu авг сер elo sie αυγ αύγ rugp kol avg avq abu жні ágú agu ogos awg aoû "
    "أغس اوت אוג अग აგვ օգս там ส.ค",
    "sep set sept september zář eyl сен вер syys wrz szept σεπ rugs ruj ira сеп sen "
    "سبت سپتامبر ספט सित სექ սեպ қыр ก.ย",
    "oct okt ott out october oktober říj eki окт жов loka paź οκτ spal urr кас och أكت اكتبر אוק अक्तू ოქტ հոկ қаз ต.ค",
    "nov november lis kas ноя marras νοε νοέ lapkr stu aza ное нов ліс лис nóv noy noý now "
    "نوف نوامبر נוב नव ნოე նմբ қар พ.ย",
    "dec dic dez déc december dezember des dis diċ pro ara дек гру joulu gru δεκ gruod dets abe avi дец сне dek "
    "ديس دسامبر דצמ दिस დეკ դեկ жел ธ.ค",
)
_MONTH = {name: number for number, names in enumerate(MONTHS, 1) for name in names.split()}
_CJK_MONTH = lazy(r"(\d{1,2})(?:月|월)")

# 2025-01-21T04:41:44,283302+00:00   2024-05-01 10:00:00.5+0200   2026-04-22T21:30:51.526447914Z
ISO = (
    r"(?P<y>\d{4})-(?P<mo>\d\d)-(?P<d>\d\d)[T ](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
    r"(?:[.,](?P<f>\d{1,9}))?(?P<z>Z| ?UTC\b| ?GMT\b| ?[+-]\d\d:?\d\d(?!\d))?"
)
_ISO = lazy(ISO)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time that one line prints: ns of `clock`, or a `delta` to the line before it.

    A YEARLESS value lies in the year 2000 and `month` is set.
    """

    clock: Clock
    value: int
    month: int = 0
    delta: bool = False


def month_number(word: str) -> int | None:
    """1..12 for a month's name or abbreviation in one of the known languages (``11月``, ``Okt``)."""
    name = word.strip(".,").lower()
    if found := _CJK_MONTH.fullmatch(name):
        number = int(found[1])
        return number if 1 <= number <= 12 else None
    return _MONTH.get(name) or _MONTH.get(name[:3])


_NO_HOST = lazy(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?|[+-]?\d{1,20}(?:[.,]\d{1,20})?")


# Months in some language, and hosts in many a rack.
_NAMES_TOO = frozenset(["api", "mac", "now", "few", "bal", "tra", "sak", "vas", "pro", "led", "gen", "set", "out"])


@lru_cache(maxsize=4096)
def names_host(word: str) -> bool:
    """Whether a word can be a host's name: a time, a number or a month is none (a pasted log may have lost its date)."""
    plain = word.strip(".,").lower()
    return _NO_HOST.fullmatch(word) is None and (plain not in _MONTH or plain in _NAMES_TOO)


def fraction(digits: str | None) -> int:
    """Nanoseconds of the digits behind a decimal point."""
    return int(digits.ljust(9, "0")[:9]) if digits else 0


def seconds(text: str) -> int:
    """``"1234.567890"`` in exact nanoseconds."""
    whole, _, rest = text.partition(".")
    return int(whole) * SECOND + fraction(rest)


@lru_cache(maxsize=512)
def _day(year: int, month: int, day: int) -> int | None:
    """ns of midnight; None when there is no such day."""
    if not (1970 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return None
    return timegm((year, month, day, 0, 0, 0)) * SECOND


def _clock_time(h: str, m: str, s: str, f: str | None) -> int:
    return (int(h) * 3600 + int(m) * 60 + int(s)) * SECOND + fraction(f)


def iso_stamp(found: re.Match[str]) -> Stamp | None:
    """A match of the `ISO` groups. UTC when the text names a zone, else LOCAL; None for no real date."""
    day = _day(int(found["y"]), int(found["mo"]), int(found["d"]))
    if day is None or int(found["h"]) > 24 or int(found["mi"]) > 59:
        return None
    ns = day + _clock_time(found["h"], found["mi"], found["s"], found["f"])
    zone = (found["z"] or "").strip()
    if not zone:
        return Stamp(Clock.LOCAL, ns)
    if zone[0] in "+-":
        offset = int(zone[1:3]) * 60 + int(zone[-2:])
        ns -= (offset if zone[0] == "+" else -offset) * 60 * SECOND
    return Stamp(Clock.REALTIME, ns)


def parse_iso(text: str) -> Stamp | None:
    """The ISO 8601 time that `text` starts with."""
    found = _ISO.match(text)
    return iso_stamp(found) if found else None


def calendar_stamp(month: str, day: str, clock: str, year: str | None = None, zone: str = "") -> Stamp | None:
    """Month name, day of month and ``HH:MM[:SS[.f]]``; without a year the clock is YEARLESS.

    Only the zone names UTC and GMT place the time; any other name is local time.
    """
    number = month_number(month)
    if number is None:
        return None
    start = _day(int(year) if year else 2000, number, int(day))
    if start is None:
        return None
    whole, _, digits = clock.partition(".")
    parts = whole.split(":")
    ns = start + _clock_time(parts[0], parts[1], parts[2] if len(parts) > 2 else "0", digits)
    if not year:
        return Stamp(Clock.YEARLESS, ns, number)
    return Stamp(Clock.REALTIME if zone in ("UTC", "GMT", "Z") else Clock.LOCAL, ns)


@dataclass(frozen=True, slots=True)
class Point:
    """One line of a file as `settle` needs it."""

    number: int  # line number
    stamp: Stamp | None
    boots: bool = False  # the line opens a boot ("Linux version", "-- Boot ... --")


def settle(points: Sequence[Point], joined: bool = True) -> list[tuple[int | None, Clock]]:
    """The time of each line.

    * YEARLESS: a step back by half a year or more is New Year (December to January).
    * BOOT: seconds that start again, at a boot line or by themselves, go on behind the
      last second of the boot before, so that the order of the file is the order of times.
      `joined` False (lines that stand backwards) keeps the seconds as printed.
    * Deltas add up from the last absolute time, or from the first line on a MONOTONIC
      clock, as long as no line is missing between them.
    """
    years = _Years()
    boots = _Boots(joined)
    deltas = _Deltas()
    out: list[tuple[int | None, Clock]] = []
    for point in points:
        stamp = point.stamp
        if stamp is None:
            boots.mark(point.boots)
            out.append((None, Clock.NONE))
            continue
        if stamp.delta:
            out.append(deltas.add(point.number, stamp.value))
            continue
        value = stamp.value
        if stamp.clock is Clock.YEARLESS:
            value = years.place(stamp)
        elif stamp.clock is Clock.BOOT:
            boots.mark(point.boots)
            value = boots.place(value)
        deltas.anchor(point.number, value, stamp.clock)
        out.append((value, stamp.clock))
    return out


def descending(points: Iterable[Point]) -> bool:
    """True when more steps of the boot clock go back than forth (``journalctl -r``)."""
    timed = [p for p in points if p.stamp is not None and p.stamp.clock is Clock.BOOT and not p.stamp.delta]
    steps = [b.stamp.value - a.stamp.value for a, b in pairwise(timed) if a.stamp and b.stamp and not b.boots]
    return 2 * sum(step < 0 for step in steps) > len(steps)


class _Years:
    """Which of the years 2000, 2001, ... a line without a year belongs to."""

    def __init__(self) -> None:
        self.year = 0
        self.month = 0

    def place(self, stamp: Stamp) -> int:
        step = stamp.month - self.month if self.month else 0
        if step <= -6:
            self.year += 1
        elif step >= 6 and self.year:
            self.year -= 1  # a late line of the old year, after the first of the new one
        self.month = stamp.month
        if not self.year:
            return stamp.value
        in_day = stamp.value % DAY
        day = 1 + (stamp.value - in_day - (_day(2000, stamp.month, 1) or 0)) // DAY
        return (_day(2000 + self.year, stamp.month, day) or 0) + in_day


class _Boots:
    """Adds up the boots of a file that holds more than one."""

    SLACK = 5 * SECOND  # lines of several CPUs may be printed this far out of order

    def __init__(self, joined: bool) -> None:
        self.joined = joined
        self.offset = 0
        self.latest = 0  # of the boot being read, as printed
        self.seen = False
        self.marked = False

    def mark(self, boots: bool) -> None:
        self.marked = self.marked or boots

    def place(self, value: int) -> int:
        restarted = value + self.SLACK < self.latest or (self.marked and value < self.latest)
        if self.joined and self.seen and restarted:
            self.offset += self.latest
            self.latest = 0
        self.marked = False
        self.seen = True
        self.latest = max(self.latest, value)
        return value + self.offset


class _Deltas:
    """``[  +0.000844]``: time since the line before."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.clock = Clock.NONE
        self.last = -1
        self.first = True

    def anchor(self, number: int, at: int, clock: Clock) -> None:
        self.at, self.clock, self.last, self.first = at, clock, number, False

    def add(self, number: int, delta: int) -> tuple[int | None, Clock]:
        if self.first:
            self.anchor(number, 0, Clock.MONOTONIC)
            return 0, self.clock
        if self.at is None or number > self.last + 1:  # deltas of unseen lines are lost
            self.at = None
            return None, Clock.NONE
        self.at += delta
        self.last = number
        return self.at, self.clock
