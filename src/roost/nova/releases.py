"""The releases of Nova that the bridge was compared with, and the checks of a cloud against them.

Of all releases of the table the models of both databases were compared: each column that the bridge reads
exists in all of them, with the same meaning. So a missing column is that of an older Nova, of an upgrade that
has not run, or of a Nova that is newer than the table.

Source: ``nova/objects/service.py``, ``nova/scheduler/manager.py``, ``nova/objects/request_spec.py`` and
``nova/db/*/models.py`` of the released packages 29.4, 30.3, 31.3, 32.2, 33.0 and 34.0.
"""

import contextlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.model.errors import OperatorError
from roost.nova.database.cells import NovaCells
from roost.nova.database.tables import API, CELL, services
from roost.storage import Database, StorageError, transaction

_log = structlog.get_logger()


class NovaRelease(NamedTuple):
    """A release of Nova.

    ``nova``: the first part of its version. ``first_service`` to ``last_service``: the versions that its
    services write to their rows. ``rpc``: the version of the scheduler's interface. ``request_spec`` and
    ``selection``: the versions of the objects in a call and its answer.
    """

    name: str
    nova: int
    first_service: int
    last_service: int
    rpc: str = "4.5"
    request_spec: str = "1.15"
    selection: str = "1.1"


RELEASES: Final = (
    NovaRelease("2024.1", 29, 66, 67),
    NovaRelease("2024.2", 30, 67, 67),
    NovaRelease("2025.1", 31, 68, 68),
    NovaRelease("2025.2", 32, 69, 70),
    NovaRelease("2026.1", 33, 71, 72),
    NovaRelease("2026.2", 34, 73, 74),
)
"""The releases, oldest first. 2024.1 began with service version 66; that of its last package is 2024.2's."""

OLDEST: Final = RELEASES[0]
NEWEST: Final = RELEASES[-1]


class NovaTablesDiffer(OperatorError):
    """A database of Nova lacks a table or column that the bridge reads."""


def releases_of(version: int) -> str:
    """Return the releases whose services have a version, as in ``2024.1 or 2024.2``.

    For a version outside of the table it is ``older than 2024.1`` or ``newer than 2026.2``.
    """
    found = [each.name for each in RELEASES if each.first_service <= version <= each.last_service]
    if found:
        return " or ".join(found)
    return f"older than {OLDEST.name}" if version < OLDEST.first_service else f"newer than {NEWEST.name}"


def outside_warnings(versions: Iterable[int], place: str) -> list[str]:
    """Return a warning for each version of services that is outside of the table of releases.

    ``versions``: of the services of a cell; 0 is that of a service that has not reported yet. ``place``: the
    cell, for the text.
    """
    outside = {each for each in versions if each and not OLDEST.first_service <= each <= NEWEST.last_service}
    return [
        f"{place} has services of version {each}, which is {releases_of(each)}: Roost was compared with Nova "
        f"{OLDEST.name} ({OLDEST.nova}) to {NEWEST.name} ({NEWEST.nova})"
        for each in sorted(outside)
    ]


def missing_columns(connection: Connection, read: sa.MetaData) -> list[str]:
    """Return the tables, and the columns as ``table.column``, that are read and do not exist.

    Args:
        connection: to a database of Nova.
        read: the tables and columns that are read of such a database.
    """
    inspector = sa.inspect(connection)
    there = set(inspector.get_table_names())
    missing: list[str] = []
    for table in read.sorted_tables:
        if table.name not in there:
            missing.append(table.name)
            continue
        columns = {each["name"] for each in inspector.get_columns(table.name)}
        missing += [f"{table.name}.{each.name}" for each in table.columns if each.name not in columns]
    return missing


async def check_cloud(cells: NovaCells) -> list[str]:
    """Check the databases of a cloud, and return warnings about services of other releases.

    Databases that do not answer are left out: the feed reports them. So is a cell that lacks a table or
    column, with an error in the log, as long as there is another one.

    Raises:
        NovaTablesDiffer: the API database, or each cell, lacks a table or column.
    """
    warnings: list[str] = []
    differ: list[NovaTablesDiffer] = []
    with contextlib.suppress(StorageError):
        await _check(cells.api, API, "Nova's API database")
    for cell in cells.cells.values():
        try:
            await _check(cell.database, CELL, f"the database of cell {cell.name}")
            versions = await cell.database.read(read_service_versions())
            warnings += outside_warnings(versions, f"cell {cell.name}")
        except NovaTablesDiffer as error:
            differ.append(error)
        except StorageError:
            continue
    if differ and len(differ) == len(cells.cells):
        raise differ[0]
    for each in differ:
        _log.error("a cell of Nova cannot be used", error=str(each))
    return warnings


async def _check(database: Database, read: sa.MetaData, place: str) -> None:
    missing = await database.read(lambda connection: missing_columns(connection, read))
    if missing:
        raise NovaTablesDiffer(tables_differ(missing, place, str(database)))


@transaction
def read_service_versions(connection: Connection) -> list[int]:
    """Return the versions of the services of a cell, each once."""
    rows = connection.scalars(sa.select(services.c.version).where(services.c.deleted == 0).distinct())
    return sorted(each or 0 for each in rows)


def tables_differ(missing: Iterable[str], place: str, database: str) -> str:
    """Return the text about missing tables and columns, with what to do."""
    return (
        f"{place} ({database}) is no database of Nova {OLDEST.name} to {NEWEST.name}: it lacks "
        f"{', '.join(missing)}; correct its URL, grant SELECT on it, or run the upgrade of Nova's databases"
    )
