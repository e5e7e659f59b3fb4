"""A look at a database before it is opened for writing, which alone may change a SQLite file."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import ArgumentError

from roost.storage import Database

T = TypeVar("T")


def glance(url: str, work: Callable[[Connection], T]) -> T | None:
    """Read from a database; None if it is a SQLite file that is not there yet.

    Raises `DatabaseUnavailable` if it cannot be opened.
    """
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        parsed = None  # opening it says what is wrong
    if parsed is not None and parsed.get_backend_name() == "sqlite":
        name = parsed.database
        if name and name != ":memory:" and not Path(name).exists():
            return None
    database = Database(url, read_only=True)
    try:
        return database.read_now(work)
    finally:
        asyncio.run(database.close())
