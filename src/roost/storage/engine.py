"""Engines: how connections to each kind of database are opened and set up.

SQLite: WAL, synchronous=FULL, foreign keys on, the transaction's BEGIN ours to choose.
PostgreSQL: a peer that is dead or says nothing is noticed in seconds.
MariaDB: the same; values are never cut to fit; on Galera a transaction begins by waiting until this node has
applied what the whole cluster has committed, so that what was written through one node is read through
another.
"""

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

ANSWER_SECONDS = 10.0
"""Seconds within which an operation of a serving process is answered, also if the database says nothing."""

PATIENT_SECONDS = 600.0
"""The same for a command that works on a whole database, and whose statements may take long."""

CONNECT_SECONDS = 5.0
"""Seconds that making a connection may take at most; fewer if an operation may take fewer."""

LOAD_SECONDS = 60.0
"""Seconds that one statement of a read may take if nobody waits for it: reads load whole tables."""

LOCK_SHARE = 0.5
"""How much of an operation's time it waits for another's lock: not all of it, so that the server says so and
the connection stays."""

WHOLE_TABLES = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""PostgreSQL's settings for plans that read a table from end to end."""

# PostgreSQL keeps a statement's plan from the sixth time on, also one that was made while a table was empty:
# to read it from end to end, however long it becomes, until it is analyzed. Commits and looks take a few rows
# by their keys, and are planned for nothing else (rows that come as JSON it takes for a hundred, and for so
# many it would read all of ten thousand providers). What reads much is planned each time, for tables as they
# are.
_BY_KEY = tuple(f"SET {setting} = off" for setting in WHOLE_TABLES)
_EACH_TIME = ("SET plan_cache_mode = force_custom_plan",)

_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}
"""libpq's parameters by which a dead peer is noticed that nobody waits for."""


def for_reading_only(url: URL) -> URL:
    """The URL to open a database with that is only read.

    Reading a SQLite file in WAL mode makes two files beside it. Where this process may not make or write
    them, SQLite can still read the file as one that nobody changes; but not if a log is beside it, which may
    hold newer commits.
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
    """Connections whose transactions see one snapshot. ``seconds``: what an operation may take.

    Raises ArgumentError or ImportError.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, "BEGIN", read_only, seconds)
    return _server(url, "REPEATABLE READ", read_only, _EACH_TIME, seconds, max(seconds, LOAD_SECONDS))


def writing_engine(url: URL, read_only: bool, seconds: float) -> Engine:
    """Connections whose transactions write. ``seconds``: what an operation may take.

    Raises ArgumentError or ImportError.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, "BEGIN IMMEDIATE", read_only, seconds)
    return _server(url, "READ COMMITTED", read_only, _BY_KEY, seconds, seconds)


def looking_engine(url: URL, seconds: float) -> Engine:
    """Connections without transactions: each statement sees what is committed when it begins.

    ``seconds``: what an operation may take. Raises ArgumentError or ImportError.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, None, True, seconds)
    return _server(url, "AUTOCOMMIT", True, _BY_KEY, seconds, seconds)


def _server(
    url: URL, isolation: str, read_only: bool, planning: Sequence[str], seconds: float, answer_seconds: float
) -> Engine:
    """``seconds``: what an operation may take; ``answer_seconds``: what one statement may take."""
    postgresql = url.get_backend_name() == "postgresql"
    connect_seconds = min(CONNECT_SECONDS, seconds)
    lock_seconds = seconds * LOCK_SHARE
    defaults: dict[str, Any] = {"connect_timeout": connect_seconds}
    if postgresql:
        # libpq counts whole seconds, and takes one for two.
        defaults = {**_KEEPALIVE, "connect_timeout": max(2, round(connect_seconds))}
    else:
        defaults |= {"read_timeout": answer_seconds, "write_timeout": answer_seconds}
    engine = sa.create_engine(
        url,
        pool_size=2,
        pool_pre_ping=True,
        isolation_level=isolation,
        connect_args={name: value for name, value in defaults.items() if name not in url.query},
    )
    if postgresql and engine.dialect.driver == "psycopg":
        # Imported only here: the driver need not be installed for other databases.
        from roost.storage.psycopg_connection import Connection as PsycopgConnection
        from roost.storage.psycopg_connection import connection_class

        answered = connection_class(answer_seconds)

        @sa.event.listens_for(engine, "do_connect")
        def connect(_: object, __: object, arguments: Any, parameters: Any) -> PsycopgConnection:
            return answered.connect(*arguments, **parameters)

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
        # Past its limit GROUP_CONCAT cuts a list in the middle of a number, and only warns.
        "SET SESSION group_concat_max_len = 1073741824",
        f"SET SESSION innodb_lock_wait_timeout = {max(1, round(lock_seconds))}",
    ]
    if cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'") and cursor.fetchone()[1] == "ON":
        settings.append("SET SESSION wsrep_sync_wait = 1")
    return [*settings, "SET SESSION TRANSACTION READ ONLY"] if read_only else settings


def _sqlite(url: URL, begin: str | None, read_only: bool, seconds: float) -> Engine:
    lock_seconds = seconds * LOCK_SHARE
    engine = sa.create_engine(
        url,
        poolclass=sa.pool.QueuePool,
        pool_size=2,
        connect_args={"check_same_thread": False, "timeout": lock_seconds},
    )
    settings = ("query_only=ON",) if read_only else ("journal_mode=WAL", "synchronous=FULL")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # The driver's own transaction handling is off, so that BEGIN is ours to choose.
        connection.isolation_level = None
        for setting in (*settings, "foreign_keys=ON"):
            _set(connection, setting, lock_seconds)

    if begin is not None:

        @sa.event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

    return engine


def _set(connection: Any, setting: str, lock_seconds: float) -> None:
    """Set one of SQLite's settings, waiting for others: it does not wait itself while a file becomes WAL."""
    until = time.monotonic() + lock_seconds
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)
