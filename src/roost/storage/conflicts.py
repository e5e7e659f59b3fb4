"""What a driver's error means for the transaction that it ended.

Servers and drivers say it by numbers: MariaDB's error numbers, PostgreSQL's SQLSTATEs, SQLite's result codes.
`trouble` translates them. An error that it does not know and that is about the statement (a key that exists
already, SQL that makes no sense) goes to the caller as it is.

Sources: PostgreSQL 15, appendix A; MariaDB 10.11, error codes; sqlite.org/rescode.html.
"""

import sqlite3
from enum import Enum

from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError


class Trouble(Enum):
    """What happened to a transaction."""

    CONFLICT = "the server undid it for another transaction: nothing was written, and it may be run again"
    LOST = "the connection went away"
    UNREACHABLE = "the database cannot be reached, read or written now"
    FULL = "there is no space left"
    READ_ONLY = "the database takes no writes"
    DAMAGED = "files of the database are damaged"
    REFUSED = "a table, a column or a right is missing"
    REFUSED_ROW = "it broke a rule of a table"


_SERVER_CODES: dict[object, Trouble] = {
    # PostgreSQL: serialization failure, deadlock
    **dict.fromkeys(("40001", "40P01"), Trouble.CONFLICT),
    # MariaDB: deadlock or, on Galera, failed certification (also by COMMIT); record changed since last read
    **dict.fromkeys((1213, 1020), Trouble.CONFLICT),
    # PostgreSQL: idle in a transaction for too long. psycopg does not call it an operational error.
    "25P03": Trouble.UNREACHABLE,
    # PostgreSQL: disk full, file too large. MariaDB: error writing a file, disk full, table full
    **dict.fromkeys(("53100", "54P01", 3, 1021, 1114), Trouble.FULL),
    # PostgreSQL: standby, or set so. MariaDB: --read-only, transaction or server set so
    **dict.fromkeys(("25006", 1290, 1792, 1836), Trouble.READ_ONLY),
    # PostgreSQL: data or index corrupted. MariaDB: key file or index corrupted, table crashed
    **dict.fromkeys(("XX001", "XX002", 126, 1034, 1194, 1195, 1712), Trouble.DAMAGED),
    # PostgreSQL: no such table, column or schema; no right. MariaDB: the same
    **dict.fromkeys(("42P01", "42703", "3F000", "42501"), Trouble.REFUSED),
    **dict.fromkeys((1146, 1054, 1044, 1142, 1143, 1227), Trouble.REFUSED),
    # MariaDB: a CHECK failed. The driver calls it an operational error.
    4025: Trouble.REFUSED_ROW,
}
_SQLITE_CODES: dict[int, Trouble] = {
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    sqlite3.SQLITE_ERROR: Trouble.REFUSED,  # no such table, no such column
    sqlite3.SQLITE_PERM: Trouble.REFUSED,
    sqlite3.SQLITE_AUTH: Trouble.REFUSED,
}
_NOT_COMMITTED = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY})
"""Results of SQLite's COMMIT after which the transaction is not committed.

After an I/O error it may be committed, because the log may hold it.
"""

_ROLLED_BACK = ("22", "23", "25", "40001", "40002", "40P01", "42", "53100", "54")
"""What SQLSTATEs begin with after which PostgreSQL has rolled back, while the connection is there."""

_DUPLICATE_KEY = frozenset(
    {"23505", 1062, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
    | {sqlite3.SQLITE_CONSTRAINT_ROWID}
)


def trouble(error: DBAPIError) -> Trouble | None:
    """What an error says of the database; None if it is about the statement."""
    code = _code(error)
    if code in _SERVER_CODES and not isinstance(error.orig, sqlite3.Error):
        return _SERVER_CODES[code]
    if error.connection_invalidated:
        return Trouble.LOST
    if isinstance(error.orig, sqlite3.Error) and (known := _SQLITE_CODES.get(_sqlite_code(error))):
        return known
    # SQLite has no class of its own for "malformed" and "not a database".
    if isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError:
        return Trouble.UNREACHABLE
    return None


def is_rolled_back(error: DBAPIError) -> bool:
    """Whether an error of COMMIT means for certain that nothing was and will be written."""
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_code(error) in _NOT_COMMITTED
    code = _code(error)
    return isinstance(code, str) and not error.connection_invalidated and code.startswith(_ROLLED_BACK)


def is_duplicate_key(error: DBAPIError) -> bool:
    """Whether a row was refused because another one has its key."""
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) in _DUPLICATE_KEY
    return _code(error) in _DUPLICATE_KEY


def in_one_line(error: DBAPIError) -> str:
    """The driver's own words."""
    return " ".join(str(error.orig).split())


def table_refusing(error: DBAPIError) -> str | None:
    """The table that refused a row, if the driver says so: PostgreSQL's does."""
    return getattr(getattr(error.orig, "diag", None), "table_name", None)


def _sqlite_code(error: DBAPIError) -> int:
    """The primary result code; 0 if the driver's error has none."""
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


def _code(error: DBAPIError) -> object:
    """The server's number for an error (MariaDB), or its SQLSTATE."""
    arguments = getattr(error.orig, "args", ())
    if arguments and isinstance(arguments[0], int):
        return arguments[0]
    return getattr(error.orig, "sqlstate", None)
