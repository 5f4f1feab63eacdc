"""Raw log lines as people read them: the message with its time in UTC, without what the log's carrier put ahead.

The exact line stands in the JSON of the diagnosis (`excerpt`) and in ``--verbose``.
"""

from __future__ import annotations

from assistant.render.times import readable, stamp
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation
from knowledge.text import clean

_KMSG = r"\d{1,4},\d{1,20},\d{1,20},[^;]{1,40};"  # 12,352,13454698950,-;NVRM: ...
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
# 2025-03-06T03:12:07.402118+00:00 host kernel: [1204.508031] NVRM: ...      Mar  6 03:12:07 host kernel: NVRM: ...
# <6>[ 1204.508031] NVRM: ...
_UPTIME = r"\[ {0,12}\d{1,9}\.\d{1,9}\] "
_KERNEL = rf"(?:{_STAMP}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d) (?:[\w.-]{{1,255}} )?kernel: (?:{_UPTIME})?"
_AHEAD = lazy(f"{_KMSG}|{_KERNEL}|(?:<\\d{{1,3}}>)?{_UPTIME}")
_TIMED = lazy(rf"{_STAMP} (?=\S)")  # of a service: the name of the program stays
_RECORD = lazy(_KMSG)
_MICROSECONDS = lazy(r"(\.\d{3})000(?=[Zs]?$)")


def message(o: Observation) -> str:
    """What the line of an event says, without time, host and carrier.

    The whole line where its own time is the best there is: one without a year, a zone or a date.
    """
    raw = clean(o.excerpt)
    if o.at is None or o.clock not in (Clock.REALTIME, Clock.BOOT):
        return raw
    found = _RECORD.match(raw) if o.clock is Clock.BOOT else _AHEAD.match(raw) or _TIMED.match(raw)
    return raw[found.end() :] if found else raw


def moment(o: Observation) -> str:
    """When an event happened, to the millisecond: ``2026-08-19 02:40:56.650Z``, ``11-28 04:00:01`` where the line has no year;
    empty when nobody knows."""
    if o.at is None:
        return ""
    return _MICROSECONDS.sub(r"\1", readable(stamp(o.at // 10**6 * 10**6, o.clock) or "")).removeprefix("--")


def is_timed(o: Observation) -> bool:
    """Whether the line of an event is shown by its time and message."""
    return isinstance(o.value, Event) and message(o) != clean(o.excerpt)


def shown(o: Observation) -> str:
    """The line of an event as people read it."""
    return f"{moment(o)} {message(o)}" if is_timed(o) else clean(o.excerpt)
