"""The id that the user's client gave the request of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS.
    existing = sa.inspect(op.get_bind()).get_columns("runs")
    if all(column["name"] != "global_request_id" for column in existing):
        op.add_column("runs", sa.Column("global_request_id", sa.String(255)))
    op.create_index("runs_by_global_request", "runs", ["global_request_id"], if_not_exists=True)
