"""Engines: they open and set up the connections to each kind of database.

SQLite: WAL, synchronous=FULL, foreign keys on; the engine chooses between BEGIN and BEGIN IMMEDIATE.
PostgreSQL: a server that is dead or does not answer is detected within seconds.
MariaDB: the same, and a value that does not fit its column is an error instead of being truncated. On Galera
a transaction first waits until its node has applied all commits of the cluster (wsrep_sync_wait), so that a
read through one node sees the writes through another.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from roost.storage.database_url import DatabaseUrl
from roost.storage.errors import DatabaseUnavailable

ANSWER_SECONDS = 10.0
"""Seconds that a database operation of a serving process may take; after them it fails."""

COMMAND_ANSWER_SECONDS = 600.0
"""Seconds that a database operation of a command-line tool may take: it may read or copy a whole database."""

CONNECT_SECONDS = 5.0
"""Seconds that opening a connection may take, or the limit of an operation if that is less."""

LOAD_STATEMENT_SECONDS = 60.0
"""Seconds that one statement of `Database.load`, which reads whole tables, may take."""

LOCK_WAIT_SHARE = 0.5
"""Share of its time limit that an operation may wait for a lock.

It is below 1, so that the server reports the lock before the client closes the connection.
"""

BEGIN_WRITING = "BEGIN IMMEDIATE"
BUSY_SECONDS = 0.002
"""The pause before a writer of SQLite tries again to get the lock of the file.

SQLite's own waiting looks ten times a second in the end. Beside a process that writes without a pause it
would hardly ever find the file free, and be refused although no transaction takes long.
"""

FILE_MODE = 0o640
"""Permissions of a new SQLite file, less the umask: other users must not read the data of projects."""

WHOLE_TABLE_PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""PostgreSQL's settings that allow plans which read a whole table."""

# PostgreSQL reuses the generic plan of a prepared statement from its sixth execution on. A plan made while a
# table was empty reads the whole table, however long it becomes, until ANALYZE. Appends and autocommit reads
# fetch rows by key, mostly a few, so plans that read whole tables are off for them. (PostgreSQL estimates a
# JSON list at a hundred rows, and would read all of ten thousand providers for it.) Long reads are planned
# each time. If a table must be read as a whole all the same, such as that of a cell's tokens, its plan then
# has a huge estimated cost, for which PostgreSQL would compile it: 50 ms for a query of 0.3 ms. So
# JIT compilation is off.
_BY_KEY = tuple(f"SET {setting} = off" for setting in (*WHOLE_TABLE_PLANS, "jit"))
_EACH_TIME = ("SET plan_cache_mode = force_custom_plan",)

_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}
"""libpq's parameters that detect a dead server while a connection is idle, in seconds unless noted."""


def for_reading_only(url: URL) -> URL:
    """Return the URL with which to open a database read-only.

    SQLite creates two files beside a file in WAL mode, also to read it. Where this process may not write
    there, the URL gets ``immutable=1``, unless a write-ahead log is present: it may hold newer commits.
    """
    if url.get_backend_name() != "sqlite" or not url.database:
        return url
    file = Path(url.database)
    log = Path(f"{file}-wal")
    writable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    if writable or (log.exists() and log.stat().st_size):
        return url
    return url.set(database=f"file:{quote(url.database)}").update_query_dict(
        {"immutable": "1", "uri": "true"}
    )


def reading_engine(url: URL, read_only: bool, seconds: float) -> Engine:
    """Make an engine whose transactions see one snapshot.

    ``seconds``: the time limit of an operation.

    Raises:
        ArgumentError, ImportError: the URL is invalid, or the driver is not installed.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, "BEGIN", read_only, seconds)
    return _server(
        url, "REPEATABLE READ", read_only, _EACH_TIME, seconds, max(seconds, LOAD_STATEMENT_SECONDS)
    )


def writing_engine(url: URL, read_only: bool, seconds: float) -> Engine:
    """Make an engine whose transactions write.

    ``seconds``: the time limit of an operation.

    Raises:
        ArgumentError, ImportError: the URL is invalid, or the driver is not installed.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, BEGIN_WRITING, read_only, seconds)
    return _server(url, "READ COMMITTED", read_only, _BY_KEY, seconds, seconds)


def autocommit_engine(url: URL, seconds: float) -> Engine:
    """Make an engine without transactions: each statement sees the commits before it.

    ``seconds``: the time limit of an operation.

    Raises:
        ArgumentError, ImportError: the URL is invalid, or the driver is not installed.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, None, True, seconds)
    return _server(url, "AUTOCOMMIT", True, _BY_KEY, seconds, seconds)


def _server(
    url: URL, isolation: str, read_only: bool, planning: Sequence[str], seconds: float, answer_seconds: float
) -> Engine:
    """Make an engine for a server. ``seconds``: limit of an operation; ``answer_seconds``: of a statement."""
    postgresql = url.get_backend_name() == "postgresql"
    connect_seconds = min(CONNECT_SECONDS, seconds)
    lock_seconds = seconds * LOCK_WAIT_SHARE
    defaults: dict[str, Any] = {"connect_timeout": connect_seconds}
    if postgresql:
        # libpq accepts whole seconds, at least 2.
        defaults = {**_KEEPALIVE, "connect_timeout": max(2, round(connect_seconds))}
    else:
        defaults |= {"read_timeout": answer_seconds, "write_timeout": answer_seconds}
    psycopg = postgresql and url.get_dialect().driver == "psycopg"
    engine = sa.create_engine(
        url,
        pool_size=2,
        pool_pre_ping=not psycopg,
        isolation_level=isolation,
        connect_args={name: value for name, value in defaults.items() if name not in url.query},
    )
    if psycopg:
        # Imported only here: the driver need not be installed for other databases.
        from roost.storage.psycopg_connection import Connection as PsycopgConnection
        from roost.storage.psycopg_connection import connection_class, was_ended

        answered = connection_class(answer_seconds)

        @sa.event.listens_for(engine, "do_connect")
        def connect(_: object, __: object, arguments: Any, parameters: Any) -> PsycopgConnection:
            return answered.connect(*arguments, **parameters)

        @sa.event.listens_for(engine, "checkin")
        def idle(_: object, record: Any) -> None:
            record.info["is_idle"] = True

        @sa.event.listens_for(engine, "checkout")
        def check(connection: PsycopgConnection, record: Any, _: object) -> None:
            # Replaces a ping, which costs as much as a short statement. A new connection needs no check.
            if record.info.pop("is_idle", False) and was_ended(connection):
                raise sa.exc.InvalidatePoolError

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            settings = (
                _postgresql(read_only, planning, lock_seconds)
                if postgresql
                else _mariadb(cursor, read_only, lock_seconds)
            )
            for statement in settings:
                cursor.execute(statement)
        connection.commit()

    return engine


def _postgresql(read_only: bool, planning: Sequence[str], lock_seconds: float) -> list[str]:
    settings = [f"SET lock_timeout = '{max(1, round(lock_seconds * 1000))}ms'", *planning]
    return [*settings, "SET default_transaction_read_only = on"] if read_only else settings


def _mariadb(cursor: Any, read_only: bool, lock_seconds: float) -> list[str]:
    settings = [
        "SET SESSION sql_mode = 'TRADITIONAL'",
        # GROUP_CONCAT truncates longer results, possibly inside a number, with a warning only.
        "SET SESSION group_concat_max_len = 1073741824",
        f"SET SESSION innodb_lock_wait_timeout = {max(1, round(lock_seconds))}",
    ]
    if cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'") and cursor.fetchone()[1] == "ON":
        settings.append("SET SESSION wsrep_sync_wait = 1")
    return [*settings, "SET SESSION TRANSACTION READ ONLY"] if read_only else settings


def _sqlite(url: URL, begin: str | None, read_only: bool, seconds: float) -> Engine:
    lock_seconds = seconds * LOCK_WAIT_SHARE
    engine = sa.create_engine(
        url,
        poolclass=sa.pool.QueuePool,
        pool_size=2,
        connect_args={
            "check_same_thread": False,
            "timeout": BUSY_SECONDS if begin == BEGIN_WRITING else lock_seconds,
        },
    )
    settings = ("query_only=ON",) if read_only else ("journal_mode=WAL", "synchronous=FULL")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # sqlite3's transaction handling is off: the engine sends BEGIN itself.
        connection.isolation_level = None
        for setting in (*settings, "foreign_keys=ON"):
            # SQLite itself does not wait while a file changes to WAL.
            _while_busy(connection.execute, f"PRAGMA {setting}", lock_seconds)

    if begin is not None:

        @sa.event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            driver: Any = connection.connection.driver_connection
            try:
                _while_busy(driver.execute, begin, lock_seconds)
            except sqlite3.OperationalError:
                # Once more for an error of SQLAlchemy's, as those of all statements are.
                connection.exec_driver_sql(begin)

    return engine


def _while_busy(execute: Callable[[str], object], statement: str, lock_seconds: float) -> None:
    """Execute a statement of SQLite, again while the file is busy, for so many seconds."""
    until = time.monotonic() + lock_seconds
    while True:
        try:
            execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(BUSY_SECONDS)


def check_file(url: DatabaseUrl, *, must_exist: bool) -> None:
    """Check the file of a SQLite database, and create it unless it ``must_exist``.

    Raises `DatabaseUnavailable`.
    """
    name = url.parsed.database
    if not name or name == ":memory:":
        # Each connection would have a memory database of its own.
        raise DatabaseUnavailable(f"cannot open database {url}: name a file, as in sqlite:///roost.db")
    if Path(name).exists():
        return
    if must_exist:
        raise DatabaseUnavailable(f"cannot open database {url}: there is no file {name}")
    # SQLite would create a file that all users may read; it gives the files beside it the same mode. If
    # the file cannot be created here, SQLite reports the reason when it opens it.
    with contextlib.suppress(OSError):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, FILE_MODE))
