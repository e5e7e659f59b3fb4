"""The moves that are on their way from one cell to another.

Processes of before do not read the table. No move leaves its cell while one of them runs
(`roost.model.service_version.CELL_MOVES`).
"""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    op.create_table(
        "crossings",
        sa.Column("move", sa.String(length=36), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.Column("target", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(length=36), nullable=True),
        sa.PrimaryKeyConstraint("move"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("crossings_by_instance", "crossings", ["instance_uuid"], if_not_exists=True)
