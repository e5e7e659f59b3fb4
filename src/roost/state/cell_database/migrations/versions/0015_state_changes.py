"""The log of the state changes of instances. What earlier programs change stays untold there."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
works_from = "0010"

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
DRAWN = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "state_changes",
        sa.Column("id", DRAWN, autoincrement=True, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("node", sa.String(length=36), nullable=True),
        sa.Column("line", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("state_changes_by_position", "state_changes", ["position"], if_not_exists=True)
    op.create_index("state_changes_by_time", "state_changes", ["at"], if_not_exists=True)
    position = op.create_table(
        "state_changes_position",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    connection = op.get_bind()
    if connection.scalar(sa.select(sa.func.count()).select_from(position)) == 0:
        connection.execute(sa.insert(position), {"id": 1, "position": 0})
