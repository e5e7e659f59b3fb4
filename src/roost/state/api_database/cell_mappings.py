"""Where the databases of cells are, as the API database has it.

A mapping names a group of the configuration, in which ``connection`` is the URL: the URL has a password,
which is nothing for this database. Cells of one data directory have their files' URLs here.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import Connection

from roost.model.errors import OperatorError
from roost.state.api_database.tables import cell_mappings
from roost.state.database_option import configured_url
from roost.storage import DatabaseUnavailable, DatabaseUrl, insert_missing
from roost.web.auth import Source

CELL0: Final = "cell0"
"""The cell without hosts that keeps what could not be placed."""

OPTIONS: Final = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="This is the SQLAlchemy URL of the database of cell NAME, in a group for each cell. Cell0, "
        "which keeps what could not be placed, has the group cell0.",
    ),
]
"""The options of the group of one cell."""


class CellMapping(msgspec.Struct, frozen=True):
    """Where the database of a cell is: the ``section`` that has its URL, or the URL itself."""

    name: str
    section: str | None = None
    database_url: str | None = None


def section_of(cell: str) -> str:
    """The group of the configuration that a cell has unless its mapping names another one."""
    return cell if cell == CELL0 else f"cell_{cell}"


def url_of(mapping: CellMapping, source: Source | None) -> DatabaseUrl:
    """The URL of a cell's database.

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
    source.register(conf, section, OPTIONS)
    try:
        return configured_url(conf[section].connection, source, section)
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: [{section}] connection: {error}") from error


class MapCells(msgspec.Struct, frozen=True):
    """Write where cells are."""

    mappings: tuple[CellMapping, ...]

    def __call__(self, connection: Connection) -> None:
        for mapping in self.mappings:
            row = msgspec.structs.asdict(mapping)
            found = connection.execute(
                sa.update(cell_mappings).where(cell_mappings.c.name == mapping.name).values(row)
            )
            if not found.rowcount:
                insert_missing(connection, sa.insert(cell_mappings), row)


class KnowCell(msgspec.Struct, frozen=True):
    """Write where a cell is, unless its mapping is known. Returns whether it was unknown."""

    mapping: CellMapping

    def __call__(self, connection: Connection) -> bool:
        named = cell_mappings.c.name == self.mapping.name
        if connection.scalar(sa.select(cell_mappings.c.name).where(named)) is not None:
            return False
        insert_missing(connection, sa.insert(cell_mappings), msgspec.structs.asdict(self.mapping))
        return True


def at_urls(urls: Mapping[str, str]) -> tuple[CellMapping, ...]:
    """Mappings of cells to URLs without passwords: name -> URL."""
    return tuple(CellMapping(name, database_url=url) for name, url in urls.items())


def mapped_cells(connection: Connection) -> dict[str, CellMapping]:
    """The cells that a database knows, by name, in order of names."""
    rows = connection.execute(sa.select(cell_mappings).order_by(cell_mappings.c.name))
    return {row.name: CellMapping(row.name, row.section, row.database_url) for row in rows}


def hold_cell(connection: Connection, name: str) -> bool:
    """Keep a cell from being removed, and from getting hosts, until the transaction ends. Returns whether
    there is one."""
    query = sa.select(cell_mappings.c.name).where(cell_mappings.c.name == name).with_for_update()
    return connection.scalar(query) is not None
