"""The hosts that an operator added, and the providers that their agents made."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "cell_hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("added_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "host_providers",
        sa.Column("provider", sa.String(length=36), nullable=False),
        sa.Column("root", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("provider"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_providers_by_root", "host_providers", ["root"], if_not_exists=True)
