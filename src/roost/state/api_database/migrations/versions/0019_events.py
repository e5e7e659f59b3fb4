"""The log of what happened in the cloud. What happened before stays untold."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("cell", sa.String(length=255), nullable=True),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("instance", sa.String(length=36), nullable=True),
        sa.Column("mark", sa.String(length=64), nullable=True),
        sa.Column("body", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("events_by_time", "events", ["at"], if_not_exists=True)
    op.create_index("events_by_mark", "events", ["mark"], unique=True, if_not_exists=True)
    position = op.create_table(
        "events_position",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    connection = op.get_bind()
    if connection.scalar(sa.select(sa.func.count()).select_from(position)) == 0:
        connection.execute(sa.insert(position), {"id": 1, "position": 0})
