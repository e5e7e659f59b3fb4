"""The seed of a run's random numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS.
    existing = sa.inspect(op.get_bind()).get_columns("runs")
    if all(column["name"] != "seed" for column in existing):
        op.add_column("runs", sa.Column("seed", sa.BigInteger()))
