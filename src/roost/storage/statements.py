"""Statements with long lists of names, and several statements in one round trip.

SQLAlchemy writes ``column IN (…)`` with a parameter for each value, so the text of a statement depends on
their number: SQLAlchemy builds it anew for each execution, and PostgreSQL parses and plans it anew.
Statements that are executed often need a text that stays the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal

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


def one_of(column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    """Return the condition that a column of texts or numbers has one of the values of parameter ``name``.

    On PostgreSQL the values are one parameter, an array; elsewhere each value is a parameter, as in ``IN``.
    """
    return _OneOf(column, name)


def one_of_constants(column: sa.ColumnElement[Any], values: Iterable[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of the words in ``values``, which are written into the SQL.

    Raises:
        ValueError: a value is not a word of letters, digits, ``_`` and ``-``.
    """
    words = sorted(values)
    for word in words:
        if not word.replace("-", "_").isidentifier():
            raise ValueError(f"not a word: {word!r}")
    return column.in_([sa.literal_column(f"'{word}'") for word in words])


class _OneOf(sa.ColumnElement[bool]):
    inherit_cache = True
    # Otherwise SQLAlchemy appends `= 1` on SQLite and MariaDB, which have no booleans.
    _is_implicitly_boolean = True
    _traverse_internals = [  # noqa: RUF012
        ("column", InternalTraversal.dp_clauseelement),
        ("name", InternalTraversal.dp_string),
    ]

    def __init__(self, column: sa.ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name
        self.type = sa.Boolean()


@compiles(_OneOf)
def _as_in(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    values: sa.BindParameter[Any] = sa.bindparam(element.name, expanding=True, type_=element.column.type)
    return compiler.process(element.column.in_(values), **options)


@compiles(_OneOf, "postgresql")
def _as_any(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    # An array of VARCHAR(36) would truncate longer values: a row would match by its first 36 characters.
    of_column = element.column.type
    item: sa.types.TypeEngine[Any] = sa.Text() if isinstance(of_column, sa.String) else of_column
    values: sa.BindParameter[Any] = sa.bindparam(element.name, type_=ARRAY(item, dimensions=1))
    return compiler.process(element.column == sa.any_(values), **options)
