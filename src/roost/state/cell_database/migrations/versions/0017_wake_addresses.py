"""The addresses at which the processes of the cell are told of work."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    op.create_table(
        "wake_addresses",
        sa.Column("lease", sa.String(length=255), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("wake_key", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("lease"),
        if_not_exists=True,
        **EXACT,
    )
