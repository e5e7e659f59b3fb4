"""Where the databases of cells are, as the API database has it."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.tables import cell_mappings


class MapCells(msgspec.Struct, frozen=True):
    """Write where cells are: name -> database URL."""

    cells: Mapping[str, str]

    def __call__(self, connection: Connection) -> None:
        for name, url in self.cells.items():
            row = {"name": name, "database_url": url}
            found = connection.execute(
                sa.update(cell_mappings).where(cell_mappings.c.name == name).values(row)
            )
            if not found.rowcount:
                connection.execute(sa.insert(cell_mappings), row)


def mapped_cells(connection: Connection) -> dict[str, str]:
    """The cells that a database knows, in order of names: name -> database URL."""
    query = sa.select(cell_mappings).order_by(cell_mappings.c.name)
    return {row.name: row.database_url for row in connection.execute(query)}
