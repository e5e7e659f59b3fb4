"""A cell's first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "faults",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=36), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("last_seen", sa.Double(), nullable=False),
        sa.Column("failed_builds", sa.Integer(), nullable=False),
        sa.Column("metrics", BIG_TEXT, nullable=False),
        sa.Column("aggregates", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("host"),
        sa.UniqueConstraint("node"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("hosts_by_last_seen", "hosts", ["last_seen"], if_not_exists=True)
    op.create_table(
        "instances",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("request_id", sa.String(length=255), nullable=False),
        sa.Column("run", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("flavor", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("node", sa.String(length=36), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("alternates", BIG_TEXT, nullable=False),
        sa.Column("reason", BIG_TEXT, nullable=True),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("instances_by_request", "instances", ["request_id"], if_not_exists=True)
    op.create_index("instances_by_state", "instances", ["state", "host"], if_not_exists=True)
