"""Guests that hosts say they have and that the cell does not know. They are told of anew by the hosts."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    op.create_table(
        "unknown_guests",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host", "instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("unknown_guests_by_instance", "unknown_guests", ["instance_uuid"], if_not_exists=True)
