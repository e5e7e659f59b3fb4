"""Stored answers to requests with an Idempotency-Key."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB

from roost.storage import EXACT

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "kept_answers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb"), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("kept_answers_by_time", "kept_answers", ["at"], if_not_exists=True)
