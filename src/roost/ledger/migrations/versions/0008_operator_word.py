"""The mark of the operator's word that was announced last.

Programs of before work with the table. They do not know the commits that announce a word: these are written
once no conductor is of an earlier service version.
"""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
works_from = "0007"


def upgrade() -> None:
    op.create_table(
        "operator_word",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
