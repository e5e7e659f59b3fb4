"""SQLite finds commits by their number.

A BIGINT key is an index beside the table there, which its planner passed over once somebody had run ANALYZE
while there were few commits: every look at the head read all of them.
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
