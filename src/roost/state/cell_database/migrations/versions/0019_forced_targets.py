"""Moves to a host that no filter evaluates. A conductor of before has the filters judge it."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("moves")}
    if "forced" not in columns:
        op.add_column("moves", sa.Column("forced", sa.Boolean(), nullable=True))
