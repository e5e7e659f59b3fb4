"""The identity of a database: drawn once, shared by its rooms, raised by a restore."""

import asyncio
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from roost.ledger import SCHEMA as LEDGER
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.storage import Database, DatabaseDamaged, read_identity
from roost.storage.identity import TABLE, raised_incarnation, set_incarnation


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    asyncio.run(database.close())


def test_rooms_that_share_a_database_share_its_identity(database: Database) -> None:
    LEDGER.upgrade(database)
    first = database.read_now(read_identity)
    assert (len(first.uuid), first.incarnation) == (36, 1)
    CONDUCTOR.upgrade(database)
    LEDGER.upgrade(database)
    assert database.read_now(read_identity) == first
    database.write_now(lambda connection: set_incarnation(connection, 2**40))
    assert database.read_now(read_identity) == (first.uuid, 2**40)


def test_an_upgrade_that_was_cut_off_before_the_row_draws_it(database: Database) -> None:
    """MariaDB commits the statement that makes the table by itself."""
    LEDGER.upgrade(database)
    database.write_now(lambda connection: connection.execute(sa.text(f"DELETE FROM {TABLE}")))
    with pytest.raises(DatabaseDamaged, match="database_identity is empty"):
        database.read_now(read_identity)
    old = sa.text("DELETE FROM ledger_schema")
    database.write_now(lambda connection: connection.execute(old))
    LEDGER.upgrade(database)
    assert database.read_now(read_identity).incarnation == 1


def test_two_databases_differ(database: Database, tmp_path) -> None:
    LEDGER.upgrade(database)
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    LEDGER.upgrade(other)
    assert database.read_now(read_identity).uuid != other.read_now(read_identity).uuid
    asyncio.run(other.close())


def test_two_restores_of_one_backup_differ() -> None:
    assert raised_incarnation(1, 1_800_000_000.7) == 1_800_000_000
    assert raised_incarnation(1, 1_800_000_009.2) == 1_800_000_009
    # A clock that is behind does not lower it.
    assert raised_incarnation(1_800_000_009, 5.0) == 1_800_000_010
