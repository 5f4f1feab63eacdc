"""The tables of the history. Times are ns since 1970, UTC; what a column means stands beside it.

The read side (`assistant.store.read`) says the same in plain SQL, and a test holds the two together; a change
here needs a revision in ``migrations/versions``, and a test holds those together too.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

_ID = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER is SQLite's row id


def _id() -> Column[int]:
    return Column(_ID, primary_key=True, autoincrement=True)


def _time(nullable: bool = False) -> Column[int]:
    return Column(BigInteger, nullable=nullable)


def _words(nullable: bool = False) -> Column[str]:
    return Column(Text, nullable=nullable)


class Node(SQLModel, table=True):
    """A machine."""

    id: int | None = Field(default=None, sa_column=_id())
    host: str = Field(sa_column=Column(Text, nullable=False, unique=True))


class Run(SQLModel, table=True):
    """One check."""

    __table_args__ = (Index("run_by_time", "node_id", "as_of"),)
    id: int | None = Field(default=None, sa_column=_id())
    node_id: int = Field(foreign_key="node.id")
    as_of: int = Field(sa_column=_time())
    origin: str = Field(sa_column=_words())  # live, bundle, watch
    late: bool  # older than the newest run when it was written: its rows stand by themselves
    boot_id: str = Field(sa_column=_words())  # empty when not known
    version: str = Field(sa_column=_words())  # of gpudiag
    ruleset: str = Field(sa_column=_words())
    state: str = Field(sa_column=_words())
    usable: str = Field(sa_column=_words())
    text_en: str = Field(sa_column=_words())  # the verdict's sentence
    text_zh: str = Field(sa_column=_words())
    exit: int
    probes: str = Field(sa_column=_words())  # JSON {probe: [status, detail]}, as the runner saw them
    sources: str = Field(sa_column=_words())  # JSON list: the probes that samples came from


class Track(SQLModel, table=True):
    """What samples in one line have in common."""

    __table_args__ = (UniqueConstraint("node_id", "fact", "subject", "probe", name="track_key"),)
    id: int | None = Field(default=None, sa_column=_id())
    node_id: int = Field(foreign_key="node.id")
    fact: str = Field(sa_column=_words())
    subject: str = Field(sa_column=_words())  # node:n1/gpu:0000:3b:00.0
    probe: str = Field(sa_column=_words())
    call: str = Field(sa_column=_words())  # the file, command or call that told it last when a row was written


class Sample(SQLModel, table=True):
    """One observation that was worth a row (`assistant.store.codec` says which are)."""

    __tablename__ = "observation"
    __table_args__ = {"sqlite_with_rowid": False}
    track_id: int = Field(sa_column=Column(_ID, primary_key=True, autoincrement=False))
    at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    run_id: int = Field(sa_column=_time())
    status: str = Field(sa_column=_words())
    num: float | None = None  # numbers; 0 and 1 for no and yes
    text: str | None = Field(default=None, sa_column=_words(nullable=True))  # words
    json_: str | None = Field(
        default=None, sa_column=Column("json", Text, nullable=True)
    )  # sets, numbers no double holds
    holds_from: int | None = Field(default=None, sa_column=_time(nullable=True))
    excerpt: str | None = Field(default=None, sa_column=_words(nullable=True))
    detail: str | None = Field(default=None, sa_column=_words(nullable=True))


class EventRow(SQLModel, table=True):
    """A line of a log that means something, once however often it is read."""

    __tablename__ = "event"
    __table_args__ = (
        UniqueConstraint("node_id", "identity", name="event_identity"),
        Index("event_by_time", "node_id", "first_seen"),
    )
    id: int | None = Field(default=None, sa_column=_id())
    node_id: int = Field(foreign_key="node.id")
    identity: str = Field(sa_column=_words())
    kind: str = Field(sa_column=_words())  # xid, sxid, aer, ...
    code: int | None = Field(default=None, sa_column=_time(nullable=True))
    subject: str = Field(sa_column=_words())
    at: int | None = Field(default=None, sa_column=_time(nullable=True))
    clock: str = Field(sa_column=_words())
    boot_id: str = Field(sa_column=_words())
    source: str = Field(sa_column=_words())
    line: str = Field(sa_column=_words())  # raw
    fields: str = Field(sa_column=_words())  # JSON, decoded
    first_seen: int = Field(sa_column=_time())  # of the check that read it first
    last_seen: int = Field(sa_column=_time())
    count: int  # of the same line with the same time, in the check that saw most of them


class FindingRow(SQLModel, table=True):
    """A stretch of runs in which a finding stayed as it is; `opened_at` is where the whole of it began.

    `how` says what the stretch ended with: empty (it goes on), changed (another row goes on), unseen (its
    sources were not read, or not as far back: nobody knows), cleared (they were, and it was not there).
    """

    __tablename__ = "finding"
    __table_args__ = (
        Index("finding_open", "node_id", "how"),
        Index("finding_by_rule", "rule", "subject", "opened_at"),
    )
    id: int | None = Field(default=None, sa_column=_id())
    node_id: int = Field(foreign_key="node.id")
    key: str = Field(sa_column=_words())  # the finding's id in the diagnosis
    rule: str = Field(sa_column=_words())
    xid: int | None = None
    subject: str = Field(sa_column=_words())
    title_en: str = Field(sa_column=_words())
    title_zh: str = Field(sa_column=_words())
    severity: str = Field(sa_column=_words())
    grade: str = Field(sa_column=_words())
    role: str = Field(sa_column=_words())
    bucket: str = Field(sa_column=_words())
    explained_by: str = Field(sa_column=_words())  # JSON list of keys
    count: int  # of its events, at last_at
    first_event: int | None = Field(default=None, sa_column=_time(nullable=True))
    last_event: int | None = Field(default=None, sa_column=_time(nullable=True))
    clock: str = Field(sa_column=_words())  # of the two above
    opened_at: int = Field(sa_column=_time())
    first_run: int = Field(sa_column=_time())
    first_at: int = Field(sa_column=_time())
    last_run: int = Field(sa_column=_time())
    last_at: int = Field(sa_column=_time())
    how: str = Field(sa_column=_words())
    stands_on: str | None = Field(
        default=None, sa_column=_words(nullable=True)
    )  # JSON [[fact, subject], ...]; since 0002


class ProfileTarget(SQLModel, table=True):
    """What `watch --profile NAME` samples on a node."""

    __tablename__ = "profile_target"
    __table_args__ = (UniqueConstraint("node_id", "name", name="profile_target_key"),)
    id: int | None = Field(default=None, sa_column=_id())
    node_id: int = Field(foreign_key="node.id")
    name: str = Field(sa_column=_words())


class ProfileProcess(SQLModel, table=True):
    """A process that was sampled; a pid alone is used again."""

    __tablename__ = "profile_process"
    __table_args__ = (UniqueConstraint("target_id", "boot_id", "pid", "start", name="profile_process_key"),)
    id: int | None = Field(default=None, sa_column=_id())
    target_id: int = Field(foreign_key="profile_target.id")
    boot_id: str = Field(sa_column=_words())
    pid: int
    start: int = Field(sa_column=_time())  # clock ticks since boot
    title: str = Field(sa_column=_words())  # its command, shortened
    first_at: int = Field(sa_column=_time())
    last_at: int = Field(sa_column=_time())


class ProfileFrame(SQLModel, table=True):
    """A place in the call tree of a target: a function below the one that called it."""

    __tablename__ = "profile_frame"
    __table_args__ = (UniqueConstraint("target_id", "parent", "name", name="profile_frame_key"),)
    id: int | None = Field(default=None, sa_column=_id())
    target_id: int = Field(foreign_key="profile_target.id")
    parent: int = Field(sa_column=_time())  # 0: a thread
    name: str = Field(sa_column=_words())


class ProfileBucket(SQLModel, table=True):
    """The samples of a process in `length` seconds from `at` on."""

    __tablename__ = "profile_bucket"
    __table_args__ = {"sqlite_with_rowid": False}
    process_id: int = Field(sa_column=Column(_ID, primary_key=True, autoincrement=False))
    length: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))  # 10, 60 or 3600
    at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    samples: int
    cells: bytes = Field(sa_column=Column(LargeBinary, nullable=False))  # assistant.store.profiles.packed


class IncidentRow(SQLModel, table=True):
    """An incident; what it is stands in its events."""

    __tablename__ = "incident"
    __table_args__ = (Index("incident_open", "is_open"),)
    id: int | None = Field(default=None, sa_column=_id())
    uid: str = Field(sa_column=Column(Text, nullable=False, unique=True))
    is_open: bool  # what its events come to
    opened_at: int = Field(sa_column=_time())


class IncidentEvent(SQLModel, table=True):
    """Something that happened in an incident, or that somebody did about it; never changed."""

    __tablename__ = "incident_event"
    __table_args__ = {"sqlite_with_rowid": False}
    incident_id: int = Field(sa_column=Column(_ID, primary_key=True, autoincrement=False))
    seq: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))  # from 1 on, without gaps
    at: int = Field(sa_column=_time())  # of the writer's clock
    kind: str = Field(sa_column=_words())  # assistant.incidents.events.Kind
    who: str = Field(sa_column=_words())
    surface: str = Field(sa_column=_words())  # cli, tui, slack
    data: str = Field(sa_column=_words())  # JSON object


class JournalRow(SQLModel, table=True):
    """A record of the journal: what was about to be done, what came of it, who agreed. Triggers refuse to change or remove one."""

    __tablename__ = "journal"
    __table_args__ = (Index("journal_by_subject", "subject", "seq"),)
    seq: int = Field(sa_column=Column(_ID, primary_key=True, autoincrement=False))  # from 1 on, without gaps
    at: int = Field(sa_column=_time())  # of the writer's clock
    kind: str = Field(sa_column=_words())
    subject: str = Field(sa_column=_words())  # opaque: what belongs together
    who: str = Field(sa_column=_words())
    surface: str = Field(sa_column=_words())
    data: str = Field(sa_column=_words())  # JSON object, canonical
    previous: str = Field(sa_column=_words())  # hash of the record before
    hash: str = Field(sa_column=_words())  # assistant.journal.chain.digest


class JournalHead(SQLModel, table=True):
    """The newest record of the journal: one row, with number 1. Whoever appends holds it."""

    __tablename__ = "journal_head"
    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    seq: int = Field(sa_column=_time())  # 0: there is none
    hash: str = Field(sa_column=_words())


TABLES = SQLModel.metadata
