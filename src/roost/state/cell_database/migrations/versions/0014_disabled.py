"""What operators have disabled beside hosts: nodes, and a whole cell. Earlier programs do not heed it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
works_from = "0010"

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "disabled",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name"),
        if_not_exists=True,
        **EXACT,
    )
