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

from assistant import __version__
from assistant.store import profiles
from assistant.store.clock import DAY, agreed, witnesses
from assistant.store.codec import Cell, Key, Last, Row, Seen, every, identity, plan, storable, subject_text
from assistant.store.file import FileStore, Store, Transaction, create_file
from assistant.store.location import Location, StoreError
from assistant.store.read import FOREVER, HEAD, SQL, TIMEOUT, PastFinding, file_revision, finding_of, refuse
from assistant.store.trouble import CORRUPT, primary, reason
from knowledge.facts import Vocabulary
from knowledge.language import Text
from knowledge.observation import Event, Observation, Status
from rules.engine import Finding

T = TypeVar("T")
SETTING_UP = 30.0  # seconds that one waits for another to set a file up: done once, and on a starved machine no sooner
LONGER = 12  # events and findings are kept so many times as long as samples
SLICES = 64  # one run in so many prunes a given track
FLOOR = 32  # newest runs of a node, in the order of writing, that stay whatever the clocks say
REACH = 4 * SLICES  # oldest runs within reach at once: what is kept goes at most four times as fast as it came
BACK = DAY  # a clock that is set back by more is said

# What each table takes; a test holds the columns against `assistant.store.tables`.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "node": ("host",),
    "run": (
        "node_id", "as_of", "origin", "late", "boot_id", "version", "ruleset", "state", "usable", "text_en", "text_zh",
        "exit", "probes", "sources",
    ),
    "track": ("node_id", "fact", "subject", "probe", "call"),
    "observation": (
        "track_id", "at", "run_id", "status", "num", "text", "json", "holds_from", "excerpt", "detail",
    ),
    "event": (
        "node_id", "identity", "kind", "code", "subject", "at", "clock", "boot_id", "source", "line", "fields",
        "first_seen", "last_seen", "count",
    ),
    "finding": (
        "node_id", "key", "rule", "xid", "subject", "title_en", "title_zh", "severity", "grade", "role", "bucket",
        "explained_by", "count", "first_event", "last_event", "clock", "opened_at", "first_run", "first_at", "last_run",
        "last_at", "how", "stands_on",
    ),
}  # fmt: skip
_GOES_ON = ("count", "first_event", "last_event", "clock", "last_run", "last_at", "stands_on")
_INSERT = {t: f"INSERT INTO {t} ({', '.join(c)}) VALUES (:{', :'.join(c)})" for t, c in COLUMNS.items()}
_IGNORING = " ON CONFLICT DO NOTHING"  # rows that are there already are left alone
# Read by write.py alone; with `read.SQL`, every statement on the tables.
STATEMENTS: Mapping[str, str] = {
    **{f"into {table}": sql for table, sql in _INSERT.items()},
    "last": "SELECT id, as_of, boot_id FROM run WHERE node_id = :node AND NOT late ORDER BY as_of DESC LIMIT 1",
    "same": (
        "SELECT id FROM run WHERE node_id = :node AND as_of = :as_of AND ruleset = :ruleset AND origin = :origin LIMIT 1"
    ),
    # the node is locked: no other run of it can come in between
    "newest run": "SELECT max(id) FROM run WHERE node_id = :node",
    "tracks": "SELECT id, fact, subject, probe, call FROM track WHERE node_id = :node",
    "moved": "UPDATE track SET call = :new_call WHERE id = :track",
    "node numbers": "SELECT id FROM node ORDER BY id",
    "newest written": "SELECT id FROM run WHERE node_id = :node ORDER BY id DESC LIMIT :most",
    "oldest written": "SELECT as_of FROM run WHERE node_id = :node ORDER BY id LIMIT :most",
    "seen again": (
        "UPDATE event SET last_seen = CASE WHEN last_seen < :seen_at THEN :seen_at ELSE last_seen END, "
        "count = CASE WHEN count < :times THEN :times ELSE count END WHERE id = :row"
    ),
    "goes on": f"UPDATE finding SET {', '.join(f'{c} = :{c}' for c in _GOES_ON)} WHERE id = :row",
    "ends": "UPDATE finding SET how = :how WHERE id = :row",
    "old": (
        "DELETE FROM observation WHERE track_id = :track AND at < coalesce((SELECT max(x.at) FROM observation x "
        "WHERE x.track_id = :track AND x.at <= :edge AND x.holds_from IS NOT NULL), 0)"
    ),
    "gone": "DELETE FROM observation WHERE track_id = :track AND at < :edge AND (holds_from IS NULL OR status = :gone)",
    "empty": (
        "DELETE FROM track WHERE id = :track AND NOT EXISTS (SELECT 1 FROM observation x WHERE x.track_id = :track)"
    ),
    # the newest one stays: `since_last` is measured from it
    "old run": (
        "DELETE FROM run WHERE node_id = :node AND as_of < :limit AND id < :floor "
        "AND as_of < (SELECT max(x.as_of) FROM run x WHERE x.node_id = :node)"
    ),
    "old event": "DELETE FROM event WHERE node_id = :node AND last_seen < :limit",
    "old finding": "DELETE FROM finding WHERE node_id = :node AND last_at < :limit AND how <> ''",
}  # fmt: skip


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

    def __init__(self, location: Location, days: int, words: Vocabulary, store: Store | None = None) -> None:
        self.location, self.days, self.words = location, days, words
        self.complaints: list[Text] = []
        self._store = store

    def close(self) -> None:
        """Let go of the file or server."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def write(self, batch: Batch) -> int:
        """The number of the run, committed. StoreError when it could not be kept."""
        number = self._guarded(lambda store: self._write(store, batch))
        if number % SLICES == 0:
            self._guarded(lambda store: store.vacuum())
        return number

    def prune(self) -> dict[str, int]:
        """Take away everything that is too old, of every node, and give the space back. Rows taken, by table."""
        taken = self._guarded(self._prune_all)
        self._guarded(lambda store: store.vacuum(always=True))
        return taken

    # --- opening --------------------------------------------------------------------------

    def _guarded(self, work: Callable[[Store], T]) -> T:
        """Run `work`; a damaged file is put aside, once, and a new one begun."""
        try:
            return self._tried(work)
        except sqlite3.Error as error:
            if primary(error) not in CORRUPT or self.location.path is None:
                raise StoreError(reason(error)) from error
            self._put_aside(self.location.path)
        try:
            return self._tried(work)
        except sqlite3.Error as error:
            raise StoreError(reason(error)) from error

    def _tried(self, work: Callable[[Store], T]) -> T:
        try:
            if self._store is None:
                self._store = opened(self.location)
            return work(self._store)
        except ModuleNotFoundError as error:  # an installation without its dependencies still diagnoses
            raise StoreError(_absent(error)) from error
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

    def _write(self, store: Store, batch: Batch) -> int:
        with store.transaction() as c:
            node = _node(c, batch.host)
            last = next(iter(c.rows(STATEMENTS["last"], {"node": node})), None)
            about = {"node": node, "as_of": batch.as_of, "ruleset": batch.ruleset, "origin": batch.origin}
            for (number,) in c.rows(STATEMENTS["same"], about):  # the same bundle once more
                return int(number)
            before = None if last is None else int(last[1])
            late = before is not None and batch.as_of <= before
            seen_at = witnesses(c, node)
            if seen_at and batch.origin != "bundle":
                self._say_skew(batch.as_of - seen_at[0])
            number = _insert_run(c, node, batch, late)
            tracks = self._samples(c, node, number, batch, before)
            _events(c, node, batch)
            _findings(c, node, number, batch, late, "" if last is None else str(last[2]))
            now = agreed([batch.as_of, *seen_at], self.days)
            reached = max(int(row[0]) for row in c.rows(STATEMENTS["oldest written"], {"node": node, "most": REACH}))
            mine = [t for t in tracks if t % SLICES == number % SLICES]
            self._prune(c, node, now, mine, number % SLICES == 0, reached)
        return number

    def _samples(self, c: Transaction, node: int, run: int, batch: Batch, before: int | None) -> list[int]:
        """Write what is worth a row; the numbers of all tracks of the node."""
        tracks = _tracks(c, node)
        known = c.rows(SQL["latest"], {"node": node, "until": FOREVER})
        last = {Key(*r[1:4]): Last(Cell(*r[5:9]), int(r[9])) for r in known}
        rows = plan(last, batch.samples, batch.as_of, before, lambda f: every(self.words.get(f), f in batch.watched))
        new = [r.key for r in rows if r.key not in tracks]
        if new:
            c.many(_INSERT["track"], [{"node_id": node, **k._asdict(), "call": batch.samples[k].call} for k in new])
            tracks = _tracks(c, node)
        moved = [
            {"track": tracks[r.key][0], "new_call": batch.samples[r.key].call}
            for r in rows
            if r.key in batch.samples and batch.samples[r.key].call != tracks[r.key][1]
        ]
        c.many(STATEMENTS["moved"], moved)
        c.many(_INSERT["observation"] + _IGNORING, [_sample(tracks[r.key][0], run, r) for r in rows])
        return [number for number, _ in tracks.values()]

    # --- retention ------------------------------------------------------------------------

    def _say_skew(self, ahead: int) -> None:
        """This check's clock against that of the one before it, ns."""
        days = (abs(ahead) + DAY // 2) // DAY
        if ahead > self.days * DAY:
            self.complaints.append(
                Text(f"the clock is {days} days ahead of the last check: nothing is removed from the history for that",
                     f"时钟比上次检查超前 {days} 天：历史不会因此删除任何内容")
            )  # fmt: skip
        elif ahead < -BACK:
            self.complaints.append(
                Text(f"the clock is {days} days behind the last check: one of the two was wrong; nothing is removed from the history",
                     f"时钟比上次检查落后 {days} 天：其中一个有误；历史不会删除任何内容")
            )  # fmt: skip

    def _prune(
        self, c: Transaction, node: int, now: int, tracks: Sequence[int], rest: bool, reached: int = FOREVER
    ) -> dict[str, int]:
        """Old samples of some tracks (what was in force at the edge stays), and now and then old rows of the rest.

        `reached`: time up to which something may go in this turn, however late it is, ns UTC.
        """
        kept, longer = self.days * DAY, self.days * LONGER * DAY
        edge, far = min(now - kept, reached), min(now, reached + kept) - longer
        taken = {"observation": 0, "run": 0, "event": 0, "finding": 0}
        for track in tracks:
            about = {"track": track, "edge": edge}
            taken["observation"] += c.touched(STATEMENTS["old"], about)
            taken["observation"] += c.touched(STATEMENTS["gone"], about | {"gone": str(Status.NOT_ASKED)})
            c.touched(STATEMENTS["empty"], {"track": track})
        if rest:
            newest = c.rows(STATEMENTS["newest written"], {"node": node, "most": FLOOR})
            floor = int(newest[-1][0]) if newest else 0
            for name, limit in (("run", edge), ("event", far), ("finding", far)):
                taken[name] = c.touched(
                    STATEMENTS[f"old {name}"],
                    {"node": node, "limit": limit, **({"floor": floor} if name == "run" else {})},
                )
        return taken

    def _prune_all(self, store: Store) -> dict[str, int]:
        total = {"observation": 0, "run": 0, "event": 0, "finding": 0}
        with store.transaction() as c:
            # Of all nodes: one that is gone is no reason to doubt this machine's clock.
            now = agreed([time.time_ns(), *witnesses(c)], self.days)
            for (node,) in c.rows(STATEMENTS["node numbers"], {}):
                tracks = [number for number, _ in _tracks(c, node).values()]
                for name, count in self._prune(c, node, now, tracks, True).items():
                    total[name] += count
            profiles.prune(c, now)
        return total


def _tracks(c: Transaction, node: int) -> dict[Key, tuple[int, str]]:
    """Number and call of each track of a node."""
    return {Key(*r[1:4]): (int(r[0]), str(r[4])) for r in c.rows(STATEMENTS["tracks"], {"node": node})}


def _node(c: Transaction, host: str) -> int:
    """The node's number. A server's row is locked with it: runs of one node are written one after the other."""
    c.touched(_INSERT["node"] + _IGNORING, {"host": host})
    ((number,),) = c.rows(SQL["node"] + c.for_update, {"host": host})
    return int(number)


def _insert_run(c: Transaction, node: int, batch: Batch, late: bool) -> int:
    values = {
        "node_id": node, "as_of": batch.as_of, "origin": batch.origin, "late": late, "boot_id": batch.boot_id,
        "version": __version__, "ruleset": batch.ruleset, "state": batch.state, "usable": batch.usable,
        "text_en": storable(batch.text.en), "text_zh": storable(batch.text.zh), "exit": batch.exit,
        "probes": json.dumps(dict(batch.probes)), "sources": json.dumps(sorted({k.probe for k in batch.samples})),
    }  # fmt: skip
    c.touched(_INSERT["run"], values)
    ((number,),) = c.rows(STATEMENTS["newest run"], {"node": node})
    return int(number)


def _sample(track: int, run: int, row: Row) -> dict[str, Any]:
    return {
        "track_id": track, "at": row.at, "run_id": run, "status": row.cell.status, "num": row.cell.num,
        "text": row.cell.text, "json": row.cell.json, "holds_from": row.holds_from,
        "excerpt": row.excerpt or None, "detail": row.detail or None,
    }  # fmt: skip


# --- events -------------------------------------------------------------------------------


def _events(c: Transaction, node: int, batch: Batch) -> None:
    """Each line once; the same one read again only moves `last_seen`, and that at most once an hour."""
    seen: dict[str, list[Observation]] = {}
    for o in batch.events:
        seen.setdefault(identity(batch.host, batch.boot_id, o), []).append(o)
    known: dict[str, tuple[int, int, int]] = {}
    names = sorted(seen)
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        asked = {f"n{i}": name for i, name in enumerate(part)}
        sql = f"SELECT identity, id, count, last_seen FROM event WHERE node_id = :node AND identity IN (:{', :'.join(asked)})"
        known |= {str(r[0]): (int(r[1]), int(r[2]), int(r[3])) for r in c.rows(sql, {"node": node, **asked})}
    fresh = [_event_row(node, name, group, batch) for name, group in sorted(seen.items()) if name not in known]
    c.many(_INSERT["event"] + _IGNORING, fresh)
    hour = DAY // 24
    again = [
        {"row": number, "seen_at": batch.as_of, "times": len(seen[name])}
        for name, (number, count, last) in sorted(known.items())
        if batch.as_of - last >= hour or len(seen[name]) > count
    ]
    c.many(STATEMENTS["seen again"], again)


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


def _findings(c: Transaction, node: int, run: int, batch: Batch, late: bool, boot: str) -> None:
    """Go on with the stretches that stay as they are, end the others, begin new ones."""
    rows = {f.id: _finding_row(f, node, run, batch.as_of) for f in batch.findings}
    if late:
        c.many(_INSERT["finding"], [r | {"how": "alone"} for r in rows.values()])
        return
    going = {r[1]: (int(r[0]), finding_of(r)) for r in c.rows(SQL["open_findings"], {"node": node})}
    ended: list[dict[str, Any]] = []
    for key, (number, past) in going.items():
        row = rows.get(key)
        if row is None:
            how = "cleared" if batch.gone(past, boot) else "unseen"
            if how != past.how:
                ended.append({"row": number, "how": how})
            continue
        row["opened_at"] = past.opened_at
        if past.how == "" and _unchanged(past, row):
            c.touched(STATEMENTS["goes on"], {"row": number, **{n: row[n] for n in _GOES_ON}})
            del rows[key]
        else:
            ended.append({"row": number, "how": "changed"})
    c.many(STATEMENTS["ends"], ended)
    c.many(_INSERT["finding"], list(rows.values()))


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
        "explained_by": json.dumps(list(f.explained_by)), "count": f.count, "first_event": first,
        "last_event": last, "clock": clock, "opened_at": at, "first_run": run, "first_at": at, "last_run": run,
        "last_at": at, "how": "", "stands_on": json.dumps(stands, ensure_ascii=False),
    }  # fmt: skip


# --- opening ------------------------------------------------------------------------------


def opened(location: Location) -> Store:
    """Tables of the newest revision. StoreError when they belong to a newer gpudiag or to others."""
    if location.path is None:
        from assistant.store.server import opened_server

        return opened_server(location)
    create_file(location.path)
    try:
        found = file_revision(location.path)  # before anything, the journal mode too, is touched
    except sqlite3.OperationalError as error:
        if primary(error) != sqlite3.SQLITE_CANTOPEN:
            raise
        found = ""  # another process puts a damaged file aside at this moment
    if found != HEAD:
        refuse(found)
        from assistant.store.server import set_up

        with locked(location.path):  # one process at a time sets a file up, or puts one aside
            create_file(location.path)
            set_up(location.path)
    return FileStore(location.path)


def _absent(error: ModuleNotFoundError) -> Text:
    return Text(f"{error.name} is not installed", f"未安装 {error.name}")


def upgrade(location: Location) -> None:
    """Bring tables up to date. StoreError when that cannot be done."""
    try:
        opened(location).close()
    except ModuleNotFoundError as error:
        raise StoreError(_absent(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(reason(error)) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a history file while it is set up or put aside. StoreError when another process keeps it."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + SETTING_UP
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
