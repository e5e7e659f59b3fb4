"""The version of the node journal that a run decided on."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS.
    existing = sa.inspect(op.get_bind()).get_columns("runs")
    if all(column["name"] != "node_version" for column in existing):
        op.add_column("runs", sa.Column("node_version", sa.BigInteger()))
