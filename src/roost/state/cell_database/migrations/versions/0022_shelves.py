"""Shelved instances, and the consumers of those that were unshelved.

Conductors and agents of before take an instance for its own consumer, so none is shelved while one of them
runs (`roost.model.service_version.SHELVES`).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
works_from = "0010"

TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
UUID = sa.String(length=36)


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    for table, columns in (
        ("instances", (sa.Column("consumer", UUID), sa.Column("shelf", TEXT))),
        ("moves", (sa.Column("consumer", UUID),)),
    ):
        there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}
        for column in columns:
            if column.name not in there:
                op.add_column(table, column)
    op.create_index("instances_by_consumer", "instances", ["consumer"], if_not_exists=True)
