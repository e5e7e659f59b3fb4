"""A cell that is removed while hosts are added to it: one of the two is refused, in words."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from roost.conductor.hosts.cells import forget_cell
from roost.model.operator_word import SaidWord, Subject
from roost.server.process import prepare_database
from roost.state.api_database.cell_mappings import CellMapping, map_unknown_cell
from roost.state.api_database.host_mappings import NoSuchCell, add_host_mappings
from roost.state.api_database.operator_words import WordStore
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database


@pytest.fixture
def database(database_url: str):
    prepare_database(database_url, True, SCHEMA)
    database = Database(database_url)
    database.write_now(map_unknown_cell(CellMapping("c", "s")))
    yield database
    asyncio.run(database.close())


def test_hosts_are_not_mapped_to_a_cell_that_is_gone(database: Database) -> None:
    assert database.write_now(forget_cell("c")) is None
    with pytest.raises(NoSuchCell, match="no cell 'c'"):
        database.write_now(add_host_mappings(("h",), "c"))


def test_what_was_said_of_a_cell_goes_with_it(database: Database) -> None:
    """In one transaction: a removal that ends in between would leave a later cell of the name disabled."""
    words = WordStore(database)
    asyncio.run(words.say([SaidWord(Subject("c"), False, "power", 1.0)]))
    assert database.write_now(forget_cell("c")) is None
    assert asyncio.run(words.of_cells())["c"].enabled


@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_cell_that_gets_hosts_at_this_moment_stays(database: Database) -> None:
    mapped, asked = threading.Event(), threading.Event()

    def add(connection: sa.Connection) -> None:
        add_host_mappings(("h",), "c")(connection)
        mapped.set()
        assert asked.wait(30)

    def remove(connection: sa.Connection) -> str | None:
        def execute(there, cursor, statement: str, *_: object) -> None:
            # What it waits for: a lock, or the end of all that refers to the row.
            if "FOR UPDATE" in statement or statement.startswith("DELETE"):
                asked.set()

        assert mapped.wait(30)
        sa.event.listen(connection, "before_cursor_execute", execute)
        return forget_cell("c")(connection)

    with ThreadPoolExecutor(2) as threads:
        adding, removing = threads.submit(database.write_now, add), threads.submit(database.write_now, remove)
        adding.result()
        assert removing.result() == "cell c has 1 hosts"
