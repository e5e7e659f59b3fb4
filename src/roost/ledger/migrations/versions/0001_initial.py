"""The ledger's first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from roost.storage import EXACT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "commits",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("writer", sa.String(length=36), nullable=False),
        sa.Column("committed_at", sa.Double(), nullable=False),
        sa.Column(
            "changes",
            sa.Text().with_variant(mysql.LONGTEXT(), "mariadb").with_variant(mysql.LONGTEXT(), "mysql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("seq"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "consumers",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("consumer_type", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("consumers_by_owner", "consumers", ["project_id", "user_id"], if_not_exists=True)
    op.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "resource_providers",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
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
        op.f("ix_resource_providers_parent_id"), "resource_providers", ["parent_id"], if_not_exists=True
    )
    op.create_table(
        "traits",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "allocations",
        sa.Column("consumer_uuid", sa.String(length=36), nullable=False),
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.CheckConstraint("used > 0", name="something_used"),
        sa.ForeignKeyConstraint(
            ["consumer_uuid"],
            ["consumers.uuid"],
        ),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["resource_providers.id"],
        ),
        sa.ForeignKeyConstraint(
            ["resource_class_id"],
            ["resource_classes.id"],
        ),
        sa.PrimaryKeyConstraint("consumer_uuid", "provider_id", "resource_class_id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "allocations_by_provider", "allocations", ["provider_id", "resource_class_id"], if_not_exists=True
    )
    op.create_table(
        "inventories",
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("min_unit", sa.Integer(), nullable=False),
        sa.Column("max_unit", sa.Integer(), nullable=False),
        sa.Column("step_size", sa.Integer(), nullable=False),
        sa.Column("allocation_ratio", sa.Double(), nullable=False),
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
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("aggregate_uuid", sa.String(length=36), nullable=False),
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
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("trait_id", sa.Integer(), nullable=False),
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
