"""The tables of the records: runs, the instances of runs, settings of schedulers, and attempts."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from roost.storage import EXACT, Schema, identity_table

metadata = sa.MetaData()

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
COMPRESSED = sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
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
    sa.Column("settings", sa.String(64)),
    sa.Column("details", BIG_TEXT),
    sa.Column("reasons", COMPRESSED),
    sa.Index("runs_by_start", "started_at"),
    sa.Index("runs_by_request", "request_id"),
    sa.Index("runs_by_global_request", "global_request_id"),
    sa.Index("runs_by_project", "project_id"),
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

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("settings", BIG_TEXT, nullable=False),
    **EXACT,
)

# There is no foreign key to the run. A build may end before another process has written the run, or after a
# trim has removed it; a refused attempt would then refuse the whole batch. Trimming removes such attempts by
# their time.
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
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("reason", BIG_TEXT),
    sa.Column("node", NAME, nullable=False),
    sa.Column("finished_at", sa.Double),
    sa.Column("version", sa.BigInteger),
    sa.Index("attempts_by_identity", "run", "instance", "ordinal", unique=True),
    sa.Index("attempts_on_host", "host"),
    sa.Index("attempts_by_result", "result"),
    sa.Index("attempts_by_begin", "at"),
    **EXACT,
)

database_identity = identity_table(metadata)

SCHEMA = Schema("records", Path(__file__).parent / "migrations", metadata)
