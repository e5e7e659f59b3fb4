"""The tables of ports and accelerators."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT
from roost.storage.identity import create_identity

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "neighbour_resources",
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("parent", sa.String(36)),
        sa.Column("instance", sa.String(255)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("body", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "uuid"),
        if_not_exists=True,
        **EXACT,
    )
    for column in ("parent", "instance"):
        name = f"neighbour_resources_by_{column}"
        op.create_index(name, "neighbour_resources", [column], if_not_exists=True)
    op.create_table(
        "neighbour_units",
        sa.Column("pool", sa.String(36), nullable=False),
        sa.Column("unit", sa.String(255), nullable=False),
        sa.Column("holder", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("pool", "unit"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("neighbour_units_by_holder", "neighbour_units", ["holder"], if_not_exists=True)
    create_identity(op.get_bind())
