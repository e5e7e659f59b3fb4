"""The conductor's first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from roost.storage import EXACT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "build_requests",
        sa.Column("request_id", sa.String(length=255), nullable=False),
        sa.Column(
            "request",
            sa.Text().with_variant(mysql.LONGTEXT(), "mariadb").with_variant(mysql.LONGTEXT(), "mysql"),
            nullable=False,
        ),
        sa.Column("accepted_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("request_id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "cell_mappings",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("database_url", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "instance_mappings",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("cell", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["cell"],
            ["cell_mappings.name"],
        ),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
