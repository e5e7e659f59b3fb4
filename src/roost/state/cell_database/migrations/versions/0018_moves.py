"""Moves of instances, and the move that an instance is locked by."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
works_from = "0010"

TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("instances")}
    if "move" not in columns:
        op.add_column("instances", sa.Column("move", sa.String(length=36), nullable=True))
    op.create_table(
        "moves",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("source_host", sa.String(length=255), nullable=False),
        sa.Column("source_attempt", sa.Integer(), nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("source_spec", TEXT, nullable=False),
        sa.Column("target_host", sa.String(length=255), nullable=True),
        sa.Column("target_attempt", sa.Integer(), nullable=True),
        sa.Column("target", TEXT, nullable=True),
        sa.Column("alternates", TEXT, nullable=False),
        sa.Column("spec", TEXT, nullable=False),
        sa.Column("requester", TEXT, nullable=False),
        sa.Column("run", sa.String(length=36), nullable=False),
        sa.Column("to_host", sa.String(length=255), nullable=True),
        sa.Column("confirms", sa.Boolean(), nullable=False),
        sa.Column("at_source", sa.String(length=20), nullable=False),
        sa.Column("proof", TEXT, nullable=True),
        sa.Column("ends_as", sa.String(length=20), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("owner", sa.String(length=36), nullable=True),
        sa.Column("owner_epoch", sa.BigInteger(), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("history", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    turns = op.create_table(
        "move_turns",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("moves_by_state", "moves", ["state", "source_host", "target_host"], if_not_exists=True)
    op.create_index("moves_by_instance", "moves", ["instance_uuid"], if_not_exists=True)
    op.create_index("moves_by_time", "moves", ["began", "uuid"], if_not_exists=True)
    connection = op.get_bind()
    if connection.scalar(sa.select(sa.func.count()).select_from(turns)) == 0:
        connection.execute(sa.insert(turns), {"id": 1, "turns": 0})
