"""Maintenances of many hosts. Processes of before do not read the tables, and begin none."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
works_from = "0012"

_NAME = sa.String(length=255)
_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "maintenances",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("reserve", sa.Boolean(), nullable=False),
        sa.Column("most_hosts", sa.BigInteger(), nullable=True),
        sa.Column("keeps_going", sa.Boolean(), nullable=False),
        sa.Column("wave", sa.BigInteger(), nullable=False),
        sa.Column("reason", _TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(length=36), nullable=True),
        sa.Column("owner_epoch", sa.BigInteger(), nullable=False),
        sa.Column("by_user", _NAME, nullable=False),
        sa.Column("by_project", _NAME, nullable=False),
        sa.Column("by_request", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("maintenances_by_begin", "maintenances", ["began", "uuid"], if_not_exists=True)
    op.create_index("maintenances_by_state", "maintenances", ["state"], if_not_exists=True)
    op.create_table(
        "maintenance_hosts",
        sa.Column("maintenance", sa.String(length=36), nullable=False),
        sa.Column("host", _NAME, nullable=False),
        sa.Column("cell", _NAME, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("wave", sa.BigInteger(), nullable=False),
        sa.Column("targets", _TEXT, nullable=False),
        sa.Column("word_version", sa.BigInteger(), nullable=True),
        sa.Column("word_before", _TEXT, nullable=True),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("result", _TEXT, nullable=True),
        sa.Column("reason", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("maintenance", "host"),
        if_not_exists=True,
        **EXACT,
    )
    hosts = "maintenance_hosts"
    op.create_index("maintenance_hosts_by_state", hosts, ["maintenance", "state", "host"], if_not_exists=True)
    op.create_index("maintenance_hosts_by_host", hosts, ["host", "maintenance"], if_not_exists=True)
    op.create_index("maintenance_hosts_by_word", hosts, ["word_version"], if_not_exists=True)
