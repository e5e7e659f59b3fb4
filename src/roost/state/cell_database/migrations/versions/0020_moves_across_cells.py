"""Moves to other cells: the halves of a move, and the instance where its cell has no row of it.

Conductors of before do not know the halves, so no move leaves its cell while one of them runs
(`roost.model.service_version.CELL_MOVES`).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
works_from = "0010"

TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("moves")}
    for column in (
        sa.Column("across", sa.Boolean()),
        sa.Column("side", sa.String(length=20)),
        sa.Column("other_cell", sa.String(length=255)),
        sa.Column("carried", TEXT),
    ):
        if column.name not in there:
            op.add_column("moves", column)
