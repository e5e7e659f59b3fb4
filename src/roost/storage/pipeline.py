"""Statements that need not wait for each other's answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Have PostgreSQL send its answers to everything executed in here together, at the end.

    A way there and back for all statements instead of one for each. Only for such as give no rows: there is
    nothing to be read yet. What is wrong with one is raised at the end, if not sooner; those after it did
    nothing. With other databases' drivers each statement is on its own, as ever.
    """
    if connection.dialect.driver != "psycopg":
        yield
        return
    driver: Any = connection.connection.driver_connection
    errors: Any = connection.dialect.loaded_dbapi
    try:
        with driver.pipeline():
            yield
    except errors.Error as error:
        raise _as_sqlalchemy_would(connection, error) from error


def _as_sqlalchemy_would(connection: Connection, error: Exception) -> BaseException:
    """The driver's error as the one that SQLAlchemy raises for it: it sees none of a pipeline's end."""
    dialect = connection.dialect
    dbapi: Any = dialect.loaded_dbapi
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    return DBAPIError.instance(None, None, error, dbapi.Error, connection_invalidated=lost, dialect=dialect)
