"""Databases for the service under test."""

import asyncio
from pathlib import Path

import pytest

from roost.ledger import Ledger
from roost.storage import Database


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the standard names and nothing else, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "roost.db"

    async def fill() -> None:
        database = Database(f"sqlite:///{path}")
        await (await Ledger.open(database)).close()
        await database.close()

    asyncio.run(fill())
    return path
