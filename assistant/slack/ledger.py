"""What the bot must still know after it was killed: what it has heard, what its buttons stand for, which turns were under way,
and in which threads it takes part. One SQLite file beside the conversations, its owner's alone.

Everything here is small and quick (below a millisecond on a local disk), so it is called from the event loop itself.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import Any

from assistant.slack.heard import Place
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.whole import private_folder

FILE = "slack.db"
SECOND = 10**9  # ns
HEARD = 3 * 86_400 * SECOND  # what was heard is remembered: Slack's own retries end within an hour
TICKET = 7 * 86_400 * SECOND  # a button works that long, unless its ticket says otherwise
_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS heard (once TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ticket (id TEXT PRIMARY KEY, kind TEXT NOT NULL, team TEXT NOT NULL, channel TEXT NOT NULL,
  thread TEXT NOT NULL, user TEXT NOT NULL, data TEXT NOT NULL, expires INTEGER NOT NULL, spent INTEGER NOT NULL DEFAULT 0)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turn (id TEXT PRIMARY KEY, team TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT NOT NULL,
  user TEXT NOT NULL, status TEXT NOT NULL, data TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS thread (team TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT NOT NULL, last TEXT NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (team, channel, thread)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS about (team TEXT NOT NULL, channel TEXT NOT NULL, thread TEXT NOT NULL, incident INTEGER NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (team, channel, thread)) WITHOUT ROWID;
"""


class LedgerError(GpudiagError):
    """The file cannot be read or written: the bot cannot keep its promises without it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a button stands for. Its id tells nothing; who holds it proves nothing: whoever presses is looked at anew."""

    kind: str
    place: Place
    user: str  # whose answer it stands under
    data: Mapping[str, Any] = field(default_factory=dict)  # JSON
    expires: int = 0  # ns UTC; 0: in `TICKET`


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was heard and is under way: what a restart finds was cut off by it."""

    id: str  # `Heard.once`
    place: Place
    user: str
    status: str = ""  # time stamp of its status message, once there is one
    data: Mapping[str, Any] = field(default_factory=dict)  # JSON: how it can be begun again


class Ledger:
    """The file. Safe to use from several threads."""

    def __init__(self, folder: Path, clock: Callable[[], int] = time.time_ns) -> None:
        """`clock` tells ns UTC. LedgerError."""
        self._clock, self._lock = clock, Lock()
        self.path = folder / FILE
        try:
            private_folder(folder)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._db = self._opened()
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(
                f"{self.path}: {error}", hint="move the file away: the bot begins a new one, old buttons stop working"
            ) from error
        self.prune()

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
        # What was heard must not be run twice after the power failed, so each write is on the disk.
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            db.close()
            raise sqlite3.DatabaseError(f"it was written by another version of gpudiag ({version})")
        db.executescript(_TABLES)
        db.execute(f"PRAGMA user_version={_VERSION}")
        return db

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    # --- what was heard ---------------------------------------------------------------------

    def hear(self, turn: Turn) -> bool:
        """Whether nobody has heard this (`turn.id`) before; from now on somebody has, and it is under way until `end`.

        Both or neither is on the disk: what was heard and not ended is found by `cut_off` after the process was killed.
        """
        row = (turn.id, *turn.place, turn.user, turn.status, json.dumps(dict(turn.data)), self._clock())
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                new = self._db.execute("INSERT OR IGNORE INTO heard VALUES (?, ?)", (turn.id, row[-1])).rowcount == 1
                if new:
                    self._db.execute("INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            return new

    # --- buttons ----------------------------------------------------------------------------

    def issue(self, ticket: Ticket) -> str:
        """An opaque id for it."""
        number = secrets.token_urlsafe(16)
        expires = ticket.expires or self._clock() + TICKET
        row = (number, ticket.kind, *ticket.place, ticket.user, json.dumps(dict(ticket.data)), expires)
        with self._lock:
            self._db.execute("INSERT INTO ticket VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)", row)
        return number

    def ticket(self, number: str) -> Ticket | None:
        """What a button stands for; None when nobody issued it, it was spent, or its time is over."""
        with self._lock:
            row = self._db.execute(
                "SELECT kind, team, channel, thread, user, data, expires FROM ticket WHERE id = ? AND spent = 0",
                (number,),
            ).fetchone()
        if row is None or row[6] <= self._clock():
            return None
        return Ticket(row[0], Place(*row[1:4]), row[4], json.loads(row[5]), row[6])

    def spend(self, number: str) -> Ticket | None:
        """The same, for one caller alone: everybody after them gets None."""
        found = self.ticket(number)
        if found is None:
            return None
        with self._lock:
            done = self._db.execute("UPDATE ticket SET spent = 1 WHERE id = ? AND spent = 0", (number,))
            return found if done.rowcount == 1 else None

    # --- turns ------------------------------------------------------------------------------

    def put(self, turn: Turn) -> None:
        """What is known of a turn that is under way now: its status message, how often it was begun."""
        with self._lock:
            self._db.execute(
                "UPDATE turn SET status = ?, data = ?, thread = ? WHERE id = ?",
                (turn.status, json.dumps(dict(turn.data)), turn.place.thread, turn.id),
            )

    def end(self, number: str) -> None:
        """It is over, whatever came of it."""
        with self._lock:
            self._db.execute("DELETE FROM turn WHERE id = ?", (number,))

    def cut_off(self) -> tuple[Turn, ...]:
        """The turns that nobody ended, the oldest first."""
        with self._lock:
            rows = self._db.execute(
                "SELECT id, team, channel, thread, user, status, data FROM turn ORDER BY at, id"
            ).fetchall()
        return tuple(Turn(r[0], Place(*r[1:4]), r[4], r[5], json.loads(r[6])) for r in rows)

    # --- threads ----------------------------------------------------------------------------

    def join(self, place: Place, user: str) -> None:
        """The bot answers in this thread from now on; `user` spoke there last."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO thread VALUES (?, ?, ?, ?, ?)", (*place, user, self._clock()))

    def last(self, place: Place) -> str:
        """Who spoke last in a thread in which the bot answers; empty where it does not."""
        with self._lock:
            row = self._db.execute(
                "SELECT last FROM thread WHERE team = ? AND channel = ? AND thread = ?", tuple(place)
            ).fetchone()
        return row[0] if row is not None else ""

    def talk_about(self, place: Place, incident: int) -> None:
        """The thread is about this incident from now on."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?, ?, ?)", (*place, incident, self._clock()))

    def about(self, place: Place) -> int:
        """The number of the incident that a thread is about; 0 where it is about none."""
        with self._lock:
            row = self._db.execute(
                "SELECT incident FROM about WHERE team = ? AND channel = ? AND thread = ?", tuple(place)
            ).fetchone()
        return int(row[0]) if row is not None else 0

    # --- order ------------------------------------------------------------------------------

    def prune(self) -> None:
        """Forget what is too old to matter."""
        now = self._clock()
        with self._lock:
            self._db.execute("DELETE FROM heard WHERE at < ?", (now - HEARD,))
            self._db.execute("DELETE FROM ticket WHERE expires < ?", (now,))
            self._db.execute("DELETE FROM thread WHERE at < ?", (now - 4 * TICKET,))
            self._db.execute("DELETE FROM about WHERE at < ?", (now - 52 * TICKET,))


OVER = Text(
    "This button is no longer valid: its time is over, or it was used. Ask again.",
    "该按钮已失效（过期或已使用）。请重新提问。",
)
