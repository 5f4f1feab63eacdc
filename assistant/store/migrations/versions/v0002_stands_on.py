"""What a finding stood on, so that its absence can be told from not having looked; and "first seen" by index.

Older rows hold null: of those nobody can say what was read, so their absence alone never clears them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column("finding", sa.Column("stands_on", sa.Text))
    op.create_index("finding_by_rule", "finding", ["rule", "subject", "opened_at"])


def downgrade() -> None:
    """Take both away."""
    op.drop_index("finding_by_rule", "finding")
    op.drop_column("finding", "stands_on")
