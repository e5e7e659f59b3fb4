"""The request spec of an instance, and what is claimed for it: an alternate is checked by them again."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS.
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("instances")}
    for name in ("spec", "selection"):
        if name not in existing:
            op.add_column("instances", sa.Column(name, BIG_TEXT))
