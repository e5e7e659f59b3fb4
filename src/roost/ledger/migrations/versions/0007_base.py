"""The ledger's tables at revision 0007, with which its history begins."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT
from roost.storage.identity import create_identity

revision = "0007"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    create_identity(op.get_bind())
    op.create_table(
        "allocations",
        sa.Column("consumer_id", SEQUENCE, nullable=False),
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.CheckConstraint("used > 0", name="something_used"),
        sa.PrimaryKeyConstraint("consumer_id", "provider_id", "resource_class_id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "allocations_by_provider", "allocations", ["provider_id", "resource_class_id"], if_not_exists=True
    )
    op.create_table(
        "commits",
        sa.Column("seq", SEQUENCE, autoincrement=False, nullable=False),
        sa.Column("writer", sa.String(36), nullable=False),
        sa.Column("committed_at", sa.Double, nullable=False),
        sa.Column("changes", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "consumers",
        sa.Column("id", SEQUENCE, autoincrement=False, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("consumer_type", sa.String(255), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("server_group", sa.String(255)),
        sa.Column("assignment", BIG_TEXT),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "consumers_by_group",
        "consumers",
        ["server_group"],
        postgresql_where=sa.text("server_group IS NOT NULL"),
        sqlite_where=sa.text("server_group IS NOT NULL"),
        if_not_exists=True,
    )
    op.create_index("consumers_by_owner", "consumers", ["project_id", "user_id"], if_not_exists=True)
    op.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "resource_providers",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("parent_id", sa.Integer),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.ForeignKeyConstraint(
            ["parent_id"],
            ["resource_providers.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "ix_resource_providers_parent_id", "resource_providers", ["parent_id"], if_not_exists=True
    )
    op.create_table(
        "traits",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "waiting_writers",
        sa.Column("writer", sa.String(36), nullable=False),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("writer"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "inventories",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        sa.Column("min_unit", sa.Integer, nullable=False),
        sa.Column("max_unit", sa.Integer, nullable=False),
        sa.Column("step_size", sa.Integer, nullable=False),
        sa.Column("allocation_ratio", sa.Double, nullable=False),
        sa.CheckConstraint("total > 0 AND reserved >= 0 AND step_size > 0", name="sensible_inventory"),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["resource_providers.id"],
        ),
        sa.ForeignKeyConstraint(
            ["resource_class_id"],
            ["resource_classes.id"],
        ),
        sa.PrimaryKeyConstraint("provider_id", "resource_class_id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "provider_aggregates",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["resource_providers.id"],
        ),
        sa.PrimaryKeyConstraint("provider_id", "aggregate_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "provider_traits",
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("trait_id", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["resource_providers.id"],
        ),
        sa.ForeignKeyConstraint(
            ["trait_id"],
            ["traits.id"],
        ),
        sa.PrimaryKeyConstraint("provider_id", "trait_id"),
        if_not_exists=True,
        **EXACT,
    )
