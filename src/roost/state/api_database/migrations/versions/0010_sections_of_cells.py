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
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("cell_mappings", "database_url", existing_type=sa.Text(), nullable=True)
        return
    # SQLite makes the table anew, and must not find rows that refer to it meanwhile.
    op.execute(
        "CREATE TEMPORARY TABLE cells_of_instances AS SELECT instance_uuid, cell FROM instance_mappings"
    )
    op.execute("CREATE UNIQUE INDEX temp.cells_by_instance ON cells_of_instances (instance_uuid)")
    op.execute("UPDATE instance_mappings SET cell = NULL")
    with op.batch_alter_table("cell_mappings") as table:
        table.alter_column("database_url", existing_type=sa.Text(), nullable=True)
    op.execute(
        "UPDATE instance_mappings SET cell = (SELECT kept.cell FROM cells_of_instances AS kept "
        "WHERE kept.instance_uuid = instance_mappings.instance_uuid)"
    )
    op.execute("DROP TABLE cells_of_instances")
