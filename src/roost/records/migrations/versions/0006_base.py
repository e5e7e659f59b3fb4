"""The records' tables at revision 0006, with which their history begins."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from roost.storage import EXACT
from roost.storage.identity import create_identity

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
BIG_BYTES = sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    create_identity(op.get_bind())
    op.create_table(
        "attempts",
        sa.Column("number", SEQUENCE, nullable=False),
        sa.Column("run", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("instance", sa.String(255), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("cell", sa.String(255), nullable=False),
        sa.Column("weight", sa.Double, nullable=False),
        sa.Column("result", sa.String(16), nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("version", sa.BigInteger),
        sa.PrimaryKeyConstraint("number"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("attempts_by_begin", "attempts", ["at"], if_not_exists=True)
    op.create_index(
        "attempts_by_identity", "attempts", ["run", "instance", "ordinal"], unique=True, if_not_exists=True
    )
    op.create_index("attempts_by_result", "attempts", ["result"], if_not_exists=True)
    op.create_index("attempts_on_host", "attempts", ["host"], if_not_exists=True)
    op.create_table(
        "runs",
        sa.Column("number", SEQUENCE, nullable=False),
        sa.Column("id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("refusal", BIG_TEXT),
        sa.Column("steps", BIG_TEXT, nullable=False),
        sa.Column("spec", BIG_TEXT, nullable=False),
        sa.Column("global_request_id", sa.String(255)),
        sa.Column("seed", sa.BigInteger),
        sa.Column("node_version", sa.BigInteger),
        sa.Column("settings", sa.String(64)),
        sa.Column("details", BIG_TEXT),
        sa.Column("reasons", BIG_BYTES),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("runs_by_global_request", "runs", ["global_request_id"], if_not_exists=True)
    op.create_index("runs_by_project", "runs", ["project_id"], if_not_exists=True)
    op.create_index("runs_by_request", "runs", ["request_id"], if_not_exists=True)
    op.create_index("runs_by_start", "runs", ["started_at"], if_not_exists=True)
    op.create_table(
        "settings",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("settings", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "run_instances",
        sa.Column("run", sa.String(255), nullable=False),
        sa.Column("position", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("instance", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["run"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("run", "position"),
        sqlite_with_rowid=False,
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("run_instances_by_instance", "run_instances", ["instance"], if_not_exists=True)
