"""The cell of each host that was added."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NAME = sa.String(length=255)


def upgrade() -> None:
    op.create_table(
        "host_mappings",
        sa.Column("host", NAME, nullable=False),
        sa.Column("cell", NAME, nullable=False),
        sa.PrimaryKeyConstraint("host"),
        sa.ForeignKeyConstraint(["cell"], ["cell_mappings.name"]),
        if_not_exists=True,
        **EXACT,
    )
