"""Nodes instead of hosts: one compute service may report many nodes."""

import json

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "nodes",
        sa.Column("node", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("nodename", sa.String(length=255), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("last_seen", sa.Double(), nullable=False),
        sa.Column("facts", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("node"),
        sa.UniqueConstraint("host", "nodename", name="nodes_by_name"),
        if_not_exists=True,
        **EXACT,
    )
    connection = op.get_bind()
    # An upgrade that was cut off may have gone on to 0008, which drops the column.
    if "last_seen" in {column["name"] for column in sa.inspect(connection).get_columns("nodes")}:
        op.create_index("nodes_by_last_seen", "nodes", ["last_seen"], if_not_exists=True)
    if not sa.inspect(connection).has_table("hosts"):
        return
    columns = ("node", "host", "enabled", "last_seen", "failed_builds", "metrics", "aggregates")
    hosts = sa.table("hosts", *map(sa.column, columns))
    nodes = sa.table("nodes", *map(sa.column, ("node", "host", "nodename", "enabled", "last_seen", "facts")))
    # An upgrade that was cut off has copied some already: MariaDB commits each statement that makes tables.
    connection.execute(sa.delete(nodes))
    rows = [
        {
            "node": row.node,
            "host": row.host,
            "nodename": row.host,
            "enabled": bool(row.enabled),
            "last_seen": row.last_seen,
            "facts": json.dumps(
                {
                    "failed_builds": row.failed_builds,
                    "metrics": json.loads(row.metrics),
                    "aggregates": json.loads(row.aggregates),
                }
            ),
        }
        for row in connection.execute(sa.select(hosts))
    ]
    if rows:
        connection.execute(sa.insert(nodes), rows)
    op.drop_table("hosts")
