"""The mappings of cells to their databases.

A mapping names a group of the configuration, in which ``connection`` is the URL: the URL has a password,
which must not be stored in this database. Cells of one data directory have the URLs of their files here.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import Connection

from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.process.options import OptionStruct, option, options_of_group
from roost.state.api_database.tables import cell_mappings
from roost.storage import DatabaseUnavailable, DatabaseUrl, configured_url, insert_missing, transaction

CELL0: Final = "cell0"
"""The cell without hosts that keeps instances which could not be placed."""


class CellOptions(OptionStruct, frozen=True, group="cell_NAME"):
    """The URL of the database of one cell. Each cell has a group of its own."""

    connection: str | None = option(
        None,
        secret=True,
        help="This is the SQLAlchemy URL of the database of cell NAME, in a group for each cell. Cell0, "
        "which keeps what could not be placed, has the group cell0.",
    )


class CellMapping(msgspec.Struct, frozen=True):
    """The mapping of a cell to its database: the ``section`` that has its URL, or the URL itself."""

    name: str
    section: str | None = None
    database_url: str | None = None


def section_of(cell: str) -> str:
    """Return the default group of a cell in the configuration."""
    return cell if cell == CELL0 else f"cell_{cell}"


def cell_options(section: str) -> dict[str, list[cfg.Opt]]:
    """Return the options of the group of one cell."""
    return options_of_group(CellOptions, section)


def url_of(mapping: CellMapping, source: Source | None) -> DatabaseUrl:
    """Return the URL of a cell's database.

    ``source``: of the configuration; None: there is none. Raises `DatabaseUnavailable` if it has no URL.
    """
    if mapping.section is None:
        if mapping.database_url is None:
            raise DatabaseUnavailable(f"the mapping of cell {mapping.name} names no database")
        return DatabaseUrl(mapping.database_url)
    url = None if source is None else _connection(source, mapping.section)
    if url is None:
        raise DatabaseUnavailable(
            f"the database of cell {mapping.name} is not configured: set connection in [{mapping.section}]"
        )
    return url


def _connection(source: Source, section: str) -> DatabaseUrl | None:
    conf = source.open()
    source.register(conf, cell_options(section))
    try:
        return configured_url(conf[section].connection, source, section)
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: [{section}] connection: {error}") from error


@transaction
def write_cell_mappings(connection: Connection, mappings: tuple[CellMapping, ...]) -> None:
    """Write the mappings of cells to their databases."""
    for mapping in mappings:
        row = msgspec.structs.asdict(mapping)
        found = connection.execute(
            sa.update(cell_mappings).where(cell_mappings.c.name == mapping.name).values(row)
        )
        if not found.rowcount:
            insert_missing(connection, sa.insert(cell_mappings), row)


@transaction
def map_unknown_cell(connection: Connection, mapping: CellMapping) -> bool:
    """Write the mapping of a cell, unless it has one. Returns whether it had none."""
    named = cell_mappings.c.name == mapping.name
    if connection.scalar(sa.select(cell_mappings.c.name).where(named)) is not None:
        return False
    insert_missing(connection, sa.insert(cell_mappings), msgspec.structs.asdict(mapping))
    return True


def at_urls(urls: Mapping[str, str]) -> tuple[CellMapping, ...]:
    """Return mappings of cells to URLs without passwords. ``urls``: name -> URL."""
    return tuple(CellMapping(name, database_url=url) for name, url in urls.items())


def mapped_cells(connection: Connection) -> dict[str, CellMapping]:
    """Return the mappings of all cells by name, in order of names."""
    rows = connection.execute(sa.select(cell_mappings).order_by(cell_mappings.c.name))
    return {row.name: CellMapping(row.name, row.section, row.database_url) for row in rows}


def hold_cell(connection: Connection, name: str) -> bool:
    """Lock a cell until the transaction ends: it is not removed and gets no hosts.

    Returns whether there is such a cell.
    """
    query = sa.select(cell_mappings.c.name).where(cell_mappings.c.name == name).with_for_update()
    return connection.scalar(query) is not None
