"""The databases of a running test, with the URLs under which another engine reads them."""

from typing import Any

import sqlalchemy
from nova.db.api import api as api_database
from nova.tests import fixtures

_connections: dict[str, str] = {}
_main: list[str] = []


def note_cells() -> None:
    """Remember the files of each test's cells.

    Tests map a cell to a word in place of a URL, and their fixture finds the database by that word. From here
    on it finds it by the URL too.
    """
    begin, add = fixtures.CellDatabases.__init__, fixtures.CellDatabases.add_cell_database

    def then_forget(cells: Any) -> None:
        begin(cells)
        _connections.clear()

    def then_note(cells: Any, connection_str: str, default: bool = False) -> None:
        add(cells, connection_str, default)
        manager = cells._ctxt_mgrs[connection_str]
        url = str(manager.writer.get_engine().url)
        cells._ctxt_mgrs[url] = manager
        _connections[connection_str] = url
        _main[:] = [str(cells._default_ctxt_mgr.writer.get_engine().url)]

    fixtures.CellDatabases.__init__ = then_forget
    fixtures.CellDatabases.add_cell_database = then_note


def main_database() -> str:
    """The URL of the cell that has the services which belong to no cell."""
    return _main[0]


def map_cells() -> None:
    """Write the URLs into the mappings of the cells, as those of a cloud have them."""
    update = sqlalchemy.text(
        "UPDATE cell_mappings SET database_connection = :url WHERE database_connection = :word"
    )
    with api_database.get_engine().begin() as connection:
        for word, url in _connections.items():
            connection.execute(update, {"url": url, "word": word})
