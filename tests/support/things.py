"""A database with one table of numbers, for tests of transactions."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.storage import ANSWER_SECONDS, Database
from support.databases import Place

INSERT = "INSERT INTO things VALUES ({})"


def put(number: int) -> Callable[[sa.Connection], int]:
    """A work that inserts a number and returns it."""

    def work(connection: sa.Connection) -> int:
        connection.exec_driver_sql(INSERT.format(number))
        return number

    return work


def things(database: Database) -> list[int]:
    """The numbers in the table."""
    query = sa.text("SELECT number FROM things ORDER BY number")
    return database.read_now(lambda connection: list(connection.execute(query).scalars()))


def count(connection: sa.Connection) -> int:
    """The number of rows in the table."""
    return int(connection.execute(sa.text("SELECT count(*) FROM things")).scalar_one())


def using(where: Path | Place, use: Callable[[Database], Any], answer_seconds: float = ANSWER_SECONDS) -> Any:
    """Run ``use`` with a database that has an empty table of things."""

    async def run() -> Any:
        url = f"sqlite:///{where}" if isinstance(where, Path) else where.url
        database = Database(url, answer_seconds=answer_seconds)
        create = "CREATE TABLE IF NOT EXISTS things (number INTEGER PRIMARY KEY CHECK (number < 100))"
        database.write_now(lambda connection: connection.exec_driver_sql(create))
        try:
            return await use(database)
        finally:
            await database.close()

    return asyncio.run(run())
