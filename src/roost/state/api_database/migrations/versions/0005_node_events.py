"""The node journal."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "node_events",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("subject", sa.String(length=300), nullable=False),
        sa.Column("leaves_nothing", sa.Boolean(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("event", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("version"),
        if_not_exists=True,
        **EXACT,
    )
