"""Host aggregates."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "host_aggregates",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("metadata", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "host_aggregate_members",
        sa.Column("aggregate_uuid", sa.String(length=36), nullable=False),
        sa.Column("node", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("aggregate_uuid", "node"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_aggregate_members_by_node", "host_aggregate_members", ["node"], if_not_exists=True)
    op.create_table(
        "deleted_host_aggregates",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    version = op.create_table(
        "host_aggregates_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    connection = op.get_bind()
    if connection.scalar(sa.select(sa.func.count()).select_from(version)) == 0:
        connection.execute(sa.insert(version), {"id": 1, "version": 0})
