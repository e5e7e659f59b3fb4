"""Statements that need not wait for each other's answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Have PostgreSQL send its answers to everything executed in here together, at the end.

    A way there and back for all statements instead of one for each. Only for such as give no rows, as there
    is nothing to be read yet; and for what `gives_a_row` asks. What is wrong with one is raised at the end,
    if not sooner; those after it did nothing. With other databases' drivers each statement is on its own, as
    ever.
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


def gives_a_row(
    connection: Connection, query: sa.Select[Any], parameters: Mapping[str, object]
) -> Callable[[], bool]:
    """Ask, in here, whether a query gives a row. Call what is returned after the end, to be told."""
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


def _as_sqlalchemy_would(connection: Connection, error: Exception) -> BaseException:
    """The driver's error as the one that SQLAlchemy raises for it: it sees none of a pipeline's end."""
    dialect = connection.dialect
    dbapi: Any = dialect.loaded_dbapi
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    return DBAPIError.instance(None, None, error, dbapi.Error, connection_invalidated=lost, dialect=dialect)
