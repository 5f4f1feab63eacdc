"""A log as lines to read: each with its time, how bad it is, and what it means.

Pure functions of bytes and of what the parsers saw in them. Lines come in batches, so that who shows them never waits
for the last one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from assistant.live.logmarks import Decoded, Judge, decoded
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Clock, Observation, Status
from knowledge.text import clean
from probes.base import Line
from probes.parse._kernel_shape import Entry, Kind, entries_of, is_record_file
from probes.parse._logtime import SECOND, Point, settle

if TYPE_CHECKING:
    from assistant.intent.query import Query

BATCH = 1000  # lines that are handed over at once
SHOWN = 4000  # characters of a line that are kept
Spot = Callable[[int, Clock], tuple[int, Clock]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
# <3>[6085126.134786] NVRM: ...     6,3973,227996636,-;msg     {"PRIORITY" : "3", ...}
_NUMBERED = lazy(r"<(\d{1,3})>|(\d{1,6}),\d{1,20},\d{1,20}[,;]|.{0,4000}\"PRIORITY\" ?: ?\"(\d)\"")
# kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ...     192.168.11.119: kern: warning: [2026-04-22T...]: ...
_NAMED = lazy(r"(?:\S+: )?[a-z]\w* *: *(emerg|alert|crit|err|error|warn|warning|notice|info|debug) *: ")


class LogLine(NamedTuple):
    """One line."""

    key: str  # its identity within the log
    number: int  # in the file or output, from 1
    at: int | None  # ns of `clock`
    clock: Clock
    message: str  # without what stands ahead of it: time, host, level
    raw: str
    level: str = ""  # syslog's word, where the line says one
    decoded: Decoded | None = None

    def question(self, lang: str) -> str:
        """ "Explain this" as a sentence: the page about what the line tells; else the line as it stands."""
        said = " ".join(self.message.split())[:400]
        if not said:
            return ""
        if self.decoded is not None and (topic := self.decoded.topic) and not topic.startswith(("xid", "sxid")):
            return f"解释 {topic}" if lang == "zh" else f"explain {topic}"
        return f"这行日志是什么意思：{said}" if lang == "zh" else f"what does this mean: {said}"

    def query(self, lang: str) -> Query | None:
        """As what that is to be understood: a line that no parser knows would be read like a person's own words."""
        if self.decoded is not None or not self.message.strip():
            return None
        from assistant.intent.query import Intent, Query

        echo = Text("explain a line of the log that no parser knows", "解释一行解析器未识别的日志")
        return Query(" ".join(self.message.split())[:400], lang, Intent.EXPLAIN, echo=echo)


def lines(
    data: bytes, found: Iterable[Observation], judge: Judge, *, first: int = 1, spot: Callable[[int | None], Spot] | None = None,
    check: Callable[[], object] = lambda: None,
) -> Iterator[list[LogLine]]:  # fmt: skip
    """The lines of `data` in batches, oldest first.

    `found` is what the parsers saw in the log, by line; of lines ahead of `first` (a log of which only the end is held)
    those with an event are made from it. `spot` gives what places times in UTC. `check` is called between batches; what
    it raises ends the work.
    """
    events = _by_line(found)
    yield from _batches(_early(events, first, judge))
    entries: list[Entry] = []
    for part in _parts(_lines(data, first)):
        check()
        entries += entries_of(part)
    times = settle([Point(e.number, e.stamp, e.boots) for e in entries])
    yearless = (at for at, clock in times if at is not None and clock is Clock.YEARLESS)
    place = spot(max(yearless, default=None)) if spot else None
    timed = ((entry, place(at, clock) if place and at is not None else (at, clock))
             for entry, (at, clock) in zip(entries, times, strict=True))  # fmt: skip
    for batch in _batches(_made(timed, events, judge)):
        check()
        yield batch


def written(records: Iterable[tuple[int, str]], ahead: Sequence[str], judge: Judge) -> list[LogLine]:
    """The lines in records that have just been written, each with its time (ns UTC), read as a log of which `ahead` are the lines before.

    Their numbers count on from those.
    """
    from probes.parse.kernel_log import FORMAT
    from probes.scan import scan

    new = [(at, text) for at, record in records for text in record.splitlines() if text.strip() and text[:1] != " "]
    log = "\n".join([*ahead, *(text for _, text in new)]).encode("utf-8", "surrogatepass")
    events = _by_line(scan([BytesIO(log)], [FORMAT]).observations)
    first = len(ahead) + 1
    entries = entries_of([Line(n, text) for n, (_, text) in enumerate(new, first)])
    return list(_made(((entry, (new[entry.number - first][0], Clock.REALTIME)) for entry in entries), events, judge))


def _by_line(found: Iterable[Observation]) -> Mapping[int, Sequence[Observation]]:
    """What was seen in each line."""
    events: dict[int, list[Observation]] = defaultdict(list)
    for o in found:
        if o.source.line is not None and o.status in (Status.OK, Status.FAILED):
            events[o.source.line].append(o)
    return events


def _lines(data: bytes, first: int) -> list[Line]:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    found = [Line(first + i, line) for i, line in enumerate(text.split("\n"))]
    return found[:-1] if found and not found[-1].text else found


def _parts(every: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Pieces of a log that can be taken apart one by one; records of several lines stay together."""
    if is_record_file(every):
        yield every
        return
    for start in range(0, len(every), BATCH):
        yield every[start : start + BATCH]


def _batches(every: Iterable[LogLine]) -> Iterator[list[LogLine]]:
    batch: list[LogLine] = []
    for line in every:
        batch.append(line)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _made(
    timed: Iterable[tuple[Entry, tuple[int | None, Clock]]], events: Mapping[int, Sequence[Observation]], judge: Judge
) -> Iterator[LogLine]:
    last, again = -1, 0
    for entry, (at, clock) in timed:
        again = again + 1 if entry.number == last else 0  # a record of JSON may hold several messages
        last = entry.number
        message = _message(entry)
        if not message:
            continue
        here = events.get(entry.number, ()) if not again else ()
        key = f"{entry.number}.{again}" if again else str(entry.number)
        raw = entry.raw.strip()[:SHOWN]
        yield LogLine(key, entry.number, at, clock, message, raw, _level(raw), decoded(here, judge) if here else None)


def _early(events: Mapping[int, Sequence[Observation]], first: int, judge: Judge) -> Iterator[LogLine]:
    """Lines that are not held any more, of which something was seen."""
    for number in sorted(n for n in events if n < first):
        here = events[number]
        if (mark := decoded(here, judge)) is not None:
            raw = mark.event.excerpt
            yield LogLine(str(number), number, mark.event.at, mark.event.clock, _plain(raw), raw, "", mark)


def _message(entry: Entry) -> str:
    if entry.kind is Kind.BARE and entry.stamp is None:
        return _plain(entry.raw).rstrip()[:SHOWN]  # how far a line is set in says much in a traceback
    said = f"{entry.tag}: {entry.message}" if entry.tag else entry.message
    return _plain(said).strip()[:SHOWN]


def _plain(text: str) -> str:
    """On one line, tabs as blanks."""
    return clean(text).replace("\n", " ").expandtabs(4)


def _level(raw: str) -> str:
    head = raw[:1]
    if head == "<" or head.isdigit() or head == "{":
        found = _NUMBERED.match(raw)
        number = next((g for g in found.groups() if g), None) if found else None
        return _LEVELS[int(number) & 7] if number is not None else ""
    named = _NAMED.match(raw)
    return {"warn": "warning", "error": "err"}.get(named[1], named[1]) if named else ""


# --- times --------------------------------------------------------------------------------


def when(at: int | None, clock: Clock) -> str:
    """A time as a column shows it: ``08-19 02:53:40`` of the calendar, ``[12345.678]`` since boot; empty without one."""
    if at is None:
        return ""
    if clock in (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS):
        day, second = divmod(at // SECOND, 86_400)
        return f"{_day(day)} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"[{at / SECOND:.3f}]"


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return f"{_EPOCH + timedelta(days=number):%m-%d}"


def whole(at: int | None, clock: Clock, lang: str) -> str:
    """A time with everything that is known of it."""
    zh = lang == "zh"
    if at is None:
        return "无时间" if zh else "no time"
    if clock is Clock.REALTIME:
        return f"{_calendar(at):%Y-%m-%d %H:%M:%S}.{at % SECOND // 1000:06d} UTC"
    if clock is Clock.LOCAL:
        return f"{_calendar(at):%Y-%m-%d %H:%M:%S} {'当地时间' if zh else 'local time'}"
    if clock is Clock.YEARLESS:
        return f"{_calendar(at):%m-%d %H:%M:%S} {'当地时间，无年份' if zh else 'local time, no year'}"
    seconds = f"{at // SECOND}.{at % SECOND // 1000:06d}"
    if clock is Clock.BOOT:
        return f"启动后 {seconds} 秒" if zh else f"{seconds} s since boot"
    return f"{seconds} 秒" if zh else f"{seconds} s"


def _calendar(at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at // SECOND)
