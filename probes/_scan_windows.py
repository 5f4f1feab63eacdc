"""Which lines of one file each log format gets: those that matched, their neighbours, both ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from probes._scan_lines import LongLine, Region, cut
from probes._scan_match import Matcher
from probes.base import Line, LogFormat

EDGE = 64  # first and last lines of a file that every format gets
RECORD_REACH = 32  # lines around a match in a file whose records span lines (journal export)
SNIFF = 65_536
KEEP = 64 << 20  # bytes of one file's lines that are kept for the formats

Row = tuple[int, bytes | LongLine]  # line number and content


class Windows:
    """Gathers lines while the regions of one file pass by, in order."""

    def __init__(self, formats: Sequence[LogFormat], matcher: Matcher, cap: int, keep: int = KEEP) -> None:
        self.matcher = matcher
        self.cap = cap
        self.room = keep
        self.before = [f.before for f in formats]
        self.after = [f.after for f in formats]
        self.kept: list[dict[int, tuple[str, ...]]] = [{} for _ in formats]
        self.hits = [0] * len(formats)
        self.due = [EDGE] * len(formats)  # every line up to this number is wanted
        self.memory = max([EDGE, RECORD_REACH, *self.before])
        self.recent: deque[Row] = deque(maxlen=self.memory)  # the last lines seen
        self.head = bytearray()
        self.next = 1  # number of the next line
        self.dropped = 0  # matching lines that found no room
        self.long: dict[int, LongLine] = {}  # long lines that were kept

    @property
    def lines(self) -> int:
        """Lines read so far."""
        return self.next - 1

    def region(self, region: Region, spans: Sequence[tuple[int, int]]) -> None:
        """The next lines of the file, and the places of those that match."""
        data, start, end = region
        self._look(data[start : min(end, start + SNIFF)])
        heads = {head for head, _ in spans}
        at = start
        for low, high in self._zones(region, spans):
            self.next += data.count(b"\n", at, low)
            rows = [(n, line) for n, (_, line) in enumerate(_lines(data, low, high), self.next)]
            hits = [offset in heads for offset, _ in _lines(data, low, high)]
            self._take(rows, hits, follows=low == start)
            self.next += len(rows)
            at = high
        self.next += data.count(b"\n", at, end) + (1 if end > at and data[end - 1] != 0x0A else 0)
        self._remember(region)

    def long_line(self, line: LongLine) -> None:
        """The next line of the file, which was too long to be held in one piece."""
        self._look(line.pieces[0][:SNIFF] + b"\n")
        self._take([(self.next, line)], [bool(line.hits)], follows=True)
        self.recent.append((self.next, line))
        self.next += 1

    def finish(self) -> list[list[Line]]:
        """The lines for each format, in order."""
        for row in list(self.recent)[-EDGE:]:
            for i in range(len(self.kept)):
                self._keep(i, row)
        return [[Line(n, text) for n, texts in sorted(kept.items()) for text in texts] for kept in self.kept]

    def sniffed(self) -> str:
        """The beginning of the file as text."""
        return bytes(self.head).decode("utf-8", "replace")

    def _look(self, first: bytes) -> None:
        if len(self.head) >= SNIFF:
            return
        self.head += first[: SNIFF - len(self.head)]
        if self.next == 1 and _records(bytes(self.head)):
            self.before = [max(n, RECORD_REACH) for n in self.before]
            self.after = [max(n, RECORD_REACH) for n in self.after]

    def _zones(self, region: Region, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Places of consecutive lines that may be wanted, apart from each other and in order."""
        data, start, end = region
        before, after = max(self.before, default=0), max(self.after, default=0)
        low = start
        high = _forward(data, start, end, max(self.due, default=0) - self.next + 1)
        end_of_last = -1
        for place, (head, tail) in enumerate(spans):
            if head != end_of_last + 1:  # the line behind one that matches lies in its zone
                back = _back(data, start, head, before) if head > high else high
                if back > high:
                    if high > low:
                        yield low, high
                    low = back
            end_of_last = tail
            if place + 1 == len(spans) or spans[place + 1][0] != tail + 1:  # else the next one reaches further
                high = max(high, _forward(data, min(tail + 1, end), end, after))
        if high > low:
            yield low, high

    def _take(self, rows: Sequence[Row], hits: Sequence[bool], follows: bool) -> None:
        """Consecutive lines; `follows` when they come right behind those remembered."""
        for place, ((number, raw), hit) in enumerate(zip(rows, hits, strict=True)):
            if hit and isinstance(raw, bytes) and len(raw) > self.cap:
                raw = cut(raw, self.cap, self.matcher.matches)
            owners = self._owners(raw) if hit else {}
            for i, pieces in owners.items():
                self.hits[i] += 1
                before = self.before[i]
                if follows and before > place:
                    for row in list(self.recent)[place - before :]:
                        self._keep(i, row)
                for row in rows[max(0, place - before) : place]:
                    self._keep(i, row)
                self._keep(i, (number, raw), pieces)
                self.due[i] = max(self.due[i], number + self.after[i])
            for i, due in enumerate(self.due):
                if number <= due and i not in owners:
                    self._keep(i, (number, raw))

    def _owners(self, raw: bytes | LongLine) -> dict[int, list[bytes]]:
        """The formats with a trigger in the line, and for a long one which pieces are theirs."""
        if isinstance(raw, bytes):
            return {i: [] for i in self.matcher.whose(raw)}
        owners: dict[int, list[bytes]] = {}
        for j in raw.hits:
            for i in self.matcher.whose(raw.pieces[j]):
                owners.setdefault(i, []).append(raw.pieces[j])
        return dict(sorted(owners.items()))

    def _keep(self, i: int, row: Row, pieces: Sequence[bytes] = ()) -> None:
        number, raw = row
        if number in self.kept[i] and not pieces:
            return
        if isinstance(raw, bytes) and len(raw) > self.cap:
            raw = cut(raw, self.cap, _never)
        if isinstance(raw, LongLine):
            texts = _in_order(raw, pieces)
            self.long[number] = raw._replace(pieces=(), hits=())
        else:
            texts = (raw,)
        size = sum(map(len, texts))
        if size > self.room:
            self.dropped += 1
            return
        self.room -= size
        self.kept[i][number] = tuple(text.decode("utf-8", "replace") for text in texts)

    def _remember(self, region: Region) -> None:
        """Keep the last lines at hand, for windows that reach back and for the end of the file."""
        data, start, end = region
        low = _back(data, start, end, self.memory)
        lines = [line for _, line in _lines(data, low, end)]
        for number, line in enumerate(lines, self.next - len(lines)):
            self.recent.append((number, line if len(line) <= self.cap else cut(line, self.cap, _never)))


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


def _never(_: bytes) -> bool:
    return False


def _records(head: bytes) -> bool:
    """True for journal output whose records span several lines: export, verbose, json-pretty."""
    lines = [line.strip() for line in head.decode("utf-8", "replace").splitlines()[:40]]
    names = ("__CURSOR", "_BOOT_ID", "_HOSTNAME", "_TRANSPORT", "__REALTIME_TIMESTAMP", "_MACHINE_ID")
    keys = tuple(f"{name}=" for name in names) + tuple(f'"{name}" : ' for name in names)
    return sum(line.startswith(keys) for line in lines) >= 2
