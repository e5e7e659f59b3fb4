"""The first look at a target, which is read-only: opening a SQLite file for writing may change it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import ArgumentError

from roost.storage import COMMAND_ANSWER_SECONDS, Database

T = TypeVar("T")


def probe(url: str, work: Callable[[Connection], T]) -> T | None:
    """Run ``work`` on one read-only snapshot of a database; return None if its SQLite file does not exist.

    Raises:
        DatabaseUnavailable: the database cannot be opened.
    """
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        parsed = None  # Opening the database raises the error.
    if parsed is not None and parsed.get_backend_name() == "sqlite":
        name = parsed.database
        if name and name != ":memory:" and not Path(name).exists():
            return None
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        return database.read_now(work)
    finally:
        asyncio.run(database.close())
