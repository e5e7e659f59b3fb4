"""The tables of OpenStack Placement 16.0, and the check that a database is at their revision.

Source: the tables that its migrations make; a test compares the two. Columns that end in ``_id`` refer to
the ids of other tables. Only some of them are foreign keys, so that any of them may refer to a row that
does not exist.
"""

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.placement.exchange.errors import NotPlacement
from roost.storage import Database

REVISION = "a082b8bb98d0"
"""The newest revision of the schema. All releases since Antelope have it."""

OLDER_REVISIONS = frozenset({"b4ed3a175331", "611cd6dffd7b", "b5c396305c25", "422ece571366"})
"""Revisions that 'placement-manage db sync' upgrades to `REVISION`."""

NAME_LIMIT = 255
"""Characters in the name of a resource class, trait, project, user or consumer type."""

PROVIDER_NAME_LIMIT = 200
"""Characters in the name of a provider."""

metadata = sa.MetaData()


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    times = (sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime))
    return sa.Table(name, metadata, *times, *parts)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _names(table: str, column: str, text: sa.types.TypeEngine[str]) -> sa.Table:
    """Return a table of names with their ids."""
    unique = sa.UniqueConstraint(column, name=f"uniq_{table}0{column}")
    return _table(table, _id(), sa.Column(column, text, nullable=False), unique)


alembic_version = sa.Table(
    "alembic_version",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

resource_classes = _names("resource_classes", "name", sa.String(NAME_LIMIT))
traits = _names("traits", "name", sa.Unicode(NAME_LIMIT))
projects = _names("projects", "external_id", sa.String(NAME_LIMIT))
users = _names("users", "external_id", sa.String(NAME_LIMIT))
consumer_types = _names("consumer_types", "name", sa.Unicode(NAME_LIMIT))

placement_aggregates = _table(
    "placement_aggregates",
    _id(),
    sa.Column("uuid", sa.String(36)),
    sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

resource_providers = _table(
    "resource_providers",
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.Unicode(PROVIDER_NAME_LIMIT)),
    sa.Column("generation", sa.Integer),
    sa.Column("root_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
    sa.Column("parent_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
    sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    sa.Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
    sa.Index("resource_providers_root_provider_id_idx", "root_provider_id"),
)

inventories = _table(
    "inventories",
    _id(),
    _number("resource_provider_id"),
    _number("resource_class_id"),
    _number("total"),
    _number("reserved"),
    _number("min_unit"),
    _number("max_unit"),
    _number("step_size"),
    sa.Column("allocation_ratio", sa.Float, nullable=False),
    sa.UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
)

provider_traits = _table(
    "resource_provider_traits",
    sa.Column("trait_id", sa.Integer, sa.ForeignKey("traits.id"), primary_key=True),
    sa.Column("resource_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Index("resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"),
)

provider_aggregates = _table(
    "resource_provider_aggregates",
    sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("aggregate_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)

consumers = _table(
    "consumers",
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    _number("project_id"),
    _number("user_id"),
    sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column(
        "consumer_type_id",
        sa.Integer,
        sa.ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey"),
    ),
    sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    sa.Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    sa.Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    sa.Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

allocations = _table(
    "allocations",
    _id(),
    _number("resource_provider_id"),
    sa.Column("consumer_id", sa.String(36), nullable=False),
    _number("resource_class_id"),
    _number("used"),
    sa.Index(
        "allocations_resource_provider_class_used_idx", "resource_provider_id", "resource_class_id", "used"
    ),
    sa.Index("allocations_resource_class_id_idx", "resource_class_id"),
    sa.Index("allocations_consumer_id_idx", "consumer_id"),
)


T = TypeVar("T")


def read_snapshot(database: Database, work: Callable[[Connection], T]) -> T:
    """Run ``work`` on one snapshot of a database that was opened read-only.

    Raises:
        NotPlacement: the database is not OpenStack Placement's, or is not at `REVISION`.
    """

    def read(connection: Connection) -> T:
        check_revision(connection, str(database))
        return work(connection)

    return database.read_now(read)


def check_revision(connection: Connection, name: str) -> None:
    """Check that a database has OpenStack Placement's tables at `REVISION`.

    Raises:
        NotPlacement: it has not. ``name`` is the database in the error's text.
    """
    present = set(sa.inspect(connection).get_table_names())
    missing = sorted(metadata.tables.keys() - present)
    found = []
    if "alembic_version" in present:
        found = list(connection.execute(sa.select(alembic_version.c.version_num)).scalars())
    if "alembic_version" not in present or "resource_providers" not in present:
        raise NotPlacement(
            f"database {name} is not a database of OpenStack Placement: it has no table {missing[0]}"
        )
    if found != [REVISION]:
        revision = ", ".join(found) or "none"
        known = OLDER_REVISIONS.issuperset(found)
        advice = (
            "run 'placement-manage db sync' of OpenStack Placement 16.0 on it first"
            if known
            else "this version of Roost does not know it"
        )
        raise NotPlacement(
            f"database {name} is at OpenStack Placement's revision {revision}, not {REVISION}: {advice}"
        )
    if missing:
        raise NotPlacement(
            f"database {name} is damaged: it is at revision {REVISION} but has no table {missing[0]}"
        )
