"""Reading the history: plain SQL that SQLite and PostgreSQL both understand.

A file is read with the standard library's sqlite3, so that `check --since-last` and `history` do not pay for
SQLAlchemy; a server through it. A test holds the statements against the tables of `assistant.store.tables`.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from assistant.store.codec import HISTORY, Cell, Key, Last, decode, subject_of, subject_text
from assistant.store.location import Location, StoreError
from assistant.store.trouble import not_read, reason
from knowledge.facts import Vocabulary, vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Observation, Series, Source, Status, Subject
from knowledge.record import dataclass

VERSION_TABLE = "gpudiag_version"
REVISIONS = ("0001", "0002", "0003", "0004", "0005")
HEAD = REVISIONS[-1]
FOREVER = 2**63 - 1  # ns: the greatest time that a column holds
TIMEOUT = 5.0  # seconds that a reader or a writer waits for another one
Query = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]

_RUN = (
    "r.id, n.host, r.as_of, r.origin, r.late, r.boot_id, r.version, r.ruleset, r.state, r.usable, r.text_en, r.text_zh, "
    "r.exit, r.probes FROM run r JOIN node n ON n.id = r.node_id"
)
_FINDING = (
    "f.id, f.key, f.rule, f.xid, f.subject, f.title_en, f.title_zh, f.severity, f.grade, f.role, f.bucket, "
    "f.explained_by, f.count, f.first_event, f.last_event, f.clock, f.opened_at, f.last_at, f.last_run, f.how, f.stands_on "
    "FROM finding f"
)
SQL: Mapping[str, str] = {
    "node": "SELECT id FROM node WHERE host = :host",
    "hosts": "SELECT host FROM node ORDER BY host",
    "runs": f"SELECT {_RUN} WHERE (:host = '' OR n.host = :host) AND r.as_of >= :since ORDER BY r.as_of DESC, r.id DESC LIMIT :limit",
    "run": f"SELECT {_RUN} WHERE r.id = :id",
    "last_run": f"SELECT {_RUN} WHERE n.host = :host AND NOT r.late AND r.as_of < :before ORDER BY r.as_of DESC LIMIT 1",
    "last_good": (
        f"SELECT {_RUN} WHERE n.host = :host AND NOT r.late AND r.state = 'ok' AND r.as_of < :before ORDER BY r.as_of DESC LIMIT 1"
    ),
    "run_times": (
        "SELECT r.id, r.as_of, r.boot_id, r.sources FROM run r "
        "WHERE r.node_id = :node AND NOT r.late AND r.as_of >= :since AND r.as_of <= :until ORDER BY r.id"
    ),
    "open_findings": f"SELECT {_FINDING} WHERE f.node_id = :node AND f.how IN ('', 'unseen') ORDER BY f.id",
    "findings_at": (
        f"SELECT {_FINDING} WHERE f.node_id = :node AND f.first_at <= :at AND f.last_at >= :at "
        "AND f.first_run <= :run AND f.last_run >= :run AND (f.how <> 'alone' OR f.first_run = :run) ORDER BY f.id"
    ),
    "first_seen": "SELECT min(f.opened_at) FROM finding f WHERE f.node_id = :node AND f.rule = :rule AND f.subject = :subject",
    "episodes": f"SELECT {_FINDING} WHERE f.node_id = :node AND f.rule = :rule AND f.subject = :subject ORDER BY f.first_at",
    "past_findings": f"SELECT {_FINDING} WHERE f.node_id = :node AND f.last_at >= :since ORDER BY f.first_at, f.id",
    "looks": (
        "SELECT r.probes, count(*), min(r.as_of), max(r.as_of) FROM run r "
        "WHERE r.node_id = :node AND r.as_of >= :since GROUP BY r.probes"
    ),
    "first_run": "SELECT r.as_of FROM run r WHERE r.node_id = :node ORDER BY r.as_of LIMIT 1",
    "first_event": "SELECT e.first_seen FROM event e WHERE e.node_id = :node ORDER BY e.first_seen LIMIT 1",
    "first_finding": "SELECT f.opened_at FROM finding f WHERE f.node_id = :node ORDER BY f.opened_at LIMIT 1",
    "boots": (
        "SELECT r.boot_id, min(r.as_of) FROM run r WHERE r.node_id = :node AND r.boot_id <> '' GROUP BY r.boot_id ORDER BY 2"
    ),
    "events": (
        "SELECT e.kind, e.code, e.subject, e.at, e.clock, e.boot_id, e.source, e.line, e.fields, e.first_seen, e.last_seen, "
        "e.count FROM event e WHERE e.node_id = :node AND e.first_seen >= :since ORDER BY e.first_seen, e.id"
    ),
    "latest": (
        "SELECT t.id, t.fact, t.subject, t.probe, t.call, o.status, o.num, o.text, o.json, o.at FROM track t "
        "JOIN observation o ON o.track_id = t.id AND o.at = (SELECT max(x.at) FROM observation x "
        "WHERE x.track_id = t.id AND x.holds_from IS NOT NULL AND x.at <= :until) WHERE t.node_id = :node"
    ),
    "facts": (
        "SELECT t.fact, t.subject, t.probe, t.call FROM track t WHERE t.node_id = :node ORDER BY t.fact, t.subject, t.probe"
    ),
    "tracks": (
        "SELECT t.id, t.fact, t.subject, t.probe, t.call FROM track t "
        "WHERE t.node_id = :node AND t.fact = :fact AND (:subject = '' OR t.subject = :subject) ORDER BY t.subject, t.probe"
    ),
    # from the row in force when the window begins
    "rows": (
        "SELECT o.track_id, o.at, o.run_id, o.status, o.num, o.text, o.json, o.holds_from, o.excerpt FROM track t "
        "JOIN observation o ON o.track_id = t.id WHERE t.node_id = :node AND t.fact = :fact "
        "AND (:subject = '' OR t.subject = :subject) AND o.at <= :until AND o.at >= coalesce((SELECT max(x.at) "
        "FROM observation x WHERE x.track_id = t.id AND x.holds_from IS NOT NULL AND x.at <= :since), :since) "
        "ORDER BY o.track_id, o.at"
    ),
    "version": f"SELECT version_num FROM {VERSION_TABLE}",
}  # fmt: skip


class Run(NamedTuple):
    """One check."""

    id: int
    host: str
    as_of: int  # ns UTC
    origin: str
    late: bool
    boot_id: str
    version: str
    ruleset: str
    state: str
    usable: str
    text: Text
    exit: int
    probes: Mapping[str, Sequence[str]]  # probe -> status, detail


@dataclass(frozen=True, slots=True)
class PastFinding:
    """A finding as the history has it."""

    key: str
    rule: str
    xid: int | None
    subject: Subject
    title: Text
    severity: str
    grade: str
    role: str
    bucket: str
    explained_by: tuple[str, ...]
    count: int
    first_event: int | None
    last_event: int | None
    clock: Clock  # of the two above
    opened_at: int  # ns UTC, of the check that saw it first
    last_at: int  # of the check that saw it last
    last_run: int
    how: str  # "", changed, unseen, cleared, alone
    stands_on: tuple[tuple[str, str], ...] | None  # facts and subjects; None when an old gpudiag did not note them


@dataclass(frozen=True, slots=True)
class PastEvent:
    """A line of a log, once."""

    kind: str
    code: int | None
    subject: Subject
    at: int | None
    clock: Clock
    boot_id: str
    source: str
    line: str
    fields: Mapping[str, Any]
    first_seen: int
    last_seen: int
    count: int


class Sample(NamedTuple):
    """One reading."""

    at: int  # ns UTC
    cell: Cell
    boot_id: str
    excerpt: str = ""


class Line(NamedTuple):
    """Every reading of one fact about one subject by one probe, oldest first."""

    key: Key
    call: str
    samples: tuple[Sample, ...]

    @property
    def series(self) -> Series:
        """The numbers among them."""
        numbers = [s for s in self.samples if s.cell.status == Status.OK and s.cell.num is not None]
        return Series(tuple(s.at for s in numbers), tuple(s.cell.num or 0.0 for s in numbers))


class Looks(NamedTuple):
    """Checks in which the same probes gave the same kinds of answers."""

    probes: Mapping[str, Sequence[str]]  # probe -> status, detail
    checks: int
    first: int  # ns UTC
    last: int


class Wanted(NamedTuple):
    """How far back somebody looks at a fact, and whether each sample is needed or only where the value changed."""

    window: int  # ns
    each: bool = False
    every: int = 0  # ns: of samples within one such stretch the newest is enough


class _Moment(NamedTuple):
    id: int
    as_of: int
    boot_id: str
    sources: frozenset[str]


class _Moments:
    """The runs of a stretch of time; with them rows become samples."""

    def __init__(self, found: Sequence[_Moment]) -> None:
        self._all = found
        self._numbers = [m.id for m in found]
        self._times = [m.as_of for m in found]  # they grow with the numbers: a run that is late is none of these
        self._boots = {m.id: m.boot_id for m in found}

    def expand(self, rows: Sequence[tuple[Any, ...]], probe: str, since: int, each: bool, about: bool) -> list[Sample]:
        """Each row's own sample, and one for each later run that found it unchanged; only `since` then.

        Without `each`, of a stretch without a change its two ends. With `about` also runs that may have passed a change over,
        which is less than a step of a gauge.
        """
        out: list[Sample] = []
        holding = [r for r in rows if r[7] is not None]
        after = {id(a): int(b[2]) for a, b in pairwise(holding)}
        for row in rows:
            _, at, run, *columns, holds_from, excerpt = row
            cell, words = Cell(*columns), excerpt or ""
            if at >= since:
                out.append(Sample(int(at), cell, self._boots.get(int(run), ""), words))
            if holds_from is None:
                continue
            begins = max(int(at if about else holds_from), since)
            first = max(bisect_right(self._numbers, int(run)), bisect_left(self._times, begins))
            end = bisect_left(self._numbers, after[id(row)]) if id(row) in after else len(self._numbers)
            out += [Sample(m.as_of, cell, m.boot_id, words) for m in self._read_by(probe, first, end, each)]
        return sorted(out, key=lambda s: s.at)

    def _read_by(self, probe: str, first: int, end: int, each: bool) -> Sequence[_Moment]:
        """The runs of a range in which a probe was read; without `each` the first and the last of them."""
        if each:
            return [m for m in self._all[first:end] if probe in m.sources]
        low = next((i for i in range(first, end) if probe in self._all[i].sources), None)
        if low is None:
            return []
        high = next(i for i in range(end - 1, low - 1, -1) if probe in self._all[i].sources)
        return [self._all[low], self._all[high]] if high > low else [self._all[low]]


class Reader:
    """Questions to one history. Close it, or use it as a context manager."""

    def __init__(
        self, query: Query, close: Callable[[], None], words: Vocabulary | None = None, revision: str | None = HEAD
    ) -> None:
        self._query, self._close = query, close
        self._words = words
        self.revision = revision  # of the tables; empty: there are none yet; None: they are somebody else's

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def vocabulary(self) -> Vocabulary:
        """The facts as they are called now."""
        if self._words is None:
            self._words = vocabulary()
        return self._words

    @property
    def ask(self) -> Query:
        """Rows of a statement, for modules that keep tables of their own (`assistant.store.profiles`)."""
        return self._query

    # --- runs -----------------------------------------------------------------------------

    def hosts(self) -> list[str]:
        """Every node that was ever checked."""
        return [str(row[0]) for row in self._query(SQL["hosts"], {})]

    def runs(self, host: str = "", since: int = 0, limit: int = 20) -> list[Run]:
        """The newest runs first; of every node when `host` is empty."""
        return [_run(r) for r in self._query(SQL["runs"], {"host": host, "since": since, "limit": limit})]

    def run(self, number: int) -> Run | None:
        """One run by its number."""
        return next(map(_run, self._query(SQL["run"], {"id": number})), None)

    def last_run(self, host: str, before: int = FOREVER, *, good: bool = False) -> Run | None:
        """The newest run of a node, before a time (ns UTC); the newest that found nothing wrong when it is to be `good`."""
        statement = SQL["last_good" if good else "last_run"]
        return next(map(_run, self._query(statement, {"host": host, "before": before})), None)

    def _node(self, host: str) -> int:
        """The node's number; 0, which no node has, when it is not known."""
        return next((int(row[0]) for row in self._query(SQL["node"], {"host": host})), 0)

    # --- findings and events --------------------------------------------------------------

    def open_findings(self, host: str) -> list[PastFinding]:
        """Findings that the last run saw, or that it could not look for."""
        return [finding_of(r) for r in self._query(SQL["open_findings"], {"node": self._node(host)})]

    def findings_of(self, run: Run) -> list[PastFinding]:
        """Findings of one run, with severity and grade as they were then."""
        about = {"node": self._node(run.host), "at": run.as_of, "run": run.id}
        found = [finding_of(r) for r in self._query(SQL["findings_at"], about)]
        return [f for f in found if not run.late or f.how == "alone"]

    def first_seen(self, host: str, rule: str, subject: Subject) -> int | None:
        """When a rule held for a subject for the first time, as far back as the history goes (ns UTC)."""
        about = {"node": self._node(host), "rule": rule, "subject": subject_text(subject)}
        found = self._query(SQL["first_seen"], about)[0][0]
        return None if found is None else int(found)

    def episodes(self, host: str, rule: str, subject: Subject) -> list[PastFinding]:
        """Every stretch of a finding."""
        about = {"node": self._node(host), "rule": rule, "subject": subject_text(subject)}
        return [finding_of(r) for r in self._query(SQL["episodes"], about)]

    def findings_since(self, host: str, since: int = 0) -> list[PastFinding]:
        """Every stretch of every finding that some check since then saw, oldest first."""
        return [finding_of(r) for r in self._query(SQL["past_findings"], {"node": self._node(host), "since": since})]

    def looks(self, host: str, since: int = 0) -> list[Looks]:
        """The checks since then, together where the same probes answered alike."""
        rows = self._query(SQL["looks"], {"node": self._node(host), "since": since})
        return [Looks(json.loads(r[0]), int(r[1]), int(r[2]), int(r[3])) for r in rows]

    def begins(self, host: str) -> int | None:
        """The oldest time (ns UTC) that anything is still known of a node from; None when nothing is."""
        about = {"node": self._node(host)}
        found = [self._query(SQL[name], about) for name in ("first_run", "first_event", "first_finding")]
        return min((int(rows[0][0]) for rows in found if rows), default=None)

    def boots(self, host: str) -> list[int]:
        """When each boot of a node was checked first (ns UTC), oldest first."""
        return [int(r[1]) for r in self._query(SQL["boots"], {"node": self._node(host)})]

    def events_since(self, host: str, since: int) -> list[PastEvent]:
        """Events that checks since then saw for the first time."""
        return [_event(r) for r in self._query(SQL["events"], {"node": self._node(host), "since": since})]

    # --- samples --------------------------------------------------------------------------

    def facts(self, host: str) -> list[tuple[Key, str]]:
        """Everything there are samples of, and the call that told it last."""
        return [(Key(*r[:3]), str(r[3])) for r in self._query(SQL["facts"], {"node": self._node(host)})]

    def latest(self, host: str, until: int = FOREVER) -> dict[Key, Last]:
        """What the node's newest run up to a time (ns UTC) knew, by key."""
        rows = self._query(SQL["latest"], {"node": self._node(host), "until": until})
        return {Key(*r[1:4]): Last(Cell(*r[5:9]), int(r[9])) for r in rows}

    def lines(
        self, host: str, fact: str, subject: str = "", since: int = 0, until: int = FOREVER, *, about: bool = False
    ) -> list[Line]:
        """Samples of a fact between two times (ns UTC, both included), one line for each subject and probe. With `about` one of
        each look: of a gauge also where it was only about the value."""
        node = self._node(host)
        moments = self._moments(node, since, until)
        return [
            Line(k, c, tuple(s))
            for name in self.names(fact)
            for k, c, s in self._expanded(node, name, subject, since, until, moments, about=about)
        ]

    def names(self, fact: str) -> list[str]:
        """A fact's name, and those that it had before."""
        return [fact, *self.vocabulary.former(fact)]

    def series(self, fact: str, subject: Subject, since: int = 0, host: str = "") -> Series:
        """The numbers of a fact about a subject, of the probe that gave most of them."""
        lines = self.lines(host or subject.host, fact, subject_text(subject), since)
        return max((line.series for line in lines), key=lambda s: len(s.times), default=Series((), ()))

    def _moments(self, node: int, since: int, until: int) -> _Moments:
        rows = self._query(SQL["run_times"], {"node": node, "since": since, "until": until})
        parsed = {text: frozenset(json.loads(text)) for text in {str(r[3]) for r in rows}}
        return _Moments([_Moment(int(i), int(at), str(boot), parsed[str(sources)]) for i, at, boot, sources in rows])

    def _expanded(
        self,
        node: int,
        fact: str,
        subject: str,
        since: int,
        until: int,
        moments: _Moments,
        each: bool = True,
        about: bool = False,
    ) -> Iterator[tuple[Key, str, list[Sample]]]:
        whose = {"node": node, "fact": fact, "subject": subject}
        rows: dict[int, list[tuple[Any, ...]]] = {}
        for row in self._query(SQL["rows"], {**whose, "since": since, "until": until}):
            rows.setdefault(int(row[0]), []).append(row)
        for track, name, where, probe, call in self._query(SQL["tracks"], whose):
            found = moments.expand(rows.get(int(track), []), probe, since, each, about)
            if found:
                yield Key(name, where, probe), str(call), found

    def history_observations(
        self, host: str, as_of: int, facts: Mapping[str, Wanted], boot_id: str = "", uuids: Mapping[Subject, str] = {}
    ) -> list[Observation]:
        """Earlier samples of the facts that are looked at over time, as far back as each is looked at.

        Left out is what came before a GPU was replaced by another one in its slot (`uuids`: those of now), and,
        of counters that begin anew with each boot, what another boot than `boot_id` counted.
        """
        node = self._node(host)
        if not node or not facts:
            return []
        moments = self._moments(node, as_of - max(w.window for w in facts.values()), as_of - 1)
        replaced = self._replaced(node, as_of, {subject_text(s): uuid for s, uuid in uuids.items()})
        out: list[Observation] = []
        for fact, wanted in sorted(facts.items()):
            since = as_of - wanted.window
            for name in self.names(fact):
                for key, _, found in self._expanded(node, name, "", since, as_of - 1, moments, wanted.each):
                    fewer = {s.at // wanted.every: s for s in found}.values() if wanted.every else found
                    out += self._observations(fact, key, tuple(fewer), boot_id, replaced)
        return out

    def _observations(
        self, fact: str, key: Key, found: Sequence[Sample], boot_id: str, replaced: Mapping[str, int]
    ) -> Iterator[Observation]:
        spec = self.vocabulary.get(fact)
        subject = subject_of(key.subject)
        begun = max((replaced.get(subject_text(s), 0) for s in subject.ancestors()), default=0)
        boot = boot_id if spec and spec.per_boot else ""
        kept = [
            s
            for s in found
            if s.cell.status == Status.OK and s.at >= begun and not (boot and s.boot_id and s.boot_id != boot)
        ]
        for s in kept:
            call = f"{HISTORY} {len(kept)} sample{'s' if len(kept) > 1 else ''} since {_iso(kept[0].at)}"
            value, source = decode(s.cell, spec), Source(key.probe, call)
            yield Observation(fact, subject, value, source=source, at=s.at, clock=Clock.REALTIME, excerpt=s.excerpt)

    def _replaced(self, node: int, until: int, now: Mapping[str, str]) -> dict[str, int]:
        """Slots whose GPU changed, and when the one that is there now was seen first."""
        about = {"node": node, "fact": "gpu.uuid", "subject": ""}
        rows: dict[int, list[tuple[Any, ...]]] = {}
        for row in self._query(SQL["rows"], {**about, "since": 0, "until": until}):
            if row[3] == Status.OK:
                rows.setdefault(int(row[0]), []).append(row)
        out: dict[str, int] = {}
        for track, _, subject, _, _ in self._query(SQL["tracks"], about):
            known = rows.get(int(track), [])
            changes = [int(b[1]) for a, b in pairwise(known) if a[5] != b[5]]
            if known and now.get(subject, known[-1][5]) != known[-1][5]:
                changes = [until]
            if changes:
                out[str(subject)] = max(out.get(str(subject), 0), changes[-1])
        return out


def _iso(ns: int) -> str:
    from assistant.render.times import iso

    return iso(ns - ns % 10**9)


def _run(r: Sequence[Any]) -> Run:
    state, usable = r[8:10]
    text, probes = Text(r[10], r[11]), json.loads(r[13])
    return Run(int(r[0]), r[1], int(r[2]), r[3], bool(r[4]), r[5], r[6], r[7], state, usable, text, int(r[12]), probes)


def finding_of(r: Sequence[Any]) -> PastFinding:
    """A row that a statement about findings gave."""
    stands = None if r[20] is None else tuple((str(fact), str(where)) for fact, where in json.loads(r[20]))
    return PastFinding(
        key=r[1], rule=r[2], xid=r[3], subject=subject_of(r[4]), title=Text(r[5], r[6]), severity=r[7], grade=r[8],
        role=r[9], bucket=r[10], explained_by=tuple(json.loads(r[11])), count=int(r[12]), first_event=r[13],
        last_event=r[14], clock=Clock(r[15]), opened_at=int(r[16]), last_at=int(r[17]), last_run=int(r[18]), how=r[19],
        stands_on=stands,
    )  # fmt: skip


def _event(r: Sequence[Any]) -> PastEvent:
    return PastEvent(
        kind=r[0], code=r[1], subject=subject_of(r[2]), at=r[3], clock=Clock(r[4]), boot_id=r[5], source=r[6], line=r[7],
        fields=json.loads(r[8]), first_seen=int(r[9]), last_seen=int(r[10]), count=int(r[11]),
    )  # fmt: skip


# --- opening ------------------------------------------------------------------------------


def is_newer(version: str) -> bool:
    """Whether a revision is one that only a later gpudiag knows."""
    return version not in REVISIONS and version > HEAD


NEWER = Text("a newer gpudiag wrote it; nothing was touched", "它由更新版本的 gpudiag 写入；未做任何改动")
FOREIGN = Text("it is no gpudiag history; nothing was touched", "它不是 gpudiag 的历史数据；未做任何改动")


def open_reader(location: Location, words: Vocabulary | None = None, patience: float = 60.0) -> Reader | None:
    """A reader; None where nothing was written yet. StoreError when there is something that cannot be read.

    Tables of an older gpudiag are brought up to date first. All that is asked of a server must be answered
    within `patience`, in seconds.
    """
    reader = _open(location, words, patience)
    if reader is not None and reader.revision in REVISIONS and reader.revision != HEAD:
        reader.__exit__()
        from assistant.store.write import upgrade

        try:
            upgrade(location)
        except StoreError as error:
            raise StoreError(not_read(location.shown, error.said)) from error
        reader = _open(location, words, patience)
    if reader is None or reader.revision == HEAD:
        return reader
    reader.__exit__()
    if reader.revision == "":
        return None
    raise StoreError(not_read(location.shown, refusal(reader.revision)))


def refusal(revision: str | None) -> Text:
    """Why tables of this revision are left alone."""
    return NEWER if revision is not None and is_newer(revision) else FOREIGN


def refuse(found: str | None) -> None:
    """StoreError unless tables of this revision (empty: none) can be brought up to date."""
    if found != "" and found not in REVISIONS:
        raise StoreError(refusal(found))


def _open(location: Location, words: Vocabulary | None, patience: float) -> Reader | None:
    if location.path is None:
        from assistant.store.server import open_server

        return open_server(location, words, patience)
    try:
        connection = connected(location.path)
        if connection is None:
            return None
        try:
            revision = revision_of(connection)
        except sqlite3.Error:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise StoreError(not_read(location.shown, reason(error))) from error

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise StoreError(not_read(location.shown, reason(error))) from error

    return Reader(query, connection.close, words, revision)


def connected(path: Path) -> sqlite3.Connection | None:
    """A connection that only reads; None where there is no file."""
    if not path.exists():
        return None
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=TIMEOUT)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        # A write-ahead log needs a file beside it, which a folder that cannot be written does not allow. Where no
        # log is left over, the file alone is the whole truth.
        connection.close()
        log = path.with_name(path.name + "-wal")
        if not isinstance(error, sqlite3.OperationalError) or (log.exists() and log.stat().st_size):
            raise
        return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    return connection


def file_revision(path: Path) -> str | None:
    """`revision_of` a file; empty where there is none."""
    connection = connected(path)
    if connection is None:
        return ""
    try:
        return revision_of(connection)
    finally:
        connection.close()


def revision_of(connection: sqlite3.Connection) -> str | None:
    """The revision of a file's tables; empty where there are none; None where they are somebody else's."""
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if VERSION_TABLE not in names:
        return None if names else ""
    row = connection.execute(SQL["version"]).fetchone()
    return str(row[0]) if row else ""


def over_time(conditions: Iterable[Any]) -> dict[str, Wanted]:
    """The facts that conditions (of rules) look at over time, and how far back the longest look goes."""
    from rules.condition import FactLeaf, Take, leaves

    out: dict[str, Wanted] = {}
    for condition in conditions:
        for leaf in leaves(condition):
            if isinstance(leaf, FactLeaf) and leaf.take is not Take.LAST and leaf.within is not None:
                known = out.get(leaf.fact, Wanted(0))
                out[leaf.fact] = Wanted(max(known.window, leaf.within), known.each or leaf.take is Take.PERCENTILE)
    return out


def beside(earlier: Iterable[Observation], current: Iterable[Observation]) -> list[Observation]:
    """Of `earlier` what continues a reading of now: the same probe answered, later.

    Without that an old value would stand for the present one: a probe that fails now must stay a failure.
    """
    now: dict[tuple[str, Subject, str], int] = {}
    for o in current:
        if o.status is Status.OK and o.at is not None and o.clock is Clock.REALTIME:
            place = (o.fact, o.subject, o.source.probe)
            now[place] = max(now.get(place, 0), o.at)
    return [o for o in earlier if (o.at or 0) < now.get((o.fact, o.subject, o.source.probe), 0)]
