"""Consumers get a server group, which is empty for all present ones."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

MEMBERS = sa.text("server_group IS NOT NULL")


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    inspector = sa.inspect(op.get_bind())
    if "server_group" not in {column["name"] for column in inspector.get_columns("consumers")}:
        op.add_column("consumers", sa.Column("server_group", sa.String(length=255)))
    if "consumers_by_group" not in {index["name"] for index in inspector.get_indexes("consumers")}:
        op.create_index(
            "consumers_by_group",
            "consumers",
            ["server_group"],
            postgresql_where=MEMBERS,
            sqlite_where=MEMBERS,
        )
