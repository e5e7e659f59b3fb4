"""Names of instances, which people give them."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("instance_mappings")}
    if "name" not in there:
        op.add_column("instance_mappings", sa.Column("name", sa.String(length=255)))
    op.create_index(
        "instance_mappings_by_name", "instance_mappings", ["name", "instance_uuid"], if_not_exists=True
    )
