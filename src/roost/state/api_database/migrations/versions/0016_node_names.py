"""The owners of the names of nodes that agents report."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
works_from = "0012"

_NAME = sa.String(255)


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "node_names",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("node", sa.String(36), nullable=False),
        sa.Column("host", _NAME, nullable=False),
        sa.Column("cell", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("node_names_by_host", "node_names", ["host", "cell"], if_not_exists=True)
