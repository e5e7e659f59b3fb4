"""SQLite: the online backup, which copies one snapshot while other processes write."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from roost.server.backup.errors import BackupError, BackupUnreadable
from roost.server.backup.facts import BackupSnapshot

PAGES_AT_ONCE = 2048
"""Pages of 4 KiB copied between two reports of progress."""

Count = Callable[[int, int | None], None]


def dump(snapshot: BackupSnapshot, target: Path, progress: Count) -> None:
    """Copy a snapshot into a new file, and check the file.

    The connection's transaction has begun to read, so the copy is the snapshot that it sees. Other processes
    can write meanwhile; the write-ahead log grows until the end.

    Raises:
        BackupError: the copy cannot be written, or the database is damaged.
    """
    source = snapshot.connection.connection.driver_connection
    assert isinstance(source, sqlite3.Connection)
    try:
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy_pages(source, copy, progress)
            check_file(copy, f"database {snapshot.database}")
            # In WAL mode SQLite would make two files beside the copy to read it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"cannot copy database {snapshot.database} to {target}: {error}") from error


def copy_pages(source: sqlite3.Connection, target: sqlite3.Connection, progress: Count) -> None:
    """Copy a whole database over another one, in one transaction of the target."""
    source.backup(
        target,
        pages=PAGES_AT_ONCE,
        progress=lambda _, remaining, total: progress(total - remaining, total),
    )


def check_file(copy: sqlite3.Connection, name: str) -> None:
    """Have SQLite check all pages, indexes, constraints and foreign keys.

    Raises:
        BackupUnreadable: SQLite finds damage.
    """
    found = [row[0] for row in copy.execute("PRAGMA integrity_check(3)")]
    if found != ["ok"]:
        raise BackupUnreadable(f"{name} is damaged: {'; '.join(found)}")
    dangling = copy.execute("PRAGMA foreign_key_check").fetchone()
    if dangling is not None:
        raise BackupUnreadable(f"{name} is damaged: a row of table {dangling[0]} refers to a missing row")
