"""Which lines of one file each log format gets: those that matched, their neighbours, both ends.

Of equal lines (`_scan_fold`) a format gets some, and the last of each run with the number of those that it stands for. No line
that matched is lost: where room ends, neighbours go first, then what a line says, and what went is counted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from knowledge.lazy import lazy
from probes import _scan_fold
from probes._scan_fold import FIRST, KEPT, LOOKED, PAUSES, Fold, Limits, Run, look
from probes._scan_lines import LongLine, Region, cut
from probes._scan_match import Matched, Matcher, compiled, searched
from probes._scan_series import Series
from probes._trouble import tells_trouble
from probes.base import Line, LogFormat

EDGE = 64  # first and last lines of a file that every format gets
TORN = 16  # first ones of these last lines, of which those of one moment may belong to lines ahead of them
RECORD_REACH = 32  # lines around a match in a file whose records span lines (journal export)
_HOSTNAME = lazy(rb'\b_HOSTNAME(?:=|" ?: ?")([^"\n]{1,255})')
SNIFF = 65_536
KEEP = 24 << 20  # bytes of one file's lines that are kept for the formats, with what each takes beside its text
BEHIND = 16  # lines behind the last one of equal lines: they tell what became of it, as whether a program went on
ENDS = 1024  # entries of which those are kept
BYTES = 4096  # that they may take
LINE_COST = 500  # bytes: that, with the objects that a parser makes of it while it reads
RECORDS = Limits(
    any=8, fresh=8, whole=1024, late=8, later=16, anew=256
)  # a record is as large as twenty lines, and its message tells no time
RECORD_COST = 2 * RECORD_REACH * (LINE_COST + 100)  # bytes: the lines of a record
SHARED_COST = 100  # bytes: what a line takes for each further format

Row = tuple[int, bytes | LongLine]  # line number and content


class Stretch(NamedTuple):
    """Equal lines of which a format gets some: how many they are, and those that the format has."""

    many: int
    first: int  # number of a line
    own: frozenset[int]  # numbers of those that the format has
    rest: tuple[int, ...]  # of all but the first, up to the last one
    pauses: Mapping[int, int]  # ns -> how many of all but the first came later than that behind the equal line before
    programs: int  # of which some are in one moment


class _Newest(NamedTuple):
    """The last region: lines of it that match, what became of each, their numbers, and of each entry the place of its last one."""

    region: Region
    places: array[int]
    codes: array[int]
    numbers: array[int]
    last: Mapping[int, int]


_NONE: Final = array("q")


class Windows:
    """Gathers lines while the regions of one file pass by, in order."""

    def __init__(
        self, formats: Sequence[LogFormat], matcher: Matcher, cap: int, keep: int = KEEP, fold: Fold | None = None
    ) -> None:
        self.matcher = matcher
        self.cap = cap
        self.given = fold
        self.room = keep
        self.spare = keep // 4  # bytes that only lines that match may take
        self.texts: dict[int, tuple[str, ...]] = {}  # lines that are kept, the same for all formats
        self.folded: dict[int, int] = {}  # number of a line that was folded and may be kept all the same -> what into
        self.stretches: list[list[Stretch]] = [[] for _ in formats]
        # Of an entry: number of its last line, offset and text of what stands behind it, heads and codes of the lines in that that match
        self.behind: dict[int, tuple[int, int, bytes, array[int], array[int]]] = {}
        self.near: set[int] = set()  # entries of which that is kept
        self.newest = _Newest(Region(b"", 0, 0), _NONE, _NONE, _NONE, {})
        self.record: dict[int, tuple[int, list[Row]]] = {}  # of an entry: number of its last line, the record of that
        self.cut: set[int] = set()  # entries of whose record the next region may hold the end
        self.series = {i: Series() for i, f in enumerate(formats) if f.series}
        self.only_steps = {i for i in self.series if formats[i].series == formats[i].triggers}
        self.telling = tuple(trigger for f in formats for trigger in f.series)
        self.steps = frozenset(n for n, trigger in enumerate(matcher.triggers) if trigger in self.telling)
        self.triggers = tuple(t for i, f in enumerate(formats) if i not in self.only_steps for t in f.triggers)
        self.before = [f.before for f in formats]
        self.after = [f.after for f in formats]
        self.kept: list[dict[int, tuple[str, ...]]] = [{} for _ in formats]
        self.hits = [0] * len(formats)
        self.records = False  # lines of a record tell only together
        self.hosts: set[bytes] = set()  # that records name
        self.indented = False  # as the fields of the last record are
        self.must = False  # whether it is one of the first of its kind
        self.due = [EDGE] * len(formats)  # every line up to this number is wanted
        self.memory = max([EDGE, RECORD_REACH, *self.before])
        self.recent: deque[Row] = deque(maxlen=self.memory)  # the last lines seen
        self.head = bytearray()
        self.next = 1  # number of the next line
        self.dropped = 0  # matching lines that found no room
        self.alone = 0  # neighbours that found none
        self.refused = 0  # number of the last of them
        self.long: dict[int, LongLine] = {}  # long lines that were kept

    @cached_property
    def fold(self) -> Fold:
        """What folds the lines; made once it is known what they are."""
        return self.given or _scan_fold.new(RECORDS if self.records else None)

    @cached_property
    def step(self) -> Any:
        """Tells whether a line is one of a format that reads steps, as such."""
        return compiled(self.telling)

    @cached_property
    def others(self) -> Any:
        """Tells whether a line is wanted by more than the formats that read steps."""
        return compiled(self.triggers)

    @property
    def lines(self) -> int:
        """Lines read so far."""
        return self.next - 1

    def region(self, region: Region, matched: Matched) -> None:
        """The next lines of the file, and which of them match."""
        data, start, end = region
        number = self.next
        self._look(data[start : min(end, start + SNIFF)])
        places = self._without_steps(region, matched)
        codes, numbers, last = self.fold.lines(data, start, end, places, self.next)
        heads = places[::2]
        owners: dict[int, tuple[int, ...]] = {}
        spans = []
        for i, code in enumerate(codes):
            if code < 0:
                head, tail = heads[i], places[2 * i + 1]
                if tail - head <= self.cap:
                    owners[head] = self.matcher.whose(data[head:tail])
                spans.append((head, tail))
        at = start
        for low, high in self._zones(region, spans, owners):
            if (first := bisect_left(heads, low)) < len(heads) and heads[first] < high:
                self.next = numbers[first] - data.count(b"\n", low, heads[first])
            else:
                self.next += data.count(b"\n", at, low)
            rows, found = [], []
            for number, (offset, line) in enumerate(_lines(data, low, high), self.next):
                became = _code(heads, codes, offset)
                rows.append((number, line))
                found.append(min(became or 0, 0))
                if became is not None and became >= 0:
                    self.folded[number] = became
            self._take(rows, found, [owners.get(offset) for offset, _ in _lines(data, low, high)], follows=low == start)
            self.next += len(rows)
            at = high
        self.next = last + (1 if end > start and data[end - 1] != 0x0A else 0)
        if self.records:
            self.hosts.update(_HOSTNAME.findall(data, start, end))
            self._complete(region, number)
        self._look_behind(region, places, codes, numbers)
        self._remember(region, heads, codes)

    def _without_steps(self, region: Region, matched: Matched) -> array[int]:
        """The lines that may be folded: all but those that tell a step, to nobody but the formats that read steps."""
        places, triggers = matched
        if not self.steps or self.records or (triggers is not None and self.steps.isdisjoint(triggers)):
            return places
        data, start, _ = region
        heads, tails = places[::2], places[1::2]
        lines = [data[head:tail] for head, tail in zip(heads, tails, strict=True)]
        text = b"\n".join(lines)
        if self.step.search(text) is None:
            return places
        rows = list(zip(_scan_fold.numbers_of(data, start, places, self.next), lines, strict=True))
        mixed = {i for i, line in enumerate(lines) if len(line) > LOOKED}
        place = at = 0
        for head, _ in searched(self.others, text, 0, len(text)):
            place, at = place + text.count(b"\n", at, head), head
            mixed.add(place)
        plain = [row for i, row in enumerate(rows) if i not in mixed] if mixed else rows
        steps = {i: list(plain) if i in self.only_steps else [] for i in self.series}
        rest = array("q")
        for place in sorted(mixed):
            line = lines[place]
            owners = self.matcher.whose(line) if len(line) <= LOOKED else ()
            mine = [
                i for i in owners if i in self.only_steps or (i in self.series and self.step.search(line) is not None)
            ]
            for i in mine:
                steps[i].append(rows[place])
            if not mine or len(mine) < len(owners):
                rest.extend((heads[place], tails[place]))
        for i, own in steps.items():
            self.series[i].add(sorted(own))
            self.hits[i] += len(own)
        return rest

    def long_line(self, line: LongLine) -> None:
        """The next line of the file, which was too long to be held in one piece."""
        self._look(line.pieces[0][:SNIFF] + b"\n")
        self._take([(self.next, line)], [KEPT if line.hits else 0], [None], follows=True)
        self.recent.append((self.next, line))
        self.next += 1

    def finish(self) -> list[list[Line]]:
        """The lines for each format, in order."""
        for i, series in self.series.items():
            for number, line in series.rows():
                if i in self.matcher.whose(line):
                    self._keep(i, (number, line))
                else:  # the search named a line too many
                    self.hits[i] -= 1
        edge = list(self.recent)[-EDGE:]
        torn = _torn(edge) if self.folded else 0
        for place, row in enumerate(edge):
            if place < torn and row[0] in self.folded:
                continue  # without the lines ahead of it; the end of its run is kept
            for i in range(len(self.kept)):
                self._keep(i, row, must=True)
        runs = _by_entry(self.fold.runs()) if self.records else self.fold.runs()
        self._copy_behind()
        self._end(runs)
        shown: dict[int, list[int]] = {}
        for number, entry in self.folded.items():
            if any(number in kept for kept in self.kept):
                shown.setdefault(entry, []).append(number)
        for run in runs:
            self._run(run, shown.get(run.entry, ()))
        return [[Line(n, text) for n, texts in sorted(kept.items()) for text in texts] for kept in self.kept]

    def _look_behind(self, region: Region, places: array[int], codes: array[int], numbers: array[int]) -> None:
        """Have at hand what stands behind the last line that was folded into each entry, as far as its region goes.

        Most entries get a line in each region: what stands behind one is copied when the next region has none, or there is none.
        """
        last = dict(zip(codes, range(len(codes)), strict=True))
        for code in [c for c in last if c not in self.near]:
            if code >= 0 and len(self.near) < ENDS:
                self.near.add(code)
            else:
                del last[code]
        data, start, end = region
        if self.records:
            for code, i in last.items():
                place = places[2 * i], places[2 * i + 1]
                self.record[code] = numbers[i], self._record(data, start, end, place, numbers[i])
                if _forward(data, min(place[1] + 1, end), end, RECORD_REACH) == end:
                    self.cut.add(code)
            return
        self._copy_behind(last)
        self.newest = _Newest(region, places, codes, numbers, last)

    def _copy_behind(self, but: Collection[int] = ()) -> None:
        """What stands behind the last lines of the region before, but for entries that have got another line since."""
        (data, _, end), places, codes, numbers, last = self.newest
        heads = places[::2] if last else places
        for code, i in last.items():
            if code not in but:
                at = min(places[2 * i + 1] + 1, end)
                stop = max(at, data.rfind(b"\n", at, min(at + BYTES, end)) + 1)
                near = slice(i + 1, bisect_left(heads, stop, i + 1))
                self.behind[code] = numbers[i], at, data[at:stop], heads[near], codes[near]

    def _record(self, data: bytes, start: int, end: int, line: tuple[int, int], number: int) -> list[Row]:
        """The lines of the record that a line with a message stands in, as far as they are within reach."""
        head, tail = line
        low = _back(data, start, head, RECORD_REACH)
        ahead = [text for _, text in _lines(data, low, head)]
        if len(ahead) < RECORD_REACH and self.recent and self.recent[-1][0] == number - len(ahead) - 1:
            earlier = [_text(raw) for _, raw in self.recent]
            ahead = earlier[len(ahead) - RECORD_REACH :] + ahead
        after = [text for _, text in _lines(data, tail + 1, _forward(data, min(tail + 1, end), end, RECORD_REACH))]
        indented = _is_indented(data[head : head + 1])
        begin = _begin(ahead, indented)
        rows = [*ahead[begin:], data[head:tail], *after[: _stop(after, indented)]]
        first = number - (len(ahead) - begin)
        return [row for row in enumerate(rows, first) if len(row[1]) <= BYTES]

    def _complete(self, region: Region, first: int) -> None:
        """Put what the region begins with behind the records that the one before it may have cut."""
        data, start, end = region
        more = [line for _, line in _lines(data, start, _forward(data, start, end, RECORD_REACH))]
        for entry in tuple(self.cut):
            number, rows = self.record[entry]
            line = next((_text(raw) for n, raw in rows if n == number), b"")
            if not line or rows[-1][0] != first - 1 or len(rows) >= 2 * RECORD_REACH:
                self.cut.discard(entry)
                continue
            own = more[: _stop(more, _is_indented(line))]
            rows += [row for row in enumerate(own, first) if len(row[1]) <= BYTES]
            if _parts(own[-1], _is_indented(line)) is not None or len(more) == RECORD_REACH:
                self.cut.discard(entry)  # it ends here, else in a region behind this one

    def _end(self, runs: Sequence[Run]) -> None:
        """Keep what stands behind the last line of each entry, as of any line that matches; of a record all of it."""
        if self.records:
            for run in runs:
                number, rows = self.record.get(run.entry, (0, []))
                for i in self.matcher.whose(run.last[1]) if number == run.last[0] else ():
                    if self.room >= sum(len(line) + LINE_COST for _, line in rows):  # all of it or nothing
                        for row in rows:
                            self._keep(i, row, hit=True)
            return
        for entry, run in {run.entry: run for run in runs}.items():
            number, at, text, heads, codes = self.behind.get(entry, (0, 0, b"", array("q"), array("q")))
            for i in self.matcher.whose(run.last[1]) if number == run.last[0] else ():
                for n, (offset, line) in enumerate(
                    islice(_lines(text, 0, len(text)), min(BEHIND, self.after[i])), number + 1
                ):
                    code = _code(heads, codes, at + offset)
                    if self._keep(i, (n, line)) and code is not None and code >= 0:
                        self.folded[n] = code

    def _run(self, run: Run, shown: Sequence[int]) -> None:
        """The ends of a run; to a format the last stands for all that it does not get themselves."""
        (first, _), (last, text) = run.first, run.last
        ends = dict((run.first, run.last))
        owners: tuple[int, ...] = ()
        kept = True
        if self.records:  # only of the last line the record is at hand
            owners = self.matcher.whose(text)
            if not all(last in self.kept[i] for i in owners):
                self.dropped += run.times if tells_trouble(text) else 0
                return
            ends = dict((run.last,))
        for number, line in ends.items():
            owners = self.matcher.whose(line)
            for i in owners:
                self.hits[i] += 1
                kept = self._keep(i, (number, line), hit=True) and kept
        if not kept:  # no room: it is counted, as a whole
            self.dropped += run.times
            return
        for i in owners:
            alone = {*ends, *(number for number in shown if first <= number <= last and number in self.kept[i])}
            if run.times > len(alone) and len(self.hosts) > 1:  # nobody knows how many were whose
                self.dropped += run.times - len(alone)
            elif run.times > len(alone) and not run.pooled:
                # of records nobody knows the pauses: the last line tells its event, and is one
                pauses = {s * 10**9: 1 if self.records else many for s, many in zip(PAUSES, run.pauses, strict=True)}
                rest = tuple(sorted(alone - {first})) or (last,)
                stretch = Stretch(run.times, first, frozenset(alone), rest, pauses, run.programs)
                self.stretches[i].append(stretch)

    @property
    def lost(self) -> int:
        """Lines that matched and are told neither by themselves nor by an equal one."""
        return self.dropped + self.fold.lost

    def sniffed(self) -> str:
        """The beginning of the file as text."""
        return bytes(self.head).decode("utf-8", "replace")

    def _look(self, first: bytes) -> None:
        if len(self.head) >= SNIFF:
            return
        self.head += first[: SNIFF - len(self.head)]
        if self.next == 1 and _records(bytes(self.head)):
            self.records = True
            self.before = [max(n, RECORD_REACH) for n in self.before]
            self.after = [max(n, RECORD_REACH) for n in self.after]

    def _zones(
        self, region: Region, spans: Sequence[tuple[int, int]], owners: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[int, int]]:
        """Places of consecutive lines that may be wanted, apart from each other and in order."""
        data, start, end = region
        every = range(len(self.before))
        low = start
        high = _forward(data, start, end, max(self.due, default=0) - self.next + 1)
        reach = -1  # lines wanted behind the span before, as far as is known without counting them
        last = -1
        for head, tail in spans:
            own = owners.get(head, every)
            before = max((self.before[i] for i in own), default=0)
            after = max((self.after[i] for i in own), default=0)
            if head != last + 1 or reach < 1:
                high = max(high, _forward(data, min(last + 1, end), end, reach)) if last >= 0 else high
                back = _back(data, start, head, before) if head > high else high
                if back > high:
                    if high > low:
                        yield low, high
                    low = back
                high = max(high, min(tail + 1, end))
                reach = after
            else:
                reach = max(reach - 1, after)
            last = tail
        if last >= 0:
            high = max(high, min(last + 1, end), _forward(data, min(last + 1, end), end, reach))
        if high > low:
            yield low, high

    def _take(
        self, rows: Sequence[Row], codes: Sequence[int], known: Sequence[Sequence[int] | None], follows: bool
    ) -> None:
        """Consecutive lines, of those that match KEPT or FIRST and whose they are, where that is known; `follows` when they
        come right behind those remembered.
        """
        for place, ((number, raw), hit, own) in enumerate(zip(rows, codes, known, strict=True)):
            if hit and isinstance(raw, bytes) and len(raw) > self.cap:
                raw = cut(raw, self.cap, self.matcher.matches)
            owners = {} if not hit else self._owners(raw) if own is None else dict.fromkeys(own, ())
            first = hit == FIRST
            if owners and self.records:
                if not first and self.room < self.spare + RECORD_COST:  # the spare is for ends of runs
                    self.dropped += 1  # without its record it would tell neither when nor where
                    continue
                self.indented, self.must = _is_indented(_text(raw)), first
            for i in owners:
                self.hits[i] += 1
                for row in self._ahead(rows, place, self.before[i], follows):
                    self._beside(i, row)
                self.due[i] = max(self.due[i], number + self.after[i])
            lost = [i for i, p in owners.items() if not self._keep(i, (number, raw), p, hit=True, must=first)]
            self.dropped += bool(lost)
            for i, due in enumerate(self.due):
                if number <= due and i not in owners:
                    self._beside(i, (number, raw))
            if self.records and _parts(_text(raw), self.indented) is not None:
                self.due = [min(due, max(EDGE, number)) for due in self.due]

    def _ahead(self, rows: Sequence[Row], place: int, before: int, follows: bool) -> Sequence[Row]:
        """The neighbours ahead of the line at `place`; in a file of records those of its own."""
        remembered = list(self.recent)[place - before :] if follows and before > place else []
        ahead = [*remembered, *rows[max(0, place - before) : place]]
        return ahead[_begin([_text(raw) for _, raw in ahead], self.indented) :] if self.records else ahead

    def _beside(self, i: int, row: Row) -> None:
        """Keep a neighbour; where there is no room, count it once."""
        if not self._keep(i, row, hit=self.records, must=self.must) and row[0] > self.refused:
            self.refused = row[0]
            self.alone += 1

    def _owners(self, raw: bytes | LongLine) -> dict[int, Sequence[bytes]]:
        """The formats with a trigger in the line, and for a long one which pieces are theirs."""
        if isinstance(raw, bytes):
            return dict.fromkeys(self.matcher.whose(raw), ())
        owners: dict[int, list[bytes]] = {}
        for j in raw.hits:
            for i in self.matcher.whose(raw.pieces[j]):
                owners.setdefault(i, []).append(raw.pieces[j])
        return dict(sorted(owners.items()))

    def _keep(self, i: int, row: Row, pieces: Sequence[bytes] = (), *, hit: bool = False, must: bool = False) -> bool:
        """Keep a line for a format, where there is room; whether it is kept."""
        number, raw = row
        if number in self.kept[i] and not pieces:
            return True
        if isinstance(raw, bytes) and len(raw) > self.cap:
            raw = cut(raw, self.cap, _never)
        shared = self.texts.get(number) if isinstance(raw, bytes) else None
        parts = _in_order(raw, pieces) if isinstance(raw, LongLine) else (raw,)
        size = SHARED_COST if shared is not None else sum(map(len, parts)) + LINE_COST
        if size > self.room - (0 if hit else self.spare) and not (must and size <= LINE_COST + _scan_fold.LOOKED):
            return False
        self.room -= size
        if isinstance(raw, LongLine):
            self.long[number] = raw._replace(pieces=(), hits=())
        texts = tuple(part.decode("utf-8", "replace") for part in parts) if shared is None else shared
        if isinstance(raw, bytes):
            self.texts[number] = texts
        self.kept[i][number] = texts
        return True

    def _remember(self, region: Region, heads: Sequence[int], codes: Sequence[int]) -> None:
        """Keep the last lines at hand, for windows that reach back and for the end of the file."""
        data, start, end = region
        low = _back(data, start, end, self.memory)
        lines = list(_lines(data, low, end))
        for number, (offset, line) in enumerate(lines, self.next - len(lines)):
            if (code := _code(heads, codes, offset)) is not None and code >= 0:
                self.folded[number] = code
            self.recent.append((number, line if len(line) <= self.cap else cut(line, self.cap, _never)))


def _code(heads: Sequence[int], codes: Sequence[int], offset: int) -> int | None:
    """What became of the line at `offset`; None when it does not match."""
    place = bisect_left(heads, offset)
    return codes[place] if place < len(heads) and heads[place] == offset else None


def _text(raw: bytes | LongLine) -> bytes:
    """A line, of a long one its beginning."""
    return raw if isinstance(raw, bytes) else raw.pieces[0]


def _in_order(line: LongLine, pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    """The ends of a long line and the given pieces of it."""
    ends = (line.pieces[0], line.pieces[-1]) if len(line.pieces) > 1 else line.pieces
    wanted = {id(piece) for piece in (*ends, *pieces)}
    return tuple(piece for piece in line.pieces if id(piece) in wanted)


def _lines(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Offset and content of each line within ``data[start:end]``."""
    while start < end:
        tail = data.find(b"\n", start, end)
        tail = end if tail < 0 else tail
        yield start, data[start:tail]
        start = tail + 1


def _back(data: bytes, start: int, position: int, count: int) -> int:
    """Start of the line `count` lines ahead of the line at `position`, not before `start`."""
    while count > 0 and position > start:
        position = data.rfind(b"\n", start, position - 1) + 1 or start
        count -= 1
    return position


def _forward(data: bytes, position: int, end: int, count: int) -> int:
    """Where the `count` lines from `position` on end, at most `end`."""
    while count > 0 and position < end:
        tail = data.find(b"\n", position, end)
        position = end if tail < 0 else tail + 1
        count -= 1
    return position


def _torn(rows: Sequence[Row]) -> int:
    """How many of the first rows may be of a moment that began before them."""
    seconds = (look(raw).second for _, raw in rows[:TORN] if isinstance(raw, bytes) and len(raw) <= LOOKED)
    return next((i for i, (one, other) in enumerate(pairwise(seconds), 1) if one != other), 0)


def _by_entry(runs: Sequence[Run]) -> list[Run]:
    """One run of each entry."""
    out: dict[int, Run] = {}
    for run in runs:
        one = out.get(run.entry)
        out[run.entry] = (
            run
            if one is None
            else one._replace(times=one.times + run.times, last=run.last, programs=max(one.programs, run.programs))
        )
    return list(out.values())


def _is_indented(line: bytes) -> bool:
    return line[:1] in (b" ", b"\t")


def _begin(ahead: Sequence[bytes], indented: bool) -> int:
    """The place among the lines ahead of one where its record begins, with what parts it from the one before."""
    return next((i for i in range(len(ahead) - 1, -1, -1) if _parts(ahead[i], indented) is not None), 0)


def _stop(after: Sequence[bytes], indented: bool) -> int:
    """How many lines behind one are of its record, with what parts it from the next one."""
    return next((i for i, text in enumerate(after, 1) if _parts(text, indented) is not None), len(after))


def _parts(line: bytes, indented: bool) -> bool | None:
    """Whether a line parts records of a journal: True when the next one begins with it, False when it ends one, else None.

    Of ``-o verbose`` the fields are `indented`, those of ``-o export`` are not; json-pretty has braces, indented in a list.
    """
    if (alone := line.strip(b" \t\r,")) in (b"{", b"}"):
        return alone == b"{"
    if line.startswith((b"__CURSOR=", b"{")) or (indented and line[:1] not in (b" ", b"\t", b"", b"}")):
        return True
    return None if alone else False


def _never(_: bytes) -> bool:
    return False


def _records(head: bytes) -> bool:
    """True for journal output whose records span several lines: export, verbose, json-pretty, and json through jq."""
    lines = [line.strip() for line in head.decode("utf-8", "replace").splitlines()[:40]]
    names = ("__CURSOR", "_BOOT_ID", "_HOSTNAME", "_TRANSPORT", "__REALTIME_TIMESTAMP", "_MACHINE_ID")
    keys = tuple(mark for name in names for mark in (f"{name}=", f'"{name}" : ', f'"{name}": '))
    return sum(line.startswith(keys) for line in lines) >= 2
