"""Runs, the instances they were for, and the attempts made."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0001"
down_revision = None

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", NAME, nullable=False, unique=True),
        sa.Column("request_id", NAME, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("user_id", NAME, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("refusal", BIG_TEXT),
        sa.Column("steps", BIG_TEXT, nullable=False),
        sa.Column("spec", BIG_TEXT, nullable=False),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("runs_by_start", "runs", ["started_at"], if_not_exists=True)
    op.create_index("runs_by_request", "runs", ["request_id"], if_not_exists=True)
    op.create_table(
        "run_instances",
        sa.Column("run", NAME, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("instance", NAME, nullable=False),
        sqlite_with_rowid=False,
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("run_instances_by_instance", "run_instances", ["instance"], if_not_exists=True)
    op.create_table(
        "attempts",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("run", NAME, nullable=False),
        sa.Column("request_id", NAME, nullable=False),
        sa.Column("instance", NAME, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("cell", NAME, nullable=False),
        sa.Column("weight", sa.Double, nullable=False),
        sa.Column("result", sa.String(16), nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.CheckConstraint("result IN ('claimed', 'refused', 'failed')", name="known_result"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("attempts_by_run", "attempts", ["run"], if_not_exists=True)
    op.create_index("attempts_by_instance", "attempts", ["instance"], if_not_exists=True)
    op.create_index("attempts_by_time", "attempts", ["at"], if_not_exists=True)
