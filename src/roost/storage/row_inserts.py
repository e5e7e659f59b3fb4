"""Inserts of many rows, several in one statement.

``executemany`` runs the statement once for each row. The driver of SQLite releases Python's lock for each of
these runs and waits for it afterwards, up to the switch interval (5 ms) while another thread computes, and
each return interrupts that thread. One statement for many rows releases the lock once: SQLite works on all of
them while the other thread goes on. PostgreSQL gets one message instead of one for each row.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.storage.driver_errors import is_duplicate_key
from roost.storage.errors import ConflictRolledBack

PARAMETERS_PER_STATEMENT = 900
"""Values in one statement. Old versions of SQLite take up to 999."""


def insert_rows(
    connection: Connection, table: sa.Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows; their values have the order of ``columns`` and are passed to the driver as they are.

    SQLAlchemy Core would process every value, which costs as much again.

    Raises:
        sqlalchemy.exc.DBAPIError: the database refuses a row.
    """
    if not rows:
        return
    dialect = connection.dialect
    if dialect.driver == "pymysql":
        # The driver's executemany joins rows itself, up to the size that the server takes.
        connection.exec_driver_sql(insert_text(table, columns, 1, dialect), [*rows])
        return
    size = max(1, PARAMETERS_PER_STATEMENT // len(columns))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        values = tuple(chain.from_iterable(some))
        connection.exec_driver_sql(insert_text(table, columns, len(some), dialect), values)


@lru_cache(512)
def insert_text(table: sa.Table, columns: tuple[str, ...], rows: int, dialect: sa.Dialect) -> str:
    """Return the SQL text that inserts this number of rows, with positional parameters."""
    prepared = dialect.identifier_preparer
    names = ", ".join(prepared.format_column(table.c[name]) for name in columns)
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    row = f"({', '.join([mark] * len(columns))})"
    return f"INSERT INTO {prepared.format_table(table)} ({names}) VALUES {', '.join([row] * rows)}"


def insert_missing(
    connection: Connection, insert: sa.Insert, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that the transaction has found missing.

    Raises:
        ConflictRolledBack: another transaction has inserted one of them meanwhile. The work is run again, and
            finds it.
    """
    try:
        connection.execute(insert, rows)
    except IntegrityError as error:
        if not is_duplicate_key(error):
            raise
        raise ConflictRolledBack(f"another transaction made a row of {insert.table.name}") from error
