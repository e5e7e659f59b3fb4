"""An OpenStack Placement database as the source of an import: its revision is checked, nothing is written."""

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.placement.exchange.errors import NotPlacement
from roost.placement.exchange.placement_tables import OLDER_REVISIONS, REVISION, alembic_version, metadata
from roost.storage import Database

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
