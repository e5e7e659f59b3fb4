"""Drains whose instances are moved away, and the time since which each subject is disabled."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("operator_words")}
    for column in (sa.Column("moves_version", sa.BigInteger()), sa.Column("since", sa.Double())):
        if column.name not in there:
            op.add_column("operator_words", column)
