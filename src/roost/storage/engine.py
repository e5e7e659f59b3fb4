"""Engines: how connections to each kind of database are opened and set up.

SQLite: WAL, synchronous=FULL, foreign keys on, the transaction's BEGIN ours to choose.
PostgreSQL: a dead peer is noticed in seconds, a lock is waited for no longer than elsewhere.
MariaDB: the same; values are never cut to fit; on Galera a transaction begins by waiting until this node has
applied what the whole cluster has committed, so that what was written through one node is read through
another.
"""

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

BUSY_SECONDS = 30
"""How long a writer waits for another's transaction."""

CONNECT_SECONDS = 5
ANSWER_SECONDS = 60
"""A server that says nothing for so long is gone. More than `BUSY_SECONDS`."""

WHOLE_TABLES = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""PostgreSQL's settings for plans that read a table from end to end."""

# PostgreSQL keeps a statement's plan from the sixth time on, also one that was made while a table was empty:
# to read it from end to end, however long it becomes, until it is analyzed. Commits and looks take a few rows
# by their keys, and are planned for nothing else (rows that come as JSON it takes for a hundred, and for so
# many it would read all of ten thousand providers). What reads much is planned each time, for tables as they
# are.
_BY_KEY = tuple(f"SET {setting} = off" for setting in WHOLE_TABLES)
_EACH_TIME = ("SET plan_cache_mode = force_custom_plan",)

_POSTGRESQL: Mapping[str, int] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}
_MARIADB: Mapping[str, int] = {
    "connect_timeout": CONNECT_SECONDS,
    "read_timeout": ANSWER_SECONDS,
    "write_timeout": ANSWER_SECONDS,
}


def for_reading_only(url: URL) -> URL:
    """The URL to open a database with that is only read.

    Reading a SQLite file in WAL mode makes two files beside it. Where this process may not make or write them,
    SQLite can still read the file as one that nobody changes; but not if a log is beside it, which may hold
    newer commits.
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


def reading_engine(url: URL, read_only: bool) -> Engine:
    """Connections whose transactions see one snapshot. Raises ArgumentError or ImportError."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, "BEGIN", read_only)
    return _server(url, "REPEATABLE READ", read_only, _EACH_TIME)


def writing_engine(url: URL, read_only: bool) -> Engine:
    """Connections whose transactions write. Raises ArgumentError or ImportError."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, "BEGIN IMMEDIATE", read_only)
    return _server(url, "READ COMMITTED", read_only, _BY_KEY)


def looking_engine(url: URL) -> Engine:
    """Connections without transactions: each statement sees what is committed when it begins. Raises
    ArgumentError or ImportError."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, None, read_only=True)
    return _server(url, "AUTOCOMMIT", True, _BY_KEY)


def _server(url: URL, isolation: str, read_only: bool, planning: Sequence[str]) -> Engine:
    postgresql = url.get_backend_name() == "postgresql"
    defaults = _POSTGRESQL if postgresql else _MARIADB
    engine = sa.create_engine(
        url,
        pool_size=2,
        pool_pre_ping=True,
        isolation_level=isolation,
        connect_args={name: value for name, value in defaults.items() if name not in url.query},
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            settings = _postgresql(read_only, planning) if postgresql else _mariadb(cursor, read_only)
            for statement in settings:
                cursor.execute(statement)
        connection.commit()

    return engine


def _postgresql(read_only: bool, planning: Sequence[str]) -> list[str]:
    settings = [f"SET lock_timeout = '{BUSY_SECONDS}s'", *planning]
    return [*settings, "SET default_transaction_read_only = on"] if read_only else settings


def _mariadb(cursor: Any, read_only: bool) -> list[str]:
    settings = [
        "SET SESSION sql_mode = 'TRADITIONAL'",
        # Past its limit GROUP_CONCAT cuts a list in the middle of a number, and only warns.
        "SET SESSION group_concat_max_len = 1073741824",
        f"SET SESSION innodb_lock_wait_timeout = {BUSY_SECONDS}",
    ]
    if cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'") and cursor.fetchone()[1] == "ON":
        settings.append("SET SESSION wsrep_sync_wait = 1")
    return [*settings, "SET SESSION TRANSACTION READ ONLY"] if read_only else settings


def _sqlite(url: URL, begin: str | None, read_only: bool) -> Engine:
    engine = sa.create_engine(
        url,
        poolclass=sa.pool.QueuePool,
        pool_size=2,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
    )
    settings = ("query_only=ON",) if read_only else ("journal_mode=WAL", "synchronous=FULL")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # The driver's own transaction handling is off, so that BEGIN is ours to choose.
        connection.isolation_level = None
        for setting in (*settings, "foreign_keys=ON"):
            _set(connection, setting)

    if begin is not None:

        @sa.event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

    return engine


def _set(connection: Any, setting: str) -> None:
    """Set one of SQLite's settings, waiting for others: it does not wait itself while a file becomes WAL."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)
