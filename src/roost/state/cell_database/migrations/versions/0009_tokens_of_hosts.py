"""Tokens of hosts, and the hosts whose agents wait for an operator."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAME = sa.String(length=255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "host_tokens",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("issued_at", sa.Double(), nullable=False),
        sa.Column("is_used", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_tokens_by_host", "host_tokens", ["host"], if_not_exists=True)
    op.create_table(
        "held_hosts",
        sa.Column("host", NAME, nullable=False),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
