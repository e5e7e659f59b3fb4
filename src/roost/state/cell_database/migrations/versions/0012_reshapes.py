"""Trees of providers that are being reshaped, so that a reshape that was cut off is finished."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    op.create_table(
        "reshapes",
        sa.Column("root", sa.String(length=36), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("root"),
        if_not_exists=True,
        **EXACT,
    )
