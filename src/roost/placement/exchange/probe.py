"""The first read of a target. It is read-only, because opening a SQLite file for writing may change it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy.engine import Connection

from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseUrl, as_url

T = TypeVar("T")


def probe(url: DatabaseUrl | str, work: Callable[[Connection], T]) -> T | None:
    """Run ``work`` on one read-only snapshot of a database; return None if its SQLite file does not exist.

    Raises:
        DatabaseUnavailable: the database cannot be opened.
    """
    given = as_url(url)
    if given.is_sqlite:
        name = given.parsed.database
        if name and name != ":memory:" and not Path(name).exists():
            return None
    database = Database(given, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        return database.read_now(work)
    finally:
        asyncio.run(database.close())
