"""Consumers get integer ids, so that they and their allocations are stored in the order of creation.

The foreign keys of allocations are removed.
"""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLES = ("consumers", "allocations")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        # A process of an older version that still writes waits, and then fails on the changed tables.
        op.execute("LOCK TABLE consumers, allocations IN ACCESS EXCLUSIVE MODE")
    # MariaDB commits each step. An interrupted migration makes the copies again, or continues after the swap.
    if not _has("consumers", "id"):
        _drop("new_allocations", "new_consumers")
        _make_copies()
        _fill_copies()
        _swap()
    _drop("old_allocations", "old_consumers")


def _make_copies() -> None:
    op.create_table(
        "new_consumers",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("consumer_type", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("uuid"),
        **EXACT,
    )
    op.create_table(
        "new_allocations",
        sa.Column("consumer_id", ID, nullable=False),
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.CheckConstraint("used > 0", name="something_used"),
        sa.PrimaryKeyConstraint("consumer_id", "provider_id", "resource_class_id"),
        **EXACT,
    )


def _fill_copies() -> None:
    op.execute(
        "INSERT INTO new_consumers (id, uuid, project_id, user_id, consumer_type, generation, changed_at) "
        "SELECT row_number() OVER (ORDER BY uuid), uuid, project_id, user_id, consumer_type, generation, "
        "changed_at FROM consumers"
    )
    op.execute(
        "INSERT INTO new_allocations (consumer_id, provider_id, resource_class_id, used) "
        "SELECT new_consumers.id, provider_id, resource_class_id, used "
        "FROM allocations JOIN new_consumers ON new_consumers.uuid = allocations.consumer_uuid"
    )


def _swap() -> None:
    if op.get_context().dialect.name in ("mysql", "mariadb"):
        _make_indexes("new_")
        pairs = ", ".join(f"{name} TO old_{name}, new_{name} TO {name}" for name in TABLES)
        op.execute(f"RENAME TABLE {pairs}")  # all of them at once
        return
    _drop("allocations", "consumers")
    for name in TABLES:
        op.rename_table(f"new_{name}", name)
        _name_constraints(name)
    _make_indexes("")


def _name_constraints(table: str) -> None:
    """Rename the constraints of a renamed table to PostgreSQL's default names."""
    if op.get_context().dialect.name != "postgresql":
        return
    query = sa.text("SELECT conname FROM pg_constraint WHERE conrelid = CAST(:table AS regclass)")
    for name in op.get_bind().execute(query, {"table": table}).scalars().all():
        if name.startswith("new_"):
            op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {name} TO {name.removeprefix('new_')}")


def _make_indexes(prefix: str) -> None:
    op.create_index("consumers_by_owner", f"{prefix}consumers", ["project_id", "user_id"])
    op.create_index("allocations_by_provider", f"{prefix}allocations", ["provider_id", "resource_class_id"])


def _has(table: str, column: str) -> bool:
    return column in {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}


def _drop(*tables: str) -> None:
    for table in tables:
        op.drop_table(table, if_exists=True)
