"""A cell's database is named by a section of the configuration, so that no password is in this database."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    existing = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("cell_mappings")}
    if "section" not in existing:
        op.add_column("cell_mappings", sa.Column("section", sa.String(length=255)))
    with op.batch_alter_table("cell_mappings") as table:
        table.alter_column("database_url", existing_type=sa.Text(), nullable=True)
