"""The fences of agents, and the hosts that are silent, with the proof that they are dead.

Conductors of before do not know proofs that no operator gave, so no host is evacuated by itself while one of
them runs (`roost.model.service_version.FENCES`).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
works_from = "0010"

TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "host_fences",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("stop_seconds", sa.Double(), nullable=True),
        sa.Column("guarded", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "silent_hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=True),
        sa.Column("words", TEXT, nullable=False),
        sa.Column("conductor", sa.String(length=255), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
