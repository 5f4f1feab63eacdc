"""Equal lines of a log, counted as they pass: a burst of a hundred thousand lines becomes a few lines and a count.

Lines are equal when nothing tells them apart but their time, a program's pid and long numbers (pids, pointers, counters); what
names a device, a rank, a code or a place stays. The members of a JSON object may stand in any order. A log that is not flooded is kept as it is. Of one that is, the first of equal
lines are kept, and some more whose text is new; the others become runs: the first and the last line of a span of time with the number of
lines between them. Spans grow from a minute to an hour, a day and the whole log when there are too many of them.

A line that has a word of trouble, or is about what such a line was about, is telling; the others are routine, and fewer of them are
kept. What is equal in all but its numbers is a kind: when a kind has too many different lines, of the others those are folded as one
that name the same things; where those are too many as well, all of them. Of telling lines that is a loss, which is counted and said.

`fold.c` decides alike on every line, and is used where it was compiled.
"""

from __future__ import annotations

import ctypes
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import astuple, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from knowledge.lazy import lazy
from knowledge.record import dataclass
from probes import native
from probes._trouble import TROUBLE, tells_trouble

SOURCE: Final = Path(__file__).with_name("fold.c")
LIBRARY: Final = Path(__file__).with_name("_fold.so")
VARIABLE: Final = "GPUDIAG_LOG_FOLD"  # python: never the compiled one
LOOKED: Final = 4096  # bytes: longer lines are not folded
KEPT: Final = -1  # what becomes of a line, else the number of what it is folded into
FIRST: Final = -2  # kept, and one of the first of its kind
_NO_MEMORY: Final = -3
_HOST: Final = 64  # bytes of the name of a host
_ZONE: Final = 12  # bytes between a time and a host: "+00:00 "
_OF_HOST: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.")
_MOMENT: Final = 5  # s: programs do not fail together by chance (knowledge.derive.xid)
_SILENCE: Final = 180  # s: what follows is another burst (the `gap` of the rules that count bursts)
_DISTANCE: Final = 400  # lines, of those that tell no time: the same (MERGE_LINES of the parsers of jobs' output)
PAUSES: Final = (
    2,
    10,
)  # s between equal lines: longer ones are counted, for what is one event as long as lines follow (`LogFormat.bursts`)
_DAY: Final = 86_400
_RECORD: Final = 64  # lines that may tell one thing together
_PIDS: Final = 4  # programs that are told apart in a moment
_ABOUT: Final = 12  # names with a digit in a line that names all it is about
_WORDS: Final = 4  # names with a digit that tell what a line is about
_MEMBERS: Final = 64  # of a JSON object; those of one with more stay in their order
_PLACE: Final = 40  # bytes of what an XID's line names between its brackets


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept, in lines where nothing else is said."""

    any: int = 16  # of equal telling lines
    fresh: int = 16  # more of them whose text is new
    runs: int = 32  # of equal telling lines, of which the first and the last line are kept
    calm: int = 8  # of equal routine lines
    calm_runs: int = 2  # of equal routine lines
    kinds: int = 4096
    entries: int = 16_384  # different lines, of all kinds
    routine: int = 256  # different routine lines of a kind
    telling: int = 4096  # and telling ones: of as many ranks a log is read in full
    signs: int = 65_536  # things that were in trouble; when there are more, each counts as one
    stored: int = 16 << 20  # bytes of the lines of runs: above, one run each
    first: int = 2  # of a kind, that are kept whatever else there is
    crowd: int = (
        64  # different lines of a kind, behind which of equal ones fewer are kept: of a hundred GPUs few lines each
    )
    each: int = 4  # of these, and as many runs
    shared: int = 3072  # of equal telling ones, over all of them: of a hundred GPUs with a dozen codes each a few lines tell as much
    late: int = 64  # of equal telling ones, of another program than one just before, or behind a silence: each is something anew
    later: int = 2048  # of them, as long as of the whole log
    anew: int = 4096  # such ones were kept
    # Parsers and rules tell apart what lies seconds, minutes and a few lines apart. Of a log that is not flooded they get every line:
    early: int = 1024  # of equal lines, as long as of the whole log
    whole: int = 2048  # telling ones
    calm_whole: int = 1024  # or routine ones were kept


class Run(NamedTuple):
    """Equal lines in a span of time: how many, the number and the text of the first and the last, how many of the others came
    later behind the equal line before them than each of PAUSES, and of how many programs there were some in one moment, up to _PIDS.
    """

    entry: int
    times: int
    first: tuple[int, bytes]
    last: tuple[int, bytes]
    pauses: tuple[int, ...]
    programs: int
    pooled: bool  # lines are among them that are about different things, which were counted as lost


class Folded(NamedTuple):
    """Of each line KEPT, FIRST or the entry that it is folded into, and its number; the number of the line behind all of them."""

    codes: array[int]
    numbers: array[int]
    next: int


class Fold(Protocol):
    """What folds the lines of one log."""

    def lines(self, data: bytes, start: int, end: int, places: array[int], number: int) -> Folded:
        """What becomes of the lines whose starts and ends within ``data[start:end]`` are `places`, one behind the other.

        `number` is that of the line at `start`.
        """
        ...

    def runs(self) -> list[Run]:
        """The folded lines."""
        ...

    @property
    def lost(self) -> int:
        """Telling lines that were not told apart."""
        ...


# --- what a line looks like -----------------------------------------------------------------

_CLOCK = lazy(rb"(?<![:\d])\d\d:\d\d:\d\d(?![:\d])")
_FRACTION = lazy(rb"[.,]\d+")
_DATE = lazy(rb"\d{4}([-/])\d\d\1\d\d(?!\d)")
_KMSG = lazy(rb"\d{1,3},\d{1,18},(\d{1,18})(?=,)")
_WORD = lazy(rb"[0-9A-Za-z]+")
_PID = lazy(rb"pid=(\d+)")
_SECONDS = lazy(rb"\.\d{6,9}(?!\d)")
_NAME = lazy(rb"[0-9A-Za-z_.:/-]+")
_DEVICE = lazy(rb":[0-9A-Fa-f]{2}:")
_TOKEN = lazy(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)


class Look(NamedTuple):
    """A line as it is compared: the whole text, without long numbers, without any number but an XID's code; what it is about, and
    when.
    """

    line: bytes  # see `_ordered`
    text: bytes
    near: bytes
    far: bytes
    sign: tuple[bytes, ...]
    buckets: tuple[object, object, object, object]
    second: int | None  # of the day, or on the clock of the machine; None where the line tells none
    grave: bool


def _ordered(line: bytes) -> bytes:
    """A line that ends in one JSON object, with the members in the order of their names; any other as it stands.

    journalctl writes the members of each record in another order.
    """
    whole, begin = line.rstrip(b" \t"), line.find(b"{")
    if begin < 0 or not whole.endswith(b"}"):
        return line
    members, depth, at = [], 0, begin + 1
    for token in _TOKEN.finditer(whole, begin):
        mark, end = token[0], token.start()
        depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
        if depth == 0 or (depth == 1 and mark == b","):
            members.append(whole[at:end].strip(b" \t"))
            at = end + 1
            if len(members) > _MEMBERS:
                return line
        if depth == 0:
            break
    if depth or at != len(whole):
        return line
    return whole[: begin + 1] + b",".join(sorted(members)) + b"}"


def look(line: bytes) -> Look:
    """Take a line of at most LOOKED bytes apart, as `look` of fold.c does."""
    line = _ordered(line)
    text, near, far = bytearray(), bytearray(), bytearray()
    hidden: list[tuple[int, int]] = []
    when, seconds, at = -1, None, 0

    def mask(mark: bytes, end: int) -> int:
        for out in (text, near, far):
            out.extend(mark)
        hidden.append((at, end))
        return end

    while at < len(line):
        word = _WORD.match(line, at)
        if word is None:
            for out in (text, near, far):
                out.append(line[at])
            at += 1
            continue
        if at == 0 and (kmsg := _KMSG.match(line)):
            seconds = int(kmsg[1]) // 1_000_000
            at = mask(b"\1", kmsg.end())
            continue
        if clock := _CLOCK.match(line, at):
            when = at if when < 0 else when
            fraction = _FRACTION.match(line, clock.end())
            at = mask(b"\2", fraction.end() if fraction else clock.end())
            continue
        if date := _DATE.match(line, at):
            end = date.end()
            at = mask(b"\3", end + 1 if line[end : end + 1] == b"T" and _CLOCK.match(line, end + 1) else end)
            continue
        here, end = word[0], word.end()
        before, behind = line[at - 1 : at] if at else b"", line[end : end + 1]
        if here.isdigit():
            if len(here) <= 2 and before == b" " == behind and _CLOCK.match(line, end + 1):
                at = mask(b"\4", end)
                continue
            if len(here) <= 10 and (fraction := _SECONDS.match(line, end)):
                seconds = int(here) if seconds is None else seconds
                at = mask(b"\5", fraction.end())
                continue
            if len(here) == 16 and here[:1] == b"1":
                seconds = int(here) // 1_000_000 if seconds is None else seconds
                at = mask(b"\6", end)
                continue
            named = at >= 2 and (line[at - 2 : at - 1].isalnum() or line[at - 2 : at - 1] in (b"_", b"-"))
            if before == b"[" and line[end : end + 2] == b"]:" and named:
                at = mask(b"\7", end)
                continue
        text += here
        numbered = any(48 <= c <= 57 for c in here)
        far += b"#" if numbered and not (here.isdigit() and _of_xid(line, at)) else here
        if _is_long(line, at, end, here) and not (before in (b"-", b"_", b".") and _of_host(line, at, hidden)):
            near += b"#"
            hidden.append((at, end))
        else:
            near += here
        at = end
    low = max(0, when - 11)
    span = seconds or 0
    buckets = (
        (line[low : when + 5], line[low : when + 2], line[low:when], 0)
        if when >= 0
        else (span // 60, span // 3600, span // 86_400, 0)
    )
    return Look(
        line,
        bytes(text),
        bytes(near),
        bytes(far),
        _sign(line, hidden),
        buckets,
        _second(line, when) if when >= 0 else seconds,
        tells_trouble(line),
    )


def _second(line: bytes, when: int) -> int:
    hour, minute, second = (int(line[when + i : when + i + 2]) for i in (0, 3, 6))
    return 3600 * hour + 60 * minute + second


def _is_long(line: bytes, at: int, end: int, here: bytes) -> bool:
    """Whether a word is a number that tells nothing but one of many: no device's address, no UUID of a GPU, no code."""
    if len(here) >= 7 and here[:2] in (b"0x", b"0X"):
        return True
    hexa = all(c in b"0123456789abcdefABCDEF" for c in here)
    if hexa and line[max(0, at - 3) : at] == b";i=":  # a cursor of the journal: s=...;i=3e8;b=...
        return True
    if here.isdigit():
        code = at >= 3 and line[at - 3 : at] == b"): "
        if len(here) < 4 or code:
            return False
    elif not hexa or len(here) < 5 or here.isalpha():
        return False
    device = hexa and len(here) in (4, 8) and _DEVICE.match(line, end) is not None
    return not device and line[max(0, at - 4) : at] not in (b"GPU-", b"MIG-")


def _of_xid(line: bytes, at: int) -> bool:
    """Whether a number is the code of an XID or SXID: Xid (PCI:0000:3b:00): 79."""
    begin = line.rfind(b"(", max(0, at - _PLACE), at)
    return line[max(0, at - 3) : at] == b"): " and begin >= 0 and line[:begin].endswith(b"Xid ")


def _of_host(line: bytes, at: int, hidden: Sequence[tuple[int, int]]) -> bool:
    """Whether a number is part of the name of a host: at the start of a line, behind its time, or as a journal names it."""

    def time(place: int) -> bool:
        return any(a <= place < b for a, b in hidden)

    start = at
    while start > 0 and at - start < _HOST and line[start - 1] in _OF_HOST:
        start -= 1
    if start == at or not line[start : start + 1].isalpha():
        return False
    before = line[start - 1 : start] if start else b""
    if before != b" ":
        return not before or (before == b'"' and b"HOSTNAME" in line[max(0, start - 16) : start])
    behind = start - 2
    while behind >= 0 and behind > start - _ZONE and line[behind] != 0x20 and not time(behind):
        behind -= 1
    return behind >= 0 and line[behind] != 0x20 and time(behind)


def _sign(line: bytes, hidden: Sequence[tuple[int, int]]) -> tuple[bytes, ...]:
    """The first names with a digit, times and long numbers apart: what a line is about."""
    out: list[bytes] = []
    for found in _NAME.finditer(line):
        name = found[0].rstrip(b".:/-")
        if any(48 <= c <= 57 for c in name) and not any(a < found.end() and found.start() < b for a, b in hidden):
            out.append(name)
            if len(out) == _WORDS:
                break
    return tuple(out)


_ABOUT_NAME = lazy(rb"[0-9A-Za-z_.:/#-]+")


def _about(near: bytes) -> tuple[bytes, ...] | None:
    """All names with a digit, apart from long numbers: lines of a kind with the same ones are about the same things. None when they
    are too many.
    """
    found = (m[0] for m in _ABOUT_NAME.finditer(near))
    names = tuple(n for n in found if any(48 <= c <= 57 for c in n) and n[:2] not in (b"0x", b"0X"))
    return names if len(names) <= _ABOUT else None


# --- in Python ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    buckets: tuple[object, ...]
    count: int
    first: tuple[int, bytes]
    last: tuple[int, bytes]
    paused: tuple[bool, ...]  # which of PAUSES lie ahead of the first
    room: int = 0  # bytes that the last line may take without more memory
    apart: bool = False  # begins behind a silence, or with another program
    pauses: list[int] = field(default_factory=lambda: [0] * len(PAUSES))  # ahead of the others
    programs: int = 0


@dataclass(slots=True)
class _Entry:
    any: int = 0
    fresh: int = 0
    level: int = 0
    texts: set[bytes] = field(default_factory=set)
    runs: list[_Run] = field(default_factory=list)
    sign: tuple[bytes, ...] = ()  # of the line that it was made for
    grave: bool = False
    crowded: bool = False  # there were many different ones of its kind before
    over: bool = False  # of the lines that are too many of their kind: of equal ones one is kept, and one run
    pooled: bool = False  # different things are among them, which were counted as lost
    late: int = 0
    apart: bool = False  # the next run begins anew
    begun: int = 0  # second
    heard: int = 0  # second of the last line, its number where it tells none
    programs: list[int] = field(default_factory=list)  # pids of the lines within _MOMENT of it
    spoken: tuple[int, object] | None = None  # second and day of the last line


def _paused(entry: _Entry, seen: Look) -> tuple[bool, ...]:
    """Which of PAUSES lie between the equal line before and this one. A clock of the day begins anew at midnight; the text ahead of
    it is the date.
    """
    before, day = entry.spoken, seen.buckets[2] if isinstance(seen.buckets[2], bytes) else b""
    second = seen.second or 0
    entry.spoken = second, day
    if before is None:
        return (False,) * len(PAUSES)
    apart = abs(second - before[0])
    if day != before[1]:
        apart = _DAY - apart if apart > _DAY // 2 else _DAY
    return tuple(apart > pause for pause in PAUSES)


def _anew(entry: _Entry, seen: Look, number: int) -> bool:
    """Whether another program than one just before it is at fault (several at once share what only they together show), or a
    silence is over.
    """
    second = seen.second or 0
    now, silence = (number, _DISTANCE) if seen.second is None else (second, _SILENCE)
    silent = not entry.heard <= now <= entry.heard + silence
    entry.heard = now
    found = _PID.search(seen.line)
    if found is None or len(found[1]) > 10:
        return silent
    pid, own = int(found[1]), entry.programs
    if not own or not entry.begun <= second <= entry.begun + _MOMENT:
        entry.begun = second
        own.clear()
    if pid in own:
        return silent
    if len(own) < _PIDS:
        own.append(pid)
    return silent or len(own) > 1


@dataclass(slots=True)
class _Kind:
    distinct: int = 0
    entry: int = -1


class PlainFold:
    """The same in Python, for where nothing was compiled."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.most = limits or Limits()
        self.kinds: dict[bytes | None, _Kind] = {}
        self.own: dict[bytes, int] = {}
        self.about: dict[tuple[bytes, tuple[bytes, ...]], int] = {}  # of lines that are too many of their kind
        self.entries: list[_Entry] = []
        self.signs: set[tuple[bytes, ...]] = set()
        self.lost = 0
        self.stored = 0
        self.kept = [0, 0]  # routine lines, telling ones
        self.many = 0  # entries of telling lines
        self.ahead = [0, 0, 0]  # of each limit in `_room`: entry of the line before
        self.beyond = [0, 0, 0]  # ... and how many were kept behind it
        self.late = 0

    def lines(self, data: bytes, start: int, end: int, places: array[int], number: int) -> Folded:
        """See `Fold`."""
        out, numbers, at = array("q"), array("q"), start
        for head, tail in zip(places[::2], places[1::2], strict=True):
            number += data.count(b"\n", at, head)
            at = head
            numbers.append(number)
            out.append(KEPT if tail - head > LOOKED else self._take(data[head:tail], number))
        return Folded(out, numbers, number + data.count(b"\n", at, end))

    def _take(self, line: bytes, number: int) -> int:
        seen, most = look(line), self.most
        found, first, alone = self.own.get(seen.near), False, False
        known = self.entries[found] if found is not None else None
        sign, grave = (known.sign, known.grave) if known is not None else (seen.sign, seen.grave)
        full = len(self.signs) >= most.signs
        telling = grave or (bool(sign) and (full or sign in self.signs))
        if found is None:
            if grave and sign and not full:
                self.signs.add(sign)
            fits = seen.far in self.kinds or len(self.kinds) < most.kinds
            kind = self.kinds.setdefault(seen.far if fits else None, _Kind())  # None: all that are too many
            if kind.distinct < (most.telling if telling else most.routine) and len(self.entries) < most.entries:
                found = self.own[seen.near] = self._new(telling, sign, grave, kind.distinct >= most.crowd)
                kind.distinct += 1
                first = kind.distinct <= most.first
            else:
                found = self._about(seen, telling, sign, grave)
                alone = found is None
                if found is None:
                    found = kind.entry = self._new(telling) if kind.entry < 0 else kind.entry
        entry = self.entries[found]
        anew, paused = telling and _anew(entry, seen, number), _paused(entry, seen)
        early = self._room(telling, self.kept[telling], most.whole if telling else most.calm_whole, found)
        any_ = entry.any < max(early and most.early, self._of(entry, most.any if telling else most.calm))
        if any_ or (telling and seen.text not in entry.texts and entry.fresh < self._of(entry, most.fresh)):
            entry.any += any_
            entry.fresh += not any_
            entry.texts.add(seen.text)
            self.kept[telling] += 1
            return FIRST if first else KEPT
        share = self._share() // 2
        if (anew and not entry.over) and (
            entry.late < min(share, most.late)
            or (share >= most.late <= entry.late < most.later and self._room(2, self.late, most.anew, found))
        ):
            entry.late += 1
            self.late += 1
            entry.apart = True  # the line ahead of it stays the last of its run
            return KEPT
        if alone and telling:
            self.lost += 1
            entry.pooled = True
        self._fold(entry, seen, telling, paused, (number, line))
        return found

    def _about(self, seen: Look, telling: bool, sign: tuple[bytes, ...], grave: bool) -> int | None:
        """The entry of lines of a kind that name the same things; None where a line names too many, or there are too many entries."""
        names = _about(seen.near)
        if names is None:
            return None
        found = self.about.get((seen.far, names))
        if found is None and len(self.about) < self.most.telling:
            found = self.about[seen.far, names] = self._new(telling, sign, grave, crowded=True)
            self.entries[found].over = True
        return found

    def _room(self, limit: int, used: int, most: int, entry: int) -> bool:
        """Whether one more line is kept of at most so many, and on to the end of what the last of them is a part of.

        Lines that tell one thing together were first seen in their order: where one follows that was seen ahead of the line before,
        the next thing begins.
        """
        if used >= most and self.beyond[limit] < _RECORD:
            self.beyond[limit] = self.beyond[limit] + 1 if most > 0 and entry >= self.ahead[limit] else _RECORD
        self.ahead[limit] = entry
        return used < most or self.beyond[limit] < _RECORD

    def _new(self, telling: bool, sign: tuple[bytes, ...] = (), grave: bool = False, crowded: bool = False) -> int:
        self.many += telling
        self.entries.append(_Entry(sign=sign, grave=grave, crowded=crowded))
        return len(self.entries) - 1

    def _of(self, entry: _Entry, most: int) -> int:
        few = most if not entry.crowded else 1 if entry.over else self.most.each
        return min(most, few, self._share())

    def _share(self) -> int:
        """Of `shared` what falls to one entry of telling lines."""
        return max(1, self.most.shared // max(1, self.many))

    def _fold(
        self, entry: _Entry, seen: Look, telling: bool, paused: tuple[bool, ...], line: tuple[int, bytes]
    ) -> None:
        runs, full = entry.runs, self.stored > self.most.stored
        most = 1 if full else self._of(entry, self.most.runs if telling else self.most.calm_runs) + entry.late
        while (
            runs
            and len(runs) >= most
            and (entry.level < 3 or (full and len(runs) > 1))
            and (len(runs) > most or entry.apart or runs[-1].buckets[entry.level] != seen.buckets[entry.level])
        ):
            self._coarsen(entry, full)
        apart = entry.apart and len(runs) < most
        entry.apart = False
        if runs and not apart and runs[-1].buckets[entry.level] == seen.buckets[entry.level]:
            runs[-1].count += 1
            runs[-1].programs = max(runs[-1].programs, len(entry.programs))
            runs[-1].pauses = list(map(sum, zip(runs[-1].pauses, paused, strict=True)))
            runs[-1].last = line
            self.stored += max(0, len(line[1]) - runs[-1].room)
            runs[-1].room = max(runs[-1].room, len(line[1]))
        else:
            runs.append(_Run(seen.buckets, 1, line, line, paused, len(line[1]), apart, programs=len(entry.programs)))
            self.stored += 2 * len(line[1])

    def _coarsen(self, entry: _Entry, every: bool) -> None:
        """Make runs that lie in one longer span one; those that begin apart only where `every` one has to."""
        level = entry.level = min(3, entry.level + 1)
        merged = entry.runs[:1]
        for run in entry.runs[1:]:
            if merged[-1].buckets[level] == run.buckets[level] and (every or not run.apart):
                merged[-1].count += run.count
                merged[-1].programs = max(merged[-1].programs, run.programs)
                merged[-1].pauses = list(map(sum, zip(merged[-1].pauses, run.pauses, run.paused, strict=True)))
                self.stored -= merged[-1].room + len(run.first[1])
                merged[-1].last, merged[-1].room = run.last, run.room
            else:
                merged.append(run)
        entry.runs[:] = merged

    def runs(self) -> list[Run]:
        """See `Fold`."""
        return [
            Run(i, r.count, r.first, r.last, tuple(r.pauses), r.programs, e.pooled)
            for i, e in enumerate(self.entries)
            for r in e.runs
        ]


# --- compiled -------------------------------------------------------------------------------

_pointer, _i64, _u64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
_SIGNATURES: Final[Mapping[str, tuple[Any, Sequence[Any]]]] = {
    "fold_source": (ctypes.c_char_p, []),
    "fold_new": (_pointer, [_u64, _u64, _pointer, ctypes.c_char_p, _i64]),
    "fold_free": (None, [_pointer]),
    "fold_spans": (_i64, [ctypes.c_char_p, _i64, _i64, _pointer, _i64, _pointer]),
    "fold_lines": (_i64, [_pointer, ctypes.c_char_p, _i64, _i64, _pointer, _i64, _i64, _pointer, _pointer]),
    "fold_numbers": (None, [ctypes.c_char_p, _i64, _pointer, _i64, _i64, _pointer]),
    "fold_lost": (_i64, [_pointer]),
    "fold_runs": (_i64, [_pointer]),
    "fold_run": (None, [_pointer, _i64, _pointer, _pointer]),
}  # fmt: skip


@cache
def library(path: Path = LIBRARY) -> ctypes.CDLL | None:
    """The compiled half; None where there is none."""
    return native.loaded(path, SOURCE, _SIGNATURES)


class CompiledFold:
    """`PlainFold`, a hundred times as fast."""

    def __init__(self, lib: ctypes.CDLL, limits: Limits | None = None) -> None:
        self._lib = lib
        numbers = array("q", astuple(limits or Limits()))
        words = b"".join(word.encode() + b"\0" for word in TROUBLE)
        seeds = [int.from_bytes(os.urandom(8), "little") for _ in range(2)]
        self._at: int | None = lib.fold_new(*seeds, numbers.buffer_info()[0], words, len(TROUBLE))
        if self._at is None:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_at", None) is not None:
            self._lib.fold_free(self._at)

    def lines(self, data: bytes, start: int, end: int, places: array[int], number: int) -> Folded:
        """See `Fold`. MemoryError when there is none left."""
        codes = array("q", bytes(4 * len(places)))
        numbers = array("q", bytes(8 * len(codes)))
        at, *out = (a.buffer_info()[0] for a in (places, codes, numbers))
        last = self._lib.fold_lines(self._at, data, start, end, at, len(codes), number, *out)
        if last < 0:
            raise MemoryError
        return Folded(codes, numbers, last)

    def runs(self) -> list[Run]:
        """See `Fold`."""
        out = []
        numbers, texts = (_i64 * (8 + len(PAUSES)))(), (_pointer * 2)()
        for i in range(self._lib.fold_runs(self._at)):
            self._lib.fold_run(self._at, i, numbers, texts)
            entry, count, first, size, last, end, pooled, programs, *pauses = numbers
            one, other = (ctypes.string_at(p, n) if n else b"" for p, n in zip(texts, (size, end), strict=True))
            out.append(Run(entry, count, (first, one), (last, other), tuple(pauses), programs, bool(pooled)))
        return out

    @property
    def lost(self) -> int:
        """See `Fold`."""
        return int(self._lib.fold_lost(self._at))


def lines_at(data: bytes, start: int, end: int, ends: Sequence[int]) -> array[int]:
    """Start and end, one behind the other, of each line within ``data[start:end]`` that holds an end of a match.

    `ends` ascend; each lies behind the last byte of a match.
    """
    if lib := library():
        given, places = array("q", ends), array("q", bytes(16 * len(ends)))
        found = lib.fold_spans(data, start, end, given.buffer_info()[0], len(given), places.buffer_info()[0])
        return places[: 2 * found]
    out, done = array("q"), start
    for last in ends:
        if last < done:
            continue
        inside = max(start, last - 1)
        head = data.rfind(b"\n", start, inside) + 1 or start
        tail = data.find(b"\n", inside, end)
        tail = end if tail < 0 else tail
        out.extend((head, tail))
        done = tail + 1
    return out


def numbers_of(data: bytes, start: int, places: array[int], number: int) -> array[int]:
    """The number of each line of `places` (see `lines_at`); `number` is that of the line at `start`."""
    numbers = array("q", bytes(4 * len(places)))
    if lib := library():
        lib.fold_numbers(data, start, places.buffer_info()[0], len(numbers), number, numbers.buffer_info()[0])
        return numbers
    at = start
    for i, head in enumerate(places[::2]):
        number += data.count(b"\n", at, head)
        at, numbers[i] = head, number
    return numbers


def new(limits: Limits | None = None) -> Fold:
    """A fold for one log: compiled where that can be had."""
    lib = library() if os.environ.get(VARIABLE) != "python" else None
    return CompiledFold(lib, limits) if lib is not None else PlainFold(limits)
