"""Nodes have a revision instead of a time: whether a host is alive is seen by the counter of its session."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    existing = {column["name"] for column in inspector.get_columns("nodes")}
    if "nodes_by_last_seen" in {index["name"] for index in inspector.get_indexes("nodes")}:
        op.drop_index("nodes_by_last_seen", "nodes")
    if "revision" not in existing:
        op.add_column("nodes", sa.Column("revision", sa.BigInteger(), nullable=False, server_default="1"))
    if "last_seen" in existing:
        op.drop_column("nodes", "last_seen")
