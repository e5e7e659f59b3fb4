"""Drains whose instances move while they run. Conductors of before stop them on the way."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("operator_words")}
    if "live_version" not in columns:
        op.add_column("operator_words", sa.Column("live_version", sa.BigInteger(), nullable=True))
