"""The rounds of the audit, what the last one found, and all repairs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
works_from = "0012"

_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "audit_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("begun", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("asked", sa.Boolean(), nullable=False),
        sa.Column("permitted", sa.BigInteger(), nullable=False),
        sa.Column("report", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "audit_findings",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("finding", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "audit_repairs",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("by", sa.String(length=255), nullable=False),
        sa.Column("finding", _TEXT, nullable=False),
        sa.Column("result", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("number"),
        if_not_exists=True,
        **EXACT,
    )
