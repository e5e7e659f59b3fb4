"""The table of comparisons."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "nova_comparisons",
        sa.Column("run", sa.String(36), nullable=False),
        sa.Column("instance", NAME, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("request_id", NAME),
        sa.Column("project", NAME),
        sa.Column("flavor", NAME),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.Column("cause", NAME, nullable=False),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.Column("roost_host", NAME),
        sa.Column("nova_host", NAME),
        sa.Column("roost_weight", sa.Double),
        sa.Column("nova_weight", sa.Double),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("run", "instance"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("nova_comparisons_by_time", "nova_comparisons", ["at"], if_not_exists=True)
