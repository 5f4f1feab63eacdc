"""Stacks that `watch --profile` samples: targets, their processes, call trees, and samples in buckets of time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _id() -> sa.Column[int]:
    return sa.Column("id", ID, primary_key=True, autoincrement=True)


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _of(name: str, table: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, sa.ForeignKey(f"{table}.id"), nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "profile_target", _id(), _of("node_id", "node"), _words("name"),
        sa.UniqueConstraint("node_id", "name", name="profile_target_key"),
    )  # fmt: skip
    op.create_table(
        "profile_process", _id(), _of("target_id", "profile_target"), _words("boot_id"),
        sa.Column("pid", sa.Integer, nullable=False), _whole("start"), _words("title"), _whole("first_at"), _whole("last_at"),
        sa.UniqueConstraint("target_id", "boot_id", "pid", "start", name="profile_process_key"),
    )  # fmt: skip
    op.create_table(
        "profile_frame", _id(), _of("target_id", "profile_target"), _whole("parent"), _words("name"),
        sa.UniqueConstraint("target_id", "parent", "name", name="profile_frame_key"),
    )  # fmt: skip
    op.create_table(
        "profile_bucket", sa.Column("process_id", ID, primary_key=True, autoincrement=False),
        sa.Column("length", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("samples", sa.Integer, nullable=False), sa.Column("cells", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )  # fmt: skip


def downgrade() -> None:
    """Take them away."""
    for table in ("profile_bucket", "profile_frame", "profile_process", "profile_target"):
        op.drop_table(table)
