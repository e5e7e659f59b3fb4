"""The looks of names of hosts and nodes, by which look-alikes are found when a name is given."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    for table, name in (("host_mappings", "host"), ("node_names", "name")):
        # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
        there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}
        if "look" not in there:
            op.add_column(table, sa.Column("look", sa.String(length=255)))
        op.create_index(f"{table}_by_look", table, ["look"], if_not_exists=True)
        given = sa.table(table, sa.column(name), sa.column("look"))
        look: sa.ColumnElement[str] = sa.func.lower(given.c[name])
        for drawn, alike in (("0", "o"), ("i", "l"), ("1", "l")):
            look = sa.func.replace(look, drawn, alike)
        op.execute(sa.update(given).where(given.c.look.is_(None)).values(look=look))
