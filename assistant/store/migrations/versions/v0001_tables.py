"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _id() -> sa.Column[int]:
    return sa.Column("id", ID, primary_key=True, autoincrement=True)


def _node() -> sa.Column[int]:
    return sa.Column("node_id", sa.Integer, sa.ForeignKey("node.id"), nullable=False)


def _time(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def upgrade() -> None:
    """Create them."""
    op.create_table("node", _id(), sa.Column("host", sa.Text, nullable=False, unique=True))
    op.create_table(
        "run", _id(), _node(), _time("as_of"), *_words("origin"), sa.Column("late", sa.Boolean, nullable=False),
        *_words("boot_id", "version", "ruleset", "state", "usable", "text_en", "text_zh"),
        sa.Column("exit", sa.Integer, nullable=False), *_words("probes", "sources"),
    )  # fmt: skip
    op.create_index("run_by_time", "run", ["node_id", "as_of"])
    op.create_table(
        "track", _id(), _node(), *_words("fact", "subject", "probe", "call"),
        sa.UniqueConstraint("node_id", "fact", "subject", "probe", name="track_key"),
    )  # fmt: skip
    op.create_table(
        "observation", sa.Column("track_id", ID, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False), _time("run_id"), *_words("status"),
        sa.Column("num", sa.Float), sa.Column("text", sa.Text), sa.Column("json", sa.Text),
        _time("holds_from", nullable=True), sa.Column("excerpt", sa.Text), sa.Column("detail", sa.Text),
        sqlite_with_rowid=False,
    )  # fmt: skip
    op.create_table(
        "event", _id(), _node(), *_words("identity", "kind"), _time("code", nullable=True), *_words("subject"),
        _time("at", nullable=True), *_words("clock", "boot_id", "source", "line", "fields"), _time("first_seen"),
        _time("last_seen"), sa.Column("count", sa.Integer, nullable=False),
        sa.UniqueConstraint("node_id", "identity", name="event_identity"),
    )  # fmt: skip
    op.create_index("event_by_time", "event", ["node_id", "first_seen"])
    op.create_table(
        "finding", _id(), _node(), *_words("key", "rule"), sa.Column("xid", sa.Integer),
        *_words("subject", "title_en", "title_zh", "severity", "grade", "role", "bucket", "explained_by"),
        sa.Column("count", sa.Integer, nullable=False), _time("first_event", nullable=True),
        _time("last_event", nullable=True), *_words("clock"), _time("opened_at"), _time("first_run"),
        _time("first_at"), _time("last_run"), _time("last_at"), *_words("how"),
    )  # fmt: skip
    op.create_index("finding_open", "finding", ["node_id", "how"])


def downgrade() -> None:
    """Drop them."""
    for name in ("finding", "event", "observation", "track", "run", "node"):
        op.drop_table(name)
