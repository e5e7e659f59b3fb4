"""Restores: fill a database from a backup, whole or not at all, and raise its incarnation."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL

from roost.server.backup import mariadb, postgresql, sqlite
from roost.server.backup.creation import KINDS
from roost.server.backup.errors import BackupError, TargetNotEmpty
from roost.server.backup.manifest import Manifest, Progress, SavedDatabase, check_file, read_manifest, sync
from roost.server.backup.roles import SCHEMAS
from roost.storage import (
    COMMAND_ANSWER_SECONDS,
    Database,
    DatabaseIdentity,
    DatabaseUrl,
    as_url,
    read_identity,
)
from roost.storage.identity import has_identity, raised_incarnation, set_incarnation

Clock = Callable[[], float]


def choose_database(manifest: Manifest, folder: Path, name: str | None) -> SavedDatabase:
    """Return the database of a backup with a name; without a name the only one.

    Raises:
        BackupError: no database has that name, or there are several and no name is given.
    """
    names = [each.name for each in manifest.databases]
    if name is None and len(names) == 1:
        return manifest.databases[0]
    if name not in names:
        wanted = "name one" if name is None else f"there is no {name}"
        raise BackupError(f"backup {folder} has the databases {', '.join(names)}: {wanted} with --only")
    return manifest.databases[names.index(name)]


def restore_database(
    folder: Path,
    name: str | None,
    url: DatabaseUrl | str,
    replace: bool,
    progress: Progress,
    clock: Clock = time.time,
) -> DatabaseIdentity | None:
    """Fill a database from a backup. Its tables are upgraded to this program's revision.

    Args:
        folder: the backup.
        name: the name of the database in the backup; None: the backup has only one.
        url: the database to fill.
        replace: whether tables in it are replaced; otherwise it must be empty.
        progress: called repeatedly during the restore.
        clock: seconds since the epoch.

    Returns:
        The identity of the database with the raised incarnation; None if its tables are older than
        identities.

    Raises:
        BackupError: the backup cannot be used, or the database is not empty; the database is as it was.
        StorageError: the database cannot be used.
    """
    manifest = read_manifest(folder)
    saved = choose_database(manifest, folder, name)
    target = _target(url, saved)
    file = check_file(folder, saved, progress)
    if saved.kind == "sqlite":
        path = Path(str(target.database)).absolute()
        return _restore_sqlite(saved, file, path, replace, progress, clock)
    return _restore_server(saved, file, url, replace, progress, clock)


def prepare_file(
    saved: SavedDatabase,
    file: Path,
    prepared: Path,
    earlier: DatabaseIdentity | None,
    progress: Progress,
    clock: Clock,
    change: Callable[[Database], None] = lambda _: None,
) -> DatabaseIdentity | None:
    """Make a SQLite file from one of a backup, with a raised incarnation and upgraded tables, durably.

    ``earlier``: the identity of the database that the file replaces. ``change``: called with the database,
    to change it further.
    """
    _remove(prepared)
    reading = f"{file.absolute().as_uri()}?mode=ro&immutable=1"

    def show(done: int, total: int | None) -> None:
        progress(f"restoring {saved.name}", "pages", done, total)

    with (
        closing(sqlite3.connect(reading, uri=True)) as source,
        closing(sqlite3.connect(prepared, isolation_level=None)) as copy,
    ):
        sqlite.copy_pages(source, copy, show)
        sqlite.check_file(copy, f"database {saved.name} of the backup")
    database = Database(f"sqlite:///{prepared}")
    try:
        identity = _complete(database, saved, earlier, clock)
        change(database)
    finally:
        asyncio.run(database.close())
    sync(prepared)
    return identity


def _restore_sqlite(
    saved: SavedDatabase, file: Path, path: Path, replace: bool, progress: Progress, clock: Clock
) -> DatabaseIdentity | None:
    there = path.exists() and path.stat().st_size > 0
    earlier = None
    if there:
        present = Database(f"sqlite:///{path}", answer_seconds=COMMAND_ANSWER_SECONDS)
        try:
            there = bool(_check_empty(present, replace))
            earlier = _identity_in(present)
        finally:
            asyncio.run(present.close())
    prepared = path.with_name(f".{path.name}.restoring")
    try:
        identity = prepare_file(saved, file, prepared, earlier, progress, clock)
        if path.exists():
            # The pages are copied into the file. If the file were renamed, processes that have the old one
            # open would go on with it, and a write-ahead log beside it would be applied to the new one.
            with closing(sqlite3.connect(prepared)) as source, closing(sqlite3.connect(path)) as target:
                source.backup(target)
        else:
            os.link(prepared, path)
            sync(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"cannot restore {path}: {error}") from error
    finally:
        _remove(prepared)
    return identity


def _remove(file: Path) -> None:
    """Remove a SQLite file and its write-ahead log, which would be applied to the next file of that name."""
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _restore_server(
    saved: SavedDatabase, file: Path, url: DatabaseUrl | str, replace: bool, progress: Progress, clock: Clock
) -> DatabaseIdentity | None:
    def show(done: int, total: int | None) -> None:
        progress(f"restoring {saved.name}", "bytes", done, total)

    def complete(beside: Database) -> None:
        _complete(beside, saved, earlier, clock)

    database = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        old = _check_empty(database, replace)
        earlier = _identity_in(database)
        if saved.kind == "mariadb":
            mariadb.restore(database, file, old, complete, show)
        else:
            raised = None if saved.incarnation is None else _raised(saved, earlier, clock)
            postgresql.restore(database, file, raised, old, show)
            _upgrade(database, saved)
        return _identity_in(database)
    finally:
        asyncio.run(database.close())


def _complete(
    database: Database, saved: SavedDatabase, earlier: DatabaseIdentity | None, clock: Clock
) -> DatabaseIdentity | None:
    """Raise the incarnation and upgrade the tables of a database that no process uses yet."""
    if saved.incarnation is not None:
        raised = _raised(saved, earlier, clock)
        database.write_now(lambda connection: set_incarnation(connection, raised))
    _upgrade(database, saved)
    return _identity_in(database)


def _upgrade(database: Database, saved: SavedDatabase) -> None:
    for name, revision in saved.revisions.items():
        if revision != SCHEMAS[name].newest:
            SCHEMAS[name].upgrade(database)


def _raised(saved: SavedDatabase, earlier: DatabaseIdentity | None, clock: Clock) -> int:
    known = [saved.incarnation or 0, earlier.incarnation if earlier is not None else 0]
    return raised_incarnation(max(known), clock())


def _identity_in(database: Database) -> DatabaseIdentity | None:
    return database.read_now(
        lambda connection: read_identity(connection) if has_identity(connection) else None
    )


def _check_empty(database: Database, replace: bool) -> Sequence[str]:
    """Return the tables of a database. Raises `TargetNotEmpty` if it has some and ``replace`` is false."""
    tables = database.read_now(lambda connection: sa.inspect(connection).get_table_names())
    if tables and not replace:
        raise TargetNotEmpty(
            f"database {database} is not empty: restore into an empty one, or give --replace to drop its "
            "tables"
        )
    return tables


def _target(url: DatabaseUrl | str, saved: SavedDatabase) -> URL:
    given = as_url(url)
    target = given.parsed
    kind = KINDS.get(target.get_backend_name())
    if kind != saved.kind:
        raise BackupError(
            f"database {saved.name} of the backup is one of {saved.kind}: it cannot be restored into {given}"
        )
    if kind == "sqlite" and (not target.database or target.database == ":memory:"):
        raise BackupError(f"cannot restore into {given}: name a file, as in sqlite:///roost.db")
    return target
