"""The nodes whose reports a cell does not take, with the reason."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    op.create_table(
        "refused_nodes",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=36), nullable=False),
        sa.Column("reason", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host", "node"),
        if_not_exists=True,
        **EXACT,
    )
