"""The journal: records that are only ever added, and triggers that hold them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
GENESIS = "d1e26d5a9d1728f6a258fdc9e31465eca4bce24f408ef9d6d6144145902f9e6a"  # SHA-256 of gpudiag/journal/1
SAYS = "the journal is only ever added to"
# SQLite deletes for INSERT OR REPLACE without asking the triggers of DELETE: a number that is taken is refused before.
SQLITE = (
    f"CREATE TRIGGER journal_stays BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
    f"CREATE TRIGGER journal_keeps BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
    "CREATE TRIGGER journal_once BEFORE INSERT ON journal WHEN EXISTS (SELECT 1 FROM journal WHERE seq = NEW.seq) "
    f"BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
    "CREATE TRIGGER journal_head_grows BEFORE UPDATE ON journal_head WHEN NEW.seq <= OLD.seq OR NEW.id <> OLD.id "
    f"BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
    f"CREATE TRIGGER journal_head_keeps BEFORE DELETE ON journal_head BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
    f"CREATE TRIGGER journal_head_once BEFORE INSERT ON journal_head BEGIN SELECT RAISE(ABORT, '{SAYS}'); END",
)
SERVER = (
    "CREATE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{SAYS}' USING ERRCODE = 'insufficient_privilege'; END $$",
    "CREATE TRIGGER journal_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON journal "
    "FOR EACH STATEMENT EXECUTE FUNCTION journal_refuses()",
    "CREATE TRIGGER journal_head_grows BEFORE UPDATE ON journal_head FOR EACH ROW "
    "WHEN (NEW.seq <= OLD.seq OR NEW.id <> OLD.id) EXECUTE FUNCTION journal_refuses()",
    "CREATE TRIGGER journal_head_keeps BEFORE INSERT OR DELETE OR TRUNCATE ON journal_head "
    "FOR EACH STATEMENT EXECUTE FUNCTION journal_refuses()",
)


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    """Create the tables, the row of the head, and the triggers."""
    op.create_table(
        "journal", sa.Column("seq", ID, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False), _words("kind"), _words("subject"), _words("who"), _words("surface"),
        _words("data"), _words("previous"), _words("hash"),
    )  # fmt: skip
    op.create_index("journal_by_subject", "journal", ["subject", "seq"])
    op.create_table(
        "journal_head", sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False), _words("hash"),
    )  # fmt: skip
    op.execute(f"INSERT INTO journal_head (id, seq, hash) VALUES (1, 0, '{GENESIS}')")
    for statement in SERVER if op.get_bind().dialect.name == "postgresql" else SQLITE:
        op.execute(statement)


def downgrade() -> None:
    """Take them away; triggers go with their tables."""
    op.drop_table("journal_head")
    op.drop_table("journal")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION journal_refuses()")
