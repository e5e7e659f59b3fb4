"""Resizes whose target may be the instance's own host. A conductor of before chooses another host."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
works_from = "0010"


def upgrade() -> None:
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("moves")}
    if "in_place" not in columns:
        op.add_column("moves", sa.Column("in_place", sa.Boolean(), nullable=True))
