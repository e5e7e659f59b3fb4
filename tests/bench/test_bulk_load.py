"""The bulk load of a fleet: each kind of database gets the same rows."""

import asyncio
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.bench.bulk_load import bulk_load
from roost.bench.fleets import AGGREGATES, DISABLED_EVERY, nested
from roost.ledger import Ledger
from roost.ledger.tables import metadata
from roost.storage import Database

PLAN = nested(DISABLED_EVERY + AGGREGATES)
TABLES = ("resource_providers", "inventories", "provider_traits", "provider_aggregates", "allocations")


def loaded(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table in order, after a ledger has been opened on them."""
    database = Database(url)

    async def opened() -> None:
        await (await Ledger.open(database)).close()
        await database.close()

    bulk_load(database, PLAN)
    with database.engine.connect() as connection:
        tables = {name: sa.select(metadata.tables[name]) for name in TABLES}
        rows = {name: sorted(map(tuple, connection.execute(each))) for name, each in tables.items()}
    asyncio.run(opened())
    return rows


def test_every_database_gets_the_rows_of_sqlite(database_url: str, tmp_path: Path) -> None:
    expected = loaded(f"sqlite:///{tmp_path / 'expected.db'}")
    assert loaded(database_url) == expected
    assert len(expected["resource_providers"]) == PLAN.providers
    assert len(expected["provider_aggregates"]) == PLAN.hosts
