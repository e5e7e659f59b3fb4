"""The tables of the records: runs, the instances of runs, and attempts."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT, Schema, identity_table

metadata = sa.MetaData()

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A key that the database generates, in the order of recording. SQLite generates only INTEGER keys."""

runs = sa.Table(
    "runs",
    metadata,
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
    sa.Column("global_request_id", NAME),
    sa.Column("seed", sa.BigInteger),
    sa.Column("node_version", sa.BigInteger),
    sa.Index("runs_by_start", "started_at"),
    sa.Index("runs_by_request", "request_id"),
    sa.Index("runs_by_global_request", "global_request_id"),
    **EXACT,
)

run_instances = sa.Table(
    "run_instances",
    metadata,
    sa.Column("run", NAME, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("instance", NAME, nullable=False),
    sa.Index("run_instances_by_instance", "instance"),
    sqlite_with_rowid=False,
    **EXACT,
)

# There is no foreign key to the run. A build may fail after its run was trimmed, and a refusal of its attempt
# would refuse the whole batch. Trimming removes such attempts by their time.
attempts = sa.Table(
    "attempts",
    metadata,
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
    sa.Index("attempts_by_run", "run"),
    sa.Index("attempts_by_instance", "instance"),
    sa.Index("attempts_by_time", "at"),
    **EXACT,
)

database_identity = identity_table(metadata)

SCHEMA = Schema("records", Path(__file__).parent / "migrations", metadata)
