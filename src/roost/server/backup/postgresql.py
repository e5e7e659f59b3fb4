"""PostgreSQL: pg_dump of the snapshot that was read, and a restore in one transaction."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sqlalchemy.engine import URL

from roost.server.backup.facts import BackupSnapshot
from roost.server.backup.tools import feed_tool, find_tool, output_of, run_tool
from roost.storage import Database
from roost.storage.identity import TABLE

PACKAGE = "postgresql-client"

LOCK_SECONDS = 10
"""Seconds for which a restore waits for processes that use the tables it replaces; then it fails."""

Count = Callable[[int, int | None], None]


def dump(snapshot: BackupSnapshot, target: Path, progress: Count) -> None:
    """Have pg_dump write the snapshot into a file of its custom format, and read the file again.

    Raises:
        ToolMissing, ToolFailed: pg_dump or pg_restore is missing or fails.
    """
    program = find_tool(PACKAGE, "pg_dump")
    reader = find_tool(PACKAGE, "pg_restore")
    connecting, secrets = _connecting(snapshot.database.url)
    # This transaction is idle while pg_dump uses its snapshot.
    snapshot.connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    exported = snapshot.connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
    command = [program, "--format=custom", "--no-owner", "--no-privileges", "--no-password"]
    command += ["--snapshot", exported, "--file", str(target), "--dbname", connecting]
    run_tool(command, secrets, target, lambda size: progress(size, None))
    for _ in output_of([reader, "--file=-", str(target)]):
        pass


def restore(
    database: Database, file: Path, incarnation: int | None, old: Sequence[str], progress: Count
) -> None:
    """Fill a database from a dump in one transaction, in which the tables ``old`` are dropped first.

    The transaction begins and ends in the input of psql, so that it is rolled back if this process is killed.

    Raises:
        ToolMissing, ToolFailed: pg_restore or psql is missing or fails; the database is as it was.
    """
    program = find_tool(PACKAGE, "psql")
    reader = find_tool(PACKAGE, "pg_restore")
    schema = database.read_now(
        lambda connection: connection.exec_driver_sql("SELECT current_schema()").scalar()
    )
    quote = database.engine.dialect.identifier_preparer.quote

    def script() -> Iterable[bytes]:
        yield f"BEGIN;\nSET LOCAL lock_timeout = '{LOCK_SECONDS}s';\n".encode()
        for table in old:
            yield f"DROP TABLE {quote(str(schema))}.{quote(table)} CASCADE;\n".encode()
        yield from output_of([reader, "--file=-", "--no-owner", "--no-privileges", str(file)])
        if incarnation is not None:
            yield f"UPDATE {quote(str(schema))}.{TABLE} SET incarnation = {incarnation};\n".encode()
        yield b"COMMIT;\n"

    connecting, secrets = _connecting(database.url)
    command = [program, "--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1"]
    command += ["--file=-", "--dbname", connecting]
    feed_tool(command, secrets, script(), lambda size: progress(size, None))


def _connecting(url: URL) -> tuple[str, dict[str, str]]:
    """Return the connection string of a URL, and the environment variable with its password."""
    from psycopg.conninfo import make_conninfo

    _, parameters = url.get_dialect()().create_connect_args(url)
    password = parameters.pop("password", None)
    return make_conninfo(**parameters), {} if password is None else {"PGPASSWORD": str(password)}
