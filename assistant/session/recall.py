"""What the history knows about a question: read here, told by `assistant.dialogue.history`.

Everything that happened within the time asked for comes back, in plain rows; which of it is meant is for the
answer to say. Nothing is written, and a history that cannot be read becomes a sentence.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from assistant.session.since import start_of
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Clock, Status, Subject
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.intent.query import Query
    from assistant.store.read import Line, PastEvent, PastFinding, Reader

KERNEL_LOG = "kernel-log"  # the probe that events come from
GOOD = "good"  # of the slot since: the last check that found nothing wrong
LINES = 8  # of facts that are asked about, at most


@dataclass(frozen=True, slots=True)
class Span:
    """What was looked through. The first row of every answer from the history."""

    host: str
    now: int  # ns UTC
    since: int | None = None  # ns UTC; None: as far back as it goes
    strange: tuple[str, ...] = ()  # times that were not understood
    begins: int | None = None  # ns UTC: the oldest that is still known
    last: int | None = None  # ns UTC: the newest check of all
    checks: int = 0  # within
    with_log: int = 0  # of those, the ones that read the kernel log
    hosts: tuple[str, ...] = ()  # all that were ever checked
    trouble: Text = NO_TEXT  # why there is nothing to read
    good: bool | None = None  # asked since the last check that found nothing wrong: whether there is one


@dataclass(frozen=True, slots=True)
class PastThing:
    """A finding, or events of one kind and code, about one thing."""

    kind: str  # finding, or the event's: xid, sxid, aer, ...
    subject: Subject
    title: Text  # of a finding; empty for events
    code: int | None  # of events, and the XID of a finding
    count: int  # log lines, or stretches of a finding
    first: int  # ns UTC
    last: int
    timed: bool  # False: the lines tell no time; the checks that read them do
    key: str = ""  # of a finding: its id in a diagnosis
    rule: str = ""
    severity: str = ""
    how: str = ""  # of a finding: "" it is still there, unseen (nobody could look), cleared, alone
    line: str = ""  # the last one, raw
    names: tuple[str, ...] = ()  # index and UUID of its GPU, where asked for


@dataclass(frozen=True, slots=True)
class Switched:
    """A version or setting of the node's software that is another one than at the last good check."""

    fact: str
    subject: Subject
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Course:
    """How a value went."""

    fact: str
    subject: Subject
    samples: int
    first: tuple[int, str]  # time (ns UTC) and value
    last: tuple[int, str]
    changed: int | None  # when it changed last; None: it did not
    low: float | None = None
    high: float | None = None


Row: TypeAlias = Span | PastThing | Switched | Course


def recall(settings: Settings, query: Query, host: str, now: int | None = None) -> tuple[tuple[Row, ...], Text | None]:
    """Rows of the history of `host` (the one that the query names, else the given, else this machine's).

    The second value is always None: why there is nothing stands in the span.
    """
    from assistant.store.location import OFF, StoreError, parse
    from assistant.store.patience import BEFORE
    from assistant.store.read import open_reader
    from knowledge.errors import ConfigError

    now = time.time_ns() if now is None else now
    try:
        location = parse(settings.history.url)
    except ConfigError as error:
        return (Span(host, now, trouble=Text(f"{error.message}; {error.hint}")),), None
    if location is None:
        return (
            Span(
                host,
                now,
                trouble=Text(f"the history is off (history_url = {OFF})", f"历史已关闭（history_url = {OFF}）"),
            ),
        ), None
    try:
        reader = open_reader(location, patience=max(BEFORE, 3.0))
        if reader is None:
            return (Span(host, now),), None
        with reader:
            return tuple(_rows(reader, settings, query, host, now)), None
    except StoreError as error:
        return (Span(host, now, trouble=error.said),), None


def _rows(reader: Reader, settings: Settings, query: Query, host: str, now: int) -> Iterable[Row]:
    hosts = tuple(reader.hosts())
    node = _meant(hosts, settings, query, host)
    if node not in hosts:
        return [Span(node, now, hosts=hosts)]
    boots = reader.boots(node)
    words = [w for w in query.slots.since if w != GOOD]
    good = reader.last_run(node, good=True) if GOOD in query.slots.since else None
    starts = [start_of(word, now, boots) for word in words]
    since = min((s for s in (*starts, good.as_of if good else None) if s is not None), default=None)
    strange = tuple(w for w, s in zip(words, starts, strict=True) if s is None)
    looks = reader.looks(node, since or 0)
    newest = reader.last_run(node)
    span = Span(
        node, now, since, strange, reader.begins(node), newest.as_of if newest else None,
        sum(k.checks for k in looks), sum(k.checks for k in looks if _read_log(k.probes)), hosts,
        good=good is not None if GOOD in query.slots.since else None,
    )  # fmt: skip
    names = _names(reader, node) if query.slots.gpu else {}
    things = [*_findings(reader.findings_since(node, since or 0), names),
              *_events(reader.events_since(node, since or 0), since or 0, names)]  # fmt: skip
    return [
        span,
        *(_switched(reader, node, good.as_of) if good else ()),
        *sorted(things, key=lambda t: (t.last, t.first, t.title.en, t.kind)),
        *_courses(reader, node, query, since or 0),
    ]


def _meant(hosts: Sequence[str], settings: Settings, query: Query, host: str) -> str:
    """The name in the history of the node that is meant; a name that it does not have when it is not there."""
    from assistant.session.inventory import Inventory, Known, known, resolve

    here = known(settings)
    said = query.slots.node[0] if query.slots.node else host or here.here
    if said in hosts:
        return said
    if here.is_here(said):
        return next((h for h in hosts if here.is_here(h)), here.here)
    found = resolve(said, Inventory(tuple(hosts), ""))
    return found.name if isinstance(found, Known) and found.name else said


def _read_log(probes: Mapping[str, Sequence[str]]) -> bool:
    return next(iter(probes.get(KERNEL_LOG, ("",))), "") == Status.OK


def _names(reader: Reader, host: str) -> Mapping[Subject, tuple[str, ...]]:
    """Index and UUID of each GPU, as they were read last."""
    from assistant.store.codec import decode, subject_of

    out: dict[Subject, list[str]] = defaultdict(list)
    for key, last in reader.latest(host).items():
        if key.fact in ("gpu.index", "gpu.uuid") and last.cell.status == Status.OK:
            out[subject_of(key.subject)].append(str(decode(last.cell, reader.vocabulary.get(key.fact))))
    return {subject: tuple(names) for subject, names in out.items()}


def _findings(found: Sequence[PastFinding], names: Mapping[Subject, tuple[str, ...]]) -> Iterable[PastThing]:
    """One row for each rule and subject; stretches that go on where the one before ended are one."""
    groups: dict[tuple[str, Subject], list[PastFinding]] = defaultdict(list)
    for finding in found:
        groups[finding.rule, finding.subject].append(finding)
    for (rule, subject), group in groups.items():
        newest = max(group, key=lambda f: (f.last_at, f.how != "changed"))
        yield PastThing(
            "finding", subject, newest.title, newest.xid, len({f.opened_at for f in group}),
            min(f.opened_at for f in group), newest.last_at, True, newest.key, rule, newest.severity, newest.how,
            names=_of(subject, names),
        )  # fmt: skip


def _events(found: Sequence[PastEvent], since: int, names: Mapping[Subject, tuple[str, ...]]) -> Iterable[PastThing]:
    groups: dict[tuple[str, int | None, Subject], list[PastEvent]] = defaultdict(list)
    for event in found:
        if _moment(event) >= since:
            groups[event.kind, event.code, event.subject].append(event)
    for (kind, code, subject), group in groups.items():
        newest = max(group, key=_moment)
        yield PastThing(
            kind, subject, NO_TEXT, code, sum(max(1, e.count) for e in group), min(map(_moment, group)),
            _moment(newest), all(_timed(e) for e in group), line=newest.line, names=_of(subject, names),
        )  # fmt: skip


def _timed(event: PastEvent) -> bool:
    return event.at is not None and event.clock is Clock.REALTIME


def _moment(event: PastEvent) -> int:
    """When it happened; of a line that tells no time in UTC, when it was read first."""
    return event.at if event.at is not None and event.clock is Clock.REALTIME else event.first_seen


def _of(subject: Subject, names: Mapping[Subject, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(n for s in subject.ancestors() for n in names.get(s, ()))


def _switched(reader: Reader, host: str, at: int) -> list[Switched]:
    """Software that is another one now than it was at a check, as far as both looks told."""
    from assistant.changes import SOFTWARE
    from assistant.store.codec import decode, subject_of

    def told(until: int | None) -> dict[tuple[str, str], str]:
        """The newest value of each, of whichever probe."""
        found: dict[tuple[str, str], tuple[int, str]] = {}
        for key, last in (reader.latest(host) if until is None else reader.latest(host, until)).items():
            if key.fact not in SOFTWARE or last.cell.status != Status.OK:
                continue
            place = (key.fact, key.subject)
            if place not in found or last.at > found[place][0]:
                found[place] = (last.at, _said(decode(last.cell, reader.vocabulary.get(key.fact))))
        return {place: text for place, (_, text) in found.items()}

    before, after = told(at), told(None)
    return [
        Switched(fact, subject_of(subject), before[fact, subject], text)
        for (fact, subject), text in sorted(after.items())
        if before.get((fact, subject), text) != text
    ]


# --- values -------------------------------------------------------------------------------


def _courses(reader: Reader, host: str, query: Query, since: int) -> list[Course]:
    out: list[Course] = []
    for fact in query.facts[:4]:
        if fact not in reader.vocabulary:
            continue
        found = (_course(reader, line) for line in reader.lines(host, fact, since=since)[:LINES])
        out += [course for course in found if course is not None]
    return out[:LINES]


def _course(reader: Reader, line: Line) -> Course | None:
    from assistant.store.codec import decode, subject_of

    spec = reader.vocabulary.get(line.key.fact)
    told = [s for s in line.samples if s.cell.status == Status.OK]
    if not told:
        return None
    values = [(s.at, decode(s.cell, spec)) for s in told]
    changes = [at for (_, a), (at, b) in pairwise(values) if a != b]
    numbers = [s.cell.num for s in told if s.cell.num is not None]
    return Course(
        line.key.fact, subject_of(line.key.subject), len(told), (values[0][0], _said(values[0][1])),
        (values[-1][0], _said(values[-1][1])), changes[-1] if changes else None,
        min(numbers, default=None), max(numbers, default=None),
    )  # fmt: skip


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
