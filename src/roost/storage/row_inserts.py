"""Inserts of many rows, several in one statement.

``executemany`` runs the statement once for each row. The driver of SQLite releases Python's lock for each of
these runs and waits for it afterwards, up to the switch interval (5 ms) while another thread computes, and
each return interrupts that thread. One statement for many rows releases the lock once: SQLite works on all of
them while the other thread goes on. PostgreSQL gets one message instead of one for each row.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

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
