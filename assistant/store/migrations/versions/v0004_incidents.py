"""Incidents: a log of events for each, and which of them are open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "incident", sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True), sa.Column("is_open", sa.Boolean, nullable=False),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
    )  # fmt: skip
    op.create_index("incident_open", "incident", ["is_open"])
    op.create_table(
        "incident_event", sa.Column("incident_id", ID, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False), _words("kind"), _words("who"), _words("surface"), _words("data"),
        sqlite_with_rowid=False,
    )  # fmt: skip


def downgrade() -> None:
    """Take them away."""
    for table in ("incident_event", "incident"):
        op.drop_table(table)
