"""The drains of disabled cells, hosts and nodes, and the outages of cells' databases: for events."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    _add("operator_words", sa.Column("drain", sa.String(length=8)))
    _add("operator_words", sa.Column("drain_version", sa.BigInteger()))
    _add("cell_mappings", sa.Column("away_since", sa.Double()))


def _add(table: str, column: sa.Column[object]) -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    if column.name not in {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, column)
