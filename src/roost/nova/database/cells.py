"""The cells of a Nova cloud: the rows of ``cell_mappings``, each with a connection to the cell's database."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.nova.database.tables import cell_mappings
from roost.nova.database.urls import filled, usable_url
from roost.storage import ANSWER_SECONDS, Database, DatabaseUrl, StorageError, transaction

CELL0: Final = "00000000-0000-0000-0000-000000000000"
"""The uuid of the cell of instances that no host was found for."""

_log = structlog.get_logger()


class CellRow(NamedTuple):
    """A row of ``cell_mappings``. ``url`` is its ``database_connection``, which may be a template."""

    id: int
    uuid: str
    name: str
    url: str
    disabled: bool


class NovaCell(msgspec.Struct, frozen=True):
    """A cell and its database. ``id`` is that of its row, by which mappings name it."""

    uuid: str
    name: str
    database: Database
    id: int = 0


class NovaCells:
    """The cells that are enabled, and cell0.

    ``api`` is Nova's API database, ``template`` the URL of ``[database] connection``, with which the URL of
    a cell is filled. Databases are opened at their first use. Those of cells are opened for reading only;
    that of cell0 has the row of the bridge's own service too.
    """

    def __init__(
        self, api: Database, template: DatabaseUrl | None, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.api = api
        self.cells: Mapping[str, NovaCell] = {}
        self.cell0: NovaCell | None = None
        self.unusable: Mapping[str, str] = {}
        self._template = "" if template is None else template.reveal()
        self._answer_seconds = answer_seconds
        self._opened: dict[tuple[str, str], Database] = {}

    async def refresh(self) -> None:
        """Read the cells anew.

        A cell whose URL cannot be used is left out, and ``unusable`` says why by its uuid.

        Raises:
            StorageError: the API database cannot be read; the cells are as before.
        """
        rows = await self.api.read(read_cells())
        found: dict[str, NovaCell] = {}
        unusable: dict[str, str] = {}
        before, self._opened = self._opened, {}
        for row in rows:
            if row.disabled and row.uuid != CELL0:
                continue
            try:
                found[row.uuid] = NovaCell(row.uuid, row.name, self._open(row, before), row.id)
            except StorageError as error:
                unusable[row.uuid] = str(error)
                if self.unusable.get(row.uuid) != str(error):
                    _log.error("a cell of Nova is left out", cell=row.uuid, name=row.name, error=str(error))
        self.cell0 = found.pop(CELL0, None)
        self.cells, self.unusable = found, unusable
        for database in before.values():
            await database.close()

    async def close(self) -> None:
        """Close the databases of the cells. The API database stays open."""
        opened, self._opened = self._opened, {}
        self.cells, self.cell0 = {}, None
        for database in opened.values():
            await database.close()

    def _open(self, row: CellRow, before: dict[tuple[str, str], Database]) -> Database:
        """Return the database of a cell, from ``before`` if it has the same URL. Raises
        `StorageError`."""
        text = usable_url(filled(row.url, self._template))
        key = row.uuid, text
        database = before.pop(key, None)
        if database is None:
            database = Database(
                DatabaseUrl(text),
                read_only=row.uuid != CELL0,
                create=False,
                deferred=True,
                answer_seconds=self._answer_seconds,
            )
        self._opened[key] = database
        return database


@transaction
def read_cells(connection: Connection) -> list[CellRow]:
    """Return all rows of ``cell_mappings``, in the order of their ids."""
    return [
        CellRow(
            row.id, row.uuid.lower(), row.name or row.uuid, row.database_connection or "", bool(row.disabled)
        )
        for row in connection.execute(_CELLS)
    ]


_CELLS = sa.select(cell_mappings).order_by(cell_mappings.c.id)
