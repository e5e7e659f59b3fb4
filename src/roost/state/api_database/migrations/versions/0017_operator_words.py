"""The words of operators on cells, hosts and nodes. What a cell has flagged before stays there until the next
word on it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "operator_words",
        sa.Column("cell", sa.String(length=255), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=36), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cell", "host", "node"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("operator_words_by_version", "operator_words", ["version"], if_not_exists=True)
