"""Recovery after a write that the database refused for want of space."""

import sqlite3
from contextlib import closing

from roost.storage.database import Database
from roost.storage.schema import Schema


async def check_writes(database: Database, schema: Schema) -> None:
    """Check that a database takes writes again, if its last one was refused; else do nothing.

    ``schema``: a schema whose tables the database has.

    Raises:
        DatabaseFull, DatabaseReadOnly: it takes none yet.
        DatabaseUnavailable: it cannot be reached.
    """
    if database.refused is not None:
        await database.write(schema.write_same)


def make_room(database: Database) -> None:
    """Free the disk space of a SQLite file's write-ahead log; on a server do nothing.

    A write needs space in the log before it frees any. Emptying the log writes its pages over pages that the
    file has already, as far as no reader needs the older ones.
    """
    if not database.is_sqlite:
        return
    with closing(database.engine.raw_connection()) as connection:
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            # The file itself would have to grow for it, so no space can be freed.
            return
