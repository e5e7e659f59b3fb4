"""Writes that a database refuses for want of space, and what follows."""

import sqlite3
from contextlib import closing

from roost.storage.database import Database
from roost.storage.schema import Schema


async def check_writes(database: Database, schema: Schema) -> None:
    """Find out whether a database takes writes again, if its last one was refused; else do nothing.

    ``schema``: one whose tables the database has.

    Raises:
        DatabaseFull, DatabaseReadOnly: it does not.
        DatabaseUnavailable: it cannot be asked.
    """
    if database.refused is not None:
        await database.write(schema.write_same)


def make_room(database: Database) -> None:
    """Give the disk the write-ahead log of a SQLite file back; on a server do nothing.

    A write needs space in the log before it frees any. What the log holds is written over pages that the file
    has already, as far as nobody reads older ones.
    """
    if not database.is_sqlite:
        return
    with closing(database.engine.raw_connection()) as connection:
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            # The file itself has to grow for it: there is no room to be made.
            return
