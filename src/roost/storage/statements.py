"""Statements with long lists of names, and several statements in one round trip."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

NAMES_PER_STATEMENT = 500
"""Names in the IN list of one statement. Some databases accept only about a thousand parameters."""


def in_batches(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield each distinct name once, in lists of at most `NAMES_PER_STATEMENT`."""
    distinct = iter(dict.fromkeys(names))
    while some := list(islice(distinct, NAMES_PER_STATEMENT)):
        yield some


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Send the statements of the ``with`` block to PostgreSQL in one round trip.

    The statements must return no rows, because the answers arrive at the end of the block; a query goes
    through `deferred_exists`. The error of a statement is raised at the end of the block or earlier, and the
    statements after it have no effect. Drivers other than psycopg send each statement by itself.

    Raises:
        sqlalchemy.exc.DBAPIError: a statement failed.
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
        raise _as_sqlalchemy_error(connection, error) from error


def deferred_exists(
    connection: Connection, query: sa.Select[Any], parameters: Mapping[str, object]
) -> Callable[[], bool]:
    """Send a query in a `pipelined` block. After the block the returned function tells if a row exists."""
    if connection.dialect.driver != "psycopg":
        found = connection.execute(query, parameters).first() is not None
        return lambda: found
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    cursor.execute(_text(query), parameters)
    return lambda: cursor.fetchone() is not None


@cache
def _text(query: sa.Select[Any]) -> str:
    return str(query.compile(dialect=psycopg.dialect()))  # type: ignore[no-untyped-call]


def _as_sqlalchemy_error(connection: Connection, error: Exception) -> BaseException:
    """Translate a driver's error: SQLAlchemy does not see errors at the end of a pipeline."""
    dialect = connection.dialect
    dbapi: Any = dialect.loaded_dbapi
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    return DBAPIError.instance(None, None, error, dbapi.Error, connection_invalidated=lost, dialect=dialect)
