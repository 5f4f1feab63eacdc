"""Writing a check into the history: one transaction, after the answer is shown.

A run that is acknowledged (`Writer.write` returned) is committed. Nothing here is allowed to harm a diagnosis:
every failure of a file, a disk or a server is a `StoreError` with one line to say.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, Table, delete, func, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from assistant import __version__
from assistant.store import migrate
from assistant.store.codec import Cell, Key, Last, Row, Seen, every, identity, plan, storable, subject_text
from assistant.store.location import Location, StoreError
from assistant.store.read import FOREVER, HEAD, REVISIONS, SQL, TIMEOUT, PastFinding, file_revision, finding_of, refusal
from assistant.store.server import LOCK, create_file, file_engine, server_engine
from assistant.store.tables import TABLES
from assistant.store.trouble import CORRUPT, primary, reason
from knowledge.facts import Vocabulary
from knowledge.language import Text
from knowledge.observation import Event, Observation, Status
from rules.engine import Finding

T = TypeVar("T")
DAY = 86_400 * 10**9
LONGER = 12  # events and findings are kept so many times as long as samples
SLICES = 64  # one run in so many prunes a given track
VACUUM_FROM = 64 << 20  # bytes that must be free, and half of the file, before it is written anew
_T: Mapping[str, Table] = TABLES.tables


class Batch(NamedTuple):
    """A check as it is written."""

    host: str
    as_of: int
    origin: str  # live, bundle, watch
    boot_id: str
    ruleset: str
    state: str
    usable: str
    text: Text
    exit: int
    probes: Mapping[str, Sequence[str]]
    samples: Mapping[Key, Seen]
    events: Sequence[Observation]
    findings: Sequence[Finding]
    watched: frozenset[str] = frozenset()  # facts that rules ask about over time
    gone: Callable[[PastFinding, str], bool] = lambda _past, _boot: False  # past finding, its boot -> surely gone


class Writer:
    """Keeps one history open for writing. `complaints` holds what happened to its file, each said once."""

    def __init__(self, location: Location, days: int, words: Vocabulary, engine: Engine | None = None) -> None:
        self.location, self.days, self.words = location, days, words
        self.complaints: list[Text] = []
        self._engine = engine

    def close(self) -> None:
        """Let go of the file or server."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def write(self, batch: Batch) -> int:
        """The number of the run, committed. StoreError when it could not be kept."""
        number = self._guarded(lambda engine: self._write(engine, batch))
        if number % SLICES == 0:
            self._guarded(self._vacuum)
        return number

    def prune(self) -> dict[str, int]:
        """Take away everything that is too old, of every node, and give the space back. Rows taken, by table."""
        taken = self._guarded(self._prune_all)
        self._guarded(lambda engine: self._vacuum(engine, always=True))
        return taken

    # --- opening --------------------------------------------------------------------------

    def _guarded(self, work: Callable[[Engine], T]) -> T:
        """Run `work`; a damaged file is put aside, once, and a new one begun."""
        try:
            return self._tried(work)
        except (SQLAlchemyError, sqlite3.Error) as error:
            if primary(error) not in CORRUPT or self.location.path is None:
                raise StoreError(reason(error)) from error
            self._put_aside(self.location.path)
        try:
            return self._tried(work)
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise StoreError(reason(error)) from error

    def _tried(self, work: Callable[[Engine], T]) -> T:
        try:
            if self._engine is None:
                self._engine = opened(self.location)
            return work(self._engine)
        except OSError as error:
            raise StoreError(reason(error)) from error

    def _put_aside(self, path: Path) -> None:
        """Rename a damaged file and its journals; never delete. Another process may have done it meanwhile."""
        self.close()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        try:
            with locked(path):
                if not _damaged(path):
                    return
                target = _free(path.with_name(f"{path.name}.corrupt-{stamp}"))
                for end in ("-wal", "-shm", "-journal", ""):
                    part = path.with_name(path.name + end)
                    if part.exists():
                        part.rename(target.with_name(target.name + end))
        except OSError as error:
            raise StoreError(
                Text(
                    f"the file is damaged and cannot be put aside: {error.strerror}",
                    f"文件已损坏且无法移开：{error.strerror}",
                )
            ) from error
        self.complaints.append(
            Text(
                f"the history {path} was damaged; it is kept as {target.name} and a new one was begun",
                f"历史文件 {path} 已损坏；已改名保留为 {target.name}，并新建了一个",
            )
        )

    # --- one run --------------------------------------------------------------------------

    def _write(self, engine: Engine, batch: Batch) -> int:
        with engine.begin() as c:
            node = _node(c, batch.host)
            run = _T["run"]
            last = c.execute(
                select(run.c.id, run.c.as_of, run.c.boot_id)
                .where(run.c.node_id == node, run.c.late.is_(False))
                .order_by(run.c.as_of.desc())
                .limit(1)
            ).first()
            known = (run.c.node_id == node) & (run.c.as_of == batch.as_of)
            known &= (run.c.ruleset == batch.ruleset) & (run.c.origin == batch.origin)
            same = c.execute(select(run.c.id).where(known)).scalar()
            if same is not None:  # the same bundle once more
                return int(same)
            late = last is not None and batch.as_of <= last.as_of
            number = _insert_run(c, node, batch, late)
            tracks = self._samples(c, node, number, batch, None if last is None else int(last.as_of))
            _events(c, node, batch)
            _findings(c, node, number, batch, late, "" if last is None else str(last.boot_id))
            self._prune(
                c, node, batch.as_of, [t for t in tracks if t % SLICES == number % SLICES], number % SLICES == 0
            )
        return number

    def _samples(self, c: Connection, node: int, run: int, batch: Batch, before: int | None) -> list[int]:
        """Write what is worth a row; the numbers of all tracks of the node."""
        about = {"node": node, "until": FOREVER}
        table = _T["track"]
        known = select(table.c.id, table.c.fact, table.c.subject, table.c.probe, table.c.call).where(
            table.c.node_id == node
        )
        tracks = {Key(r[1], r[2], r[3]): (int(r[0]), str(r[4])) for r in c.execute(known)}
        last = {Key(r[1], r[2], r[3]): Last(Cell(*r[5:9]), int(r[9])) for r in c.execute(text(SQL["latest"]), about)}
        rows = plan(last, batch.samples, batch.as_of, before, lambda f: every(self.words.get(f), f in batch.watched))
        new = [r.key for r in rows if r.key not in tracks]
        if new:
            c.execute(insert(table), [{"node_id": node, **k._asdict(), "call": batch.samples[k].call} for k in new])
            tracks = {Key(r[1], r[2], r[3]): (int(r[0]), str(r[4])) for r in c.execute(known)}
        moved = [
            {"track": tracks[r.key][0], "new_call": batch.samples[r.key].call}
            for r in rows
            if r.key in batch.samples and batch.samples[r.key].call != tracks[r.key][1]
        ]
        if moved:
            c.execute(text("UPDATE track SET call = :new_call WHERE id = :track"), moved)
        if rows:
            c.execute(_ignoring(c, _T["observation"]), [_sample(tracks[r.key][0], run, r) for r in rows])
        return [number for number, _ in tracks.values()]

    # --- retention ------------------------------------------------------------------------

    def _prune(self, c: Connection, node: int, now: int, tracks: Sequence[int], rest: bool) -> dict[str, int]:
        """Old samples of some tracks (what was in force at the edge stays), and now and then old rows of the rest."""
        edge, far = now - self.days * DAY, now - self.days * LONGER * DAY
        taken = {"observation": 0, "run": 0, "event": 0, "finding": 0}
        if tracks:
            taken["observation"] = _deleted(c, _PRUNE, [{"track": t, "edge": edge} for t in tracks])
            gone = [{"track": t, "edge": edge, "gone": str(Status.NOT_ASKED)} for t in tracks]
            taken["observation"] += _deleted(c, _PRUNE_GONE, gone)
            _deleted(c, _PRUNE_TRACK, [{"track": t} for t in tracks])
        if rest:
            for name, column, limit in (
                ("run", "as_of", edge),
                ("event", "last_seen", far),
                ("finding", "last_at", far),
            ):
                table = _T[name]
                old = (table.c.node_id == node) & (table.c[column] < limit)
                if name == "finding":
                    old &= table.c.how != ""
                if name == "run":  # the newest one stays: `since_last` is measured from it
                    old &= (
                        table.c.as_of < select(func.max(table.c.as_of)).where(table.c.node_id == node).scalar_subquery()
                    )
                taken[name] = c.execute(delete(table).where(old)).rowcount
        return taken

    def _prune_all(self, engine: Engine) -> dict[str, int]:
        total = {"observation": 0, "run": 0, "event": 0, "finding": 0}
        with engine.begin() as c:
            for node in list(c.execute(select(_T["node"].c.id)).scalars()):
                newest = c.execute(text("SELECT max(as_of) FROM run WHERE node_id = :node"), {"node": node}).scalar()
                tracks = list(c.execute(select(_T["track"].c.id).where(_T["track"].c.node_id == node)).scalars())
                now = max(int(newest or 0), time.time_ns())
                for name, count in self._prune(c, node, now, tracks, True).items():
                    total[name] += count
        return total

    def _vacuum(self, engine: Engine, always: bool = False) -> None:
        """Write a file anew when most of it is empty; the server does that by itself."""
        if engine.dialect.name != "sqlite":
            return
        connection = engine.raw_connection()
        try:
            pages, free, size = (
                int(connection.cursor().execute(f"PRAGMA {n}").fetchone()[0])
                for n in ("page_count", "freelist_count", "page_size")
            )
            if always or (free * 2 > pages and free * size > VACUUM_FROM):
                connection.cursor().execute("VACUUM")
        except sqlite3.OperationalError:
            pass  # somebody reads, or there is no room for a second copy: the next time will do
        finally:
            connection.close()


_PRUNE = (
    "DELETE FROM observation WHERE track_id = :track AND at < coalesce((SELECT max(x.at) FROM observation x "
    "WHERE x.track_id = :track AND x.at <= :edge AND x.holds_from IS NOT NULL), 0)"
)
_PRUNE_GONE = (
    "DELETE FROM observation WHERE track_id = :track AND at < :edge AND (holds_from IS NULL OR status = :gone)"
)
_PRUNE_TRACK = (
    "DELETE FROM track WHERE id = :track AND NOT EXISTS (SELECT 1 FROM observation x WHERE x.track_id = :track)"
)


def _deleted(c: Connection, sql: str, parameters: Sequence[Mapping[str, Any]]) -> int:
    statement = text(sql)
    return sum(c.execute(statement, p).rowcount for p in parameters)


def _node(c: Connection, host: str) -> int:
    """The node's number. A server's row is locked with it: runs of one node are written one after the other."""
    table = _T["node"]
    c.execute(_ignoring(c, table), [{"host": host}])
    found = select(table.c.id).where(table.c.host == host)
    return int(c.execute(found.with_for_update() if c.dialect.name == "postgresql" else found).scalar_one())


def _ignoring(c: Connection, table: Table) -> Any:
    """An insert that leaves rows alone that are there already."""
    dialect = postgresql if c.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


def _insert_run(c: Connection, node: int, batch: Batch, late: bool) -> int:
    values = {
        "node_id": node, "as_of": batch.as_of, "origin": batch.origin, "late": late, "boot_id": batch.boot_id,
        "version": __version__, "ruleset": batch.ruleset, "state": batch.state, "usable": batch.usable,
        "text_en": storable(batch.text.en), "text_zh": storable(batch.text.zh), "exit": batch.exit,
        "probes": json.dumps(dict(batch.probes)), "sources": json.dumps(sorted({k.probe for k in batch.samples})),
    }  # fmt: skip
    done = c.execute(insert(_T["run"]).values(**values))
    key = done.inserted_primary_key
    assert key is not None
    return int(key[0])


def _sample(track: int, run: int, row: Row) -> dict[str, Any]:
    return {
        "track_id": track, "at": row.at, "run_id": run, "status": row.cell.status, "num": row.cell.num,
        "text": row.cell.text, "json": row.cell.json, "holds_from": row.holds_from,
        "excerpt": row.excerpt or None, "detail": row.detail or None,
    }  # fmt: skip


# --- events -------------------------------------------------------------------------------


def _events(c: Connection, node: int, batch: Batch) -> None:
    """Each line once; the same one read again only moves `last_seen`, and that at most once an hour."""
    table = _T["event"]
    seen: dict[str, list[Observation]] = {}
    for o in batch.events:
        seen.setdefault(identity(batch.host, batch.boot_id, o), []).append(o)
    known: dict[str, tuple[int, int, int]] = {}
    names = sorted(seen)
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        found = select(table.c.identity, table.c.id, table.c.count, table.c.last_seen, table.c.first_seen).where(
            table.c.node_id == node, table.c.identity.in_(part)
        )
        known |= {str(r[0]): (int(r[1]), int(r[2]), int(r[3])) for r in c.execute(found)}
    fresh = [_event_row(node, name, group, batch) for name, group in sorted(seen.items()) if name not in known]
    if fresh:
        c.execute(_ignoring(c, table), fresh)
    hour = DAY // 24
    again = [
        {"row": number, "seen_at": batch.as_of, "times": len(seen[name])}
        for name, (number, count, last) in sorted(known.items())
        if batch.as_of - last >= hour or len(seen[name]) > count
    ]
    if again:
        c.execute(text(_SEEN_AGAIN), again)


_SEEN_AGAIN = (
    "UPDATE event SET last_seen = CASE WHEN last_seen < :seen_at THEN :seen_at ELSE last_seen END, "
    "count = CASE WHEN count < :times THEN :times ELSE count END WHERE id = :row"
)


def _event_row(node: int, name: str, group: Sequence[Observation], batch: Batch) -> dict[str, Any]:
    o = group[0]
    assert isinstance(o.value, Event)
    fields = json.dumps(dict(o.value.fields), ensure_ascii=False, default=str)
    return {
        "node_id": node, "identity": name, "kind": o.fact, "code": o.value.code, "subject": subject_text(o.subject),
        "at": o.at, "clock": str(o.clock), "boot_id": batch.boot_id, "source": storable(str(o.source)),
        "line": storable(o.excerpt), "fields": storable(fields), "first_seen": batch.as_of,
        "last_seen": batch.as_of, "count": len(group),
    }  # fmt: skip


# --- findings -----------------------------------------------------------------------------

_SAME = ("severity", "grade", "role", "bucket", "explained_by")


def _findings(c: Connection, node: int, run: int, batch: Batch, late: bool, boot: str) -> None:
    """Go on with the stretches that stay as they are, end the others, begin new ones."""
    table = _T["finding"]
    rows = {f.id: _finding_row(f, node, run, batch.as_of) for f in batch.findings}
    if late:
        if rows:
            c.execute(insert(table), [r | {"how": "alone"} for r in rows.values()])
        return
    going = {r[1]: (int(r[0]), finding_of(r)) for r in c.execute(text(SQL["open_findings"]), {"node": node})}
    ended: dict[str, list[int]] = {"changed": [], "cleared": [], "unseen": []}
    for key, (number, past) in going.items():
        row = rows.get(key)
        if row is None:
            how = "cleared" if batch.gone(past, boot) else "unseen"
            if how != past.how:
                ended[how].append(number)
            continue
        row["opened_at"] = past.opened_at
        if past.how == "" and _unchanged(past, row):
            new = {
                n: row[n] for n in ("count", "first_event", "last_event", "clock", "last_run", "last_at", "stands_on")
            }
            c.execute(update(table).where(table.c.id == number).values(**new))
            del rows[key]
        else:
            ended["changed"].append(number)
    for how, numbers in ended.items():
        if numbers:
            c.execute(update(table).where(table.c.id.in_(numbers)).values(how=how))
    if rows:
        c.execute(insert(table), list(rows.values()))


def _unchanged(past: PastFinding, row: Mapping[str, Any]) -> bool:
    now = (row["severity"], row["grade"], row["role"], row["bucket"], tuple(json.loads(row["explained_by"])))
    return now == (past.severity, past.grade, past.role, past.bucket, past.explained_by)


def _finding_row(f: Finding, node: int, run: int, at: int) -> dict[str, Any]:
    first, last = f.times
    clock = next((str(o.clock) for o in f.events if o.at is not None), "none")
    stands = sorted({(o.fact, subject_text(o.subject)) for o in (*f.events, *f.because)})[:64]
    return {
        "node_id": node, "key": f.id, "rule": f.rule.id, "xid": f.xid, "subject": subject_text(f.subject),
        "title_en": storable(f.title.en), "title_zh": storable(f.title.zh), "severity": str(f.severity),
        "grade": str(f.grade), "role": str(f.role), "bucket": str(f.advice.bucket),
        "explained_by": json.dumps(list(f.explained_by)), "count": len(f.events), "first_event": first,
        "last_event": last, "clock": clock, "opened_at": at, "first_run": run, "first_at": at, "last_run": run,
        "last_at": at, "how": "", "stands_on": json.dumps(stands, ensure_ascii=False),
    }  # fmt: skip


# --- opening ------------------------------------------------------------------------------


def opened(location: Location) -> Engine:
    """An engine for tables of the newest revision. StoreError when they belong to a newer gpudiag or to others."""
    if location.path is None:
        engine = server_engine(location)
        _ready(engine)
        return engine
    create_file(location.path)
    found = file_revision(location.path)  # before anything, the journal mode too, is touched
    engine = file_engine(location.path)
    if found != HEAD:
        _refuse(found)
        with locked(location.path):  # one process at a time sets a file up
            _ready(engine)
    return engine


def upgrade(location: Location) -> None:
    """Bring tables up to date. StoreError when that cannot be done."""
    try:
        opened(location).dispose()
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise StoreError(reason(error)) from error


def _ready(engine: Engine) -> None:
    with engine.connect() as c:
        found = migrate.version(c)
        c.rollback()
    if found == HEAD:
        return
    _refuse(found)
    with engine.begin() as c:
        if c.dialect.name == "postgresql":
            c.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        if migrate.version(c) != HEAD:  # asked again: another process may have been faster
            migrate.upgrade(c)


def _refuse(found: str | None) -> None:
    if found != "" and found not in REVISIONS:
        raise StoreError(refusal(found))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a history file while it is set up or put aside. StoreError when another process keeps it."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreError(Text("another process keeps it locked", "另一个进程一直锁定着它")) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _damaged(path: Path) -> bool:
    """Whether a file cannot be read through; asked under the lock, before it is put aside."""
    if not path.exists():
        return False
    try:
        connection = sqlite3.connect(path, timeout=TIMEOUT)
        try:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok")
        finally:
            connection.close()
    except sqlite3.Error as error:
        return primary(error) in CORRUPT


def _free(path: Path) -> Path:
    """`path`, or the first numbered name beside it that nothing has."""
    tries: Iterable[Path] = (path, *(path.with_name(f"{path.name}-{n}") for n in range(2, 1000)))
    return next(p for p in tries if not p.exists())
