"""Consumers get an assignment, which is empty for all present ones."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    inspector = sa.inspect(op.get_bind())
    if "assignment" not in {column["name"] for column in inspector.get_columns("consumers")}:
        text = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
        op.add_column("consumers", sa.Column("assignment", text))
