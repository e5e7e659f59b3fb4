"""The meaning of a driver's error for the transaction that it ended.

`classify` translates MariaDB's error numbers, PostgreSQL's SQLSTATEs and SQLite's result codes, and
`storage_error` makes an error of this room. An error of the statement itself (a duplicate key, invalid SQL)
goes to the caller as the driver raised it.

Source: PostgreSQL 15, appendix A; MariaDB 10.11, error codes; sqlite.org/rescode.html.
"""

import re
import sqlite3
from enum import Enum
from typing import Protocol

from sqlalchemy.exc import (
    DatabaseError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from roost.storage.errors import (
    ConflictRolledBack,
    ConnectionLost,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseMisconfigured,
    DatabaseReadOnly,
    DatabaseRefused,
    DatabaseUnavailable,
    OutcomeUnknown,
)


class Failure(Enum):
    """Why a transaction failed."""

    CONFLICT = "the server rolled it back in favour of another transaction: it can be run again"
    LOST = "the connection was lost"
    UNREACHABLE = "the database cannot be reached, read or written now"
    FULL = "there is no space left"
    READ_ONLY = "the database accepts no writes"
    DAMAGED = "files of the database are damaged"
    REFUSED = "a table, a column or a privilege is missing"
    REFUSED_ROW = "a row violates a constraint of a table"


_SERVER_CODES: dict[object, Failure] = {
    # PostgreSQL: serialization failure, deadlock
    **dict.fromkeys(("40001", "40P01"), Failure.CONFLICT),
    # MariaDB: deadlock or, on Galera, failed certification (also by COMMIT); record changed since last read
    **dict.fromkeys((1213, 1020), Failure.CONFLICT),
    # PostgreSQL: idle_in_transaction_session_timeout. psycopg does not raise an OperationalError for it.
    "25P03": Failure.UNREACHABLE,
    # PostgreSQL: disk full, file too large. MariaDB: error writing a file, disk full, table full
    **dict.fromkeys(("53100", "54P01", 3, 1021, 1114), Failure.FULL),
    # PostgreSQL: standby, or read-only transaction. MariaDB: server started or set --read-only, transaction
    **dict.fromkeys(("25006", 1290, 1792, 1836), Failure.READ_ONLY),
    # PostgreSQL: data or index corrupted. MariaDB: key file or index corrupted, table crashed
    **dict.fromkeys(("XX001", "XX002", 126, 1034, 1194, 1195, 1712), Failure.DAMAGED),
    # PostgreSQL: no such table, column or schema; no privilege. MariaDB: the same
    **dict.fromkeys(("42P01", "42703", "3F000", "42501"), Failure.REFUSED),
    **dict.fromkeys((1146, 1054, 1044, 1142, 1143, 1227), Failure.REFUSED),
    # MariaDB: a CHECK constraint failed. The driver raises an OperationalError for it.
    4025: Failure.REFUSED_ROW,
}
_SQLITE_CODES: dict[int, Failure] = {
    sqlite3.SQLITE_FULL: Failure.FULL,
    sqlite3.SQLITE_READONLY: Failure.READ_ONLY,
    sqlite3.SQLITE_CORRUPT: Failure.DAMAGED,
    sqlite3.SQLITE_NOTADB: Failure.DAMAGED,
    sqlite3.SQLITE_ERROR: Failure.REFUSED,  # no such table, no such column
    sqlite3.SQLITE_PERM: Failure.REFUSED,
    sqlite3.SQLITE_AUTH: Failure.REFUSED,
}
_NOT_COMMITTED = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY})
"""SQLite's result codes of a COMMIT after which the transaction is not committed.

After an I/O error it may be committed, because the write-ahead log may contain it.
"""

_ROLLED_BACK = ("22", "23", "25", "40001", "40002", "40P01", "42", "53100", "54")
"""Prefixes of the SQLSTATEs of a COMMIT that PostgreSQL has rolled back, if the connection is not lost."""

_REFUSED_AT_LOGIN = frozenset({1044, 1045, 1049, "28000", "28P01", "3D000"})
"""MariaDB: no privilege, wrong password, no such database. PostgreSQL: no such user, wrong password, no such
database."""

_LOGIN_REFUSED = re.compile(
    r'FATAL:\s+(database ".*" does not exist|role ".*" does not exist|password authentication failed'
    r"|no pg_hba\.conf entry)|invalid (sslmode|port|connection) |no password supplied"
)

_DUPLICATE_KEY = frozenset(
    {"23505", 1062, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
    | {sqlite3.SQLITE_CONSTRAINT_ROWID}
)


_ERRORS: dict[Failure, type[DatabaseUnavailable]] = {
    Failure.CONFLICT: ConflictRolledBack,
    Failure.LOST: ConnectionLost,
    Failure.FULL: DatabaseFull,
    Failure.READ_ONLY: DatabaseReadOnly,
    Failure.DAMAGED: DatabaseDamaged,
    Failure.REFUSED: DatabaseRefused,
}


class DescribedDatabase(Protocol):
    """A database as errors need it: ``str`` gives its name, ``hide`` removes its secrets from a message."""

    def hide(self, message: str) -> str: ...


def storage_error(
    error: DBAPIError, database: DescribedDatabase, committing: bool = False
) -> Exception | None:
    """Return the error to raise in place of a driver's; None if the driver's own error is to be raised.

    Args:
        error: the driver's error.
        database: named in the text.
        committing: the error came from COMMIT, so that the transaction may have been written.
    """
    text = f"database {database}: {database.hide(driver_message(error))}"
    failure = classify(error)
    if failure is None:
        return None
    if failure is Failure.REFUSED_ROW:
        assert error.orig is not None
        return IntegrityError(error.statement, error.params, error.orig)
    if failure is not Failure.CONFLICT and committing and not is_rolled_back(error):
        return OutcomeUnknown(text)
    return _ERRORS.get(failure, DatabaseUnavailable)(text)


def opening_error(error: DBAPIError, database: DescribedDatabase) -> DatabaseUnavailable:
    """Return the error of a database that cannot be opened."""
    message = driver_message(error)
    refused = (
        # The driver does not know a parameter of the URL.
        type(error) is ProgrammingError
        or _code(error) in _REFUSED_AT_LOGIN
        # libpq gives the reason for a refused login only in its text.
        or _LOGIN_REFUSED.search(message) is not None
    )
    kind = DatabaseMisconfigured if refused else DatabaseUnavailable
    return kind(f"cannot open database {database}: {database.hide(message)}")


def classify(error: DBAPIError) -> Failure | None:
    """Return why a driver's error ended the transaction; None for an error of the statement itself."""
    code = _code(error)
    if code in _SERVER_CODES and not isinstance(error.orig, sqlite3.Error):
        return _SERVER_CODES[code]
    if error.connection_invalidated:
        return Failure.LOST
    if isinstance(error.orig, sqlite3.Error) and (known := _SQLITE_CODES.get(_sqlite_code(error))):
        return known
    # For "malformed" and "not a database" sqlite3 raises DatabaseError itself, no subclass.
    if isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError:
        return Failure.UNREACHABLE
    return None


def is_rolled_back(error: DBAPIError) -> bool:
    """Return whether an error of COMMIT guarantees that the transaction is not and will not be written."""
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_code(error) in _NOT_COMMITTED
    code = _code(error)
    return isinstance(code, str) and not error.connection_invalidated and code.startswith(_ROLLED_BACK)


def is_duplicate_key(error: DBAPIError) -> bool:
    """Return whether a row was refused because its key exists already."""
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) in _DUPLICATE_KEY
    return _code(error) in _DUPLICATE_KEY


def driver_message(error: DBAPIError) -> str:
    """Return the driver's message on one line."""
    return " ".join(str(error.orig).split())


def table_refusing(error: DBAPIError) -> str | None:
    """Return the table that refused a row; None if the driver does not name it. Only PostgreSQL's does."""
    return getattr(getattr(error.orig, "diag", None), "table_name", None)


def _sqlite_code(error: DBAPIError) -> int:
    """SQLite's primary result code; 0 if the driver's error has none."""
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


def _code(error: DBAPIError) -> object:
    """MariaDB's error number, or PostgreSQL's SQLSTATE; None for other drivers."""
    arguments = getattr(error.orig, "args", ())
    if arguments and isinstance(arguments[0], int):
        return arguments[0]
    return getattr(error.orig, "sqlstate", None)
