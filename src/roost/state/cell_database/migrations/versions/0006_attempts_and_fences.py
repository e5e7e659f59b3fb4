"""Owners of instances, attempts instead of faults, fences against late inserts, and orders to destroy."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

UUID = sa.String(length=36)
NAME = sa.String(length=255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    connection = op.get_bind()
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    existing = {column["name"] for column in sa.inspect(connection).get_columns("instances")}
    for column in (
        sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("owner", UUID),
        sa.Column("owner_epoch", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("began", sa.Double(), nullable=False, server_default="0"),
    ):
        if column.name not in existing:
            op.add_column("instances", column)
    op.create_table(
        "build_attempts",
        sa.Column("instance_uuid", UUID, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("host", NAME),
        sa.Column("node", UUID),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=False),
        sa.Column("result", sa.String(length=20), nullable=False),
        sa.Column("code", NAME),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "fences",
        sa.Column("instance_uuid", UUID, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("fences_by_time", "fences", ["at"], if_not_exists=True)
    op.create_table(
        "orders",
        sa.Column("host", NAME, nullable=False),
        sa.Column("instance_uuid", UUID, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host", "instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    if sa.inspect(connection).has_table("faults"):
        _carry_over(connection)
        op.drop_table("faults")


def _carry_over(connection: sa.Connection) -> None:
    """Faults become attempts, and each instance gets the fence of its arrival.

    An upgrade that was cut off has carried some over already.
    """
    connection.execute(sa.text("DELETE FROM build_attempts"))
    connection.execute(
        sa.text(
            "INSERT INTO build_attempts (instance_uuid, attempt, host, began, ended, result, reason)"
            " SELECT instance_uuid, attempt, host, at, at, 'failed', reason FROM faults"
        )
    )
    connection.execute(sa.text("DELETE FROM fences"))
    connection.execute(
        sa.text("INSERT INTO fences (instance_uuid, epoch, at) SELECT uuid, 0, changed_at FROM instances")
    )
    connection.execute(sa.text("UPDATE instances SET began = changed_at"))
