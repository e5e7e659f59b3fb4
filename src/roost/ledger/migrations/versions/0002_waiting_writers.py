"""The table of turn requests."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "waiting_writers",
        sa.Column("writer", sa.String(length=36), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("writer"),
        if_not_exists=True,
        **EXACT,
    )
