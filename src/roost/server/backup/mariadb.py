"""MariaDB: mariadb-dump in one snapshot, and a restore beside the database, swapped in by one statement.

MariaDB commits each CREATE TABLE by itself. So a restore fills another database, and then renames its tables
into the target, all at once. If the process is killed before that, the target is unchanged.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy.engine import URL, Connection

from roost.server.backup.errors import BackupError, ToolFailed
from roost.server.backup.facts import BackupSnapshot
from roost.server.backup.tools import content_of, feed_tool, find_tool, run_tool
from roost.storage import COMMAND_ANSWER_SECONDS, Database, StorageError

PACKAGE = "mariadb-client"

PREPARED = "_restoring"
"""Suffix of the name of the database in which a restore is prepared."""

REPLACED = "_replaced"
"""Suffix of the name of the database into which a restore moves the old tables, to drop them."""

MADE_BY = "made by roost db restore, to be dropped"
"""The comment of both databases, by which a later restore recognises the remains of a killed one."""

_LAST_LINE = b"-- Dump completed"
_TAIL_BYTES = 200

_FILES = {"ssl_ca": "--ssl-ca", "ssl_cert": "--ssl-cert", "ssl_key": "--ssl-key"}
"""Options of the programs for parameters of URLs."""

Count = Callable[[int, int | None], None]


def dump(snapshot: BackupSnapshot, target: Path, progress: Count) -> None:
    """Have mariadb-dump write one snapshot into a file of SQL statements.

    The snapshot is a little newer than the one that was read: MariaDB's connections cannot share one.

    Raises:
        ToolMissing, ToolFailed: mariadb-dump is missing or fails.
    """
    url = snapshot.database.url
    program = find_tool(PACKAGE, "mariadb-dump", "mysqldump")
    connecting, secrets = _connecting(url)
    command = [
        program,
        *connecting,
        "--single-transaction",
        "--quick",
        "--skip-lock-tables",
        "--skip-add-locks",
    ]
    command += ["--skip-add-drop-table", "--hex-blob", "--no-tablespaces", "--default-character-set=utf8mb4"]
    command += [f"--result-file={target}", str(url.database)]
    run_tool(command, secrets, target, lambda size: progress(size, None))
    with target.open("rb") as file:
        file.seek(max(target.stat().st_size - _TAIL_BYTES, 0))
        if _LAST_LINE not in file.read():
            raise ToolFailed(f"{Path(program).name} wrote an incomplete file")


def restore(
    database: Database,
    file: Path,
    old: Sequence[str],
    complete: Callable[[Database], None],
    progress: Count,
) -> None:
    """Fill a database from a dump; its tables ``old`` are dropped.

    ``complete`` is called with the database in which the restore is prepared, before its tables are renamed.

    Raises:
        BackupError: a program is missing or fails, the user may not create databases, or databases that no
            restore has made have the names that the restore needs; nothing is changed.
        StorageError: the database fails.
    """
    name = str(database.url.database)
    prepared, replaced = name + PREPARED, name + REPLACED
    program = find_tool(PACKAGE, "mariadb", "mysql")
    connecting, secrets = _connecting(database.url)
    try:
        for each in (prepared, replaced):
            _check_unused(database, each)
            _execute(
                database,
                [f"DROP DATABASE IF EXISTS `{each}`", f"CREATE DATABASE `{each}` COMMENT '{MADE_BY}'"],
            )
    except StorageError as error:
        raise BackupError(
            f"cannot make the databases {prepared} and {replaced}, which a restore needs for a while: {error}"
        ) from error
    command = [program, *connecting, "--batch", "--default-character-set=utf8mb4", prepared]
    total = file.stat().st_size
    feed_tool(command, secrets, content_of(file), lambda size: progress(size, total))
    beside = Database(
        database.url.set(database=prepared).render_as_string(hide_password=False),
        answer_seconds=COMMAND_ANSWER_SECONDS,
    )
    try:
        complete(beside)
        new = beside.read_now(_tables)
    finally:
        asyncio.run(beside.close())
    moves = [f"`{name}`.`{table}` TO `{replaced}`.`{table}`" for table in old]
    moves += [f"`{prepared}`.`{table}` TO `{name}`.`{table}`" for table in new]
    _execute(database, [f"RENAME TABLE {', '.join(moves)}"])
    _execute(database, [f"DROP DATABASE `{each}`" for each in (prepared, replaced)])


def _check_unused(database: Database, name: str) -> None:
    """Raise `BackupError` if a database of this name exists that no restore has made."""

    def comments(connection: Connection) -> list[str]:
        statement = "SELECT schema_comment FROM information_schema.schemata WHERE schema_name = %s"
        return [row[0] for row in connection.exec_driver_sql(statement, (name,))]

    if database.read_now(comments) not in ([], [MADE_BY]):
        raise BackupError(
            f"there is a database {name}, whose name a restore needs for a while: rename or drop it"
        )


def _execute(database: Database, statements: Sequence[str]) -> None:
    def run(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write_now(run)


def _tables(connection: Connection) -> list[str]:
    return [row[0] for row in connection.exec_driver_sql("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")]


def _connecting(url: URL) -> tuple[list[str], dict[str, str]]:
    """Return the options that connect to a URL, and the environment variable with its password."""
    query = url.normalized_query
    options = ["--no-defaults"]  # a password in an option file of the user would override that of the URL
    if "unix_socket" in query:
        options += ["--protocol=socket", f"--socket={query['unix_socket'][0]}"]
    else:
        options += ["--protocol=tcp", f"--host={url.host or '127.0.0.1'}", f"--port={url.port or 3306}"]
    if url.username is not None:
        options.append(f"--user={url.username}")
    files = [f"{option}={query[name][0]}" for name, option in _FILES.items() if name in query]
    options += ["--ssl", *files] if files else ["--skip-ssl"]
    return options, {} if url.password is None else {"MYSQL_PWD": str(url.password)}
