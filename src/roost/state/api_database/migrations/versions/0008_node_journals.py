"""A node journal for each process, in batches. The journal that all shared could not tell what one knew."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB

from roost.storage import EXACT

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "node_journal",
        sa.Column("journal", sa.String(length=36), nullable=False),
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("base", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("journal", "batch"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("node_journal_by_time", "node_journal", ["at"], if_not_exists=True)
    op.drop_table("node_events", if_exists=True)
