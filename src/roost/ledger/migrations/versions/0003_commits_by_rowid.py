"""On SQLite, the sequence number of a commit is the rowid.

A BIGINT key is a separate index on SQLite. After an ANALYZE of a table with few commits the planner did not
use the index, so that every head check read all commits.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        with op.batch_alter_table("commits", recreate="always") as commits:
            commits.alter_column("seq", type_=sa.Integer())
