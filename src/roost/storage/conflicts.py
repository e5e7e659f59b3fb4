"""What a driver's error means for the transaction that it ended.

    CONFLICT     PostgreSQL 40001 serialization failure, 40P01 deadlock; MariaDB 1213 deadlock or, on Galera,
                 failed certification (also by COMMIT), 1020 record changed since last read
    LOST         whatever SQLAlchemy knows to mean that the connection is gone (2006, 2013, ...)
    UNREACHABLE  cannot connect, shutting down, no room, a lock waited for too long (55P03, 1205, SQLite's
                 "database is locked"), Galera 1047 node without quorum, PostgreSQL 25006 standby
    REFUSED_ROW  MariaDB 4025 a CHECK failed

What is not among them (a key that is there already, SQL that makes no sense) is no trouble of the database's:
it goes to the caller as it is.
"""

from enum import Enum

from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError

_CONFLICTS = frozenset({"40001", "40P01", 1213, 1020})
_UNREACHABLE = frozenset({"25006", "25P03"})
"""Those that psycopg does not call operational errors."""
_CHECK_FAILED = 4025
"""The driver calls it an operational error."""


class Trouble(Enum):
    """What happened to a transaction."""

    CONFLICT = "the server undid it for another's sake: nothing was written, and running it again may work"
    LOST = "the connection went away"
    UNREACHABLE = "the database cannot be reached, read or written now"
    REFUSED_ROW = "it broke a rule of a table"


def trouble(error: DBAPIError) -> Trouble | None:
    """What an error says of the database, None if it is about the statement."""
    code = _code(error)
    if code in _CONFLICTS:
        return Trouble.CONFLICT
    if code == _CHECK_FAILED:
        return Trouble.REFUSED_ROW
    if error.connection_invalidated:
        return Trouble.LOST
    # SQLite has no class of its own for "malformed" and "not a database".
    if isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError:
        return Trouble.UNREACHABLE
    return Trouble.UNREACHABLE if code in _UNREACHABLE else None


def in_one_line(error: DBAPIError) -> str:
    """The driver's own words."""
    return " ".join(str(error.orig).split())


def table_refusing(error: DBAPIError) -> str | None:
    """The table that refused a row, if the driver says so: PostgreSQL's does."""
    return getattr(getattr(error.orig, "diag", None), "table_name", None)


def _code(error: DBAPIError) -> object:
    """The server's number for an error (MariaDB), or its SQLSTATE."""
    arguments = getattr(error.orig, "args", ())
    if arguments and isinstance(arguments[0], int):
        return arguments[0]
    return getattr(error.orig, "sqlstate", None)
