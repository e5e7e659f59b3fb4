"""Many rows in one statement, as each database takes them fastest.

PostgreSQL: the columns as arrays, which one statement unnests; row by row each would be a message. SQLite and
MariaDB: the driver's own ``executemany``; through SQLAlchemy each row's parameters would be put
together one by one, which took longer than SQLite takes for the row.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Dialect

Row = dict[str, Any]


class Bulk:
    """One kind of statement, for any number of rows, on one table.

    ``one``: for one row; its parameters are named as the rows' members are. ``all_at_once``: the same for
    arrays of them.
    """

    def __init__(self, one: sa.UpdateBase, all_at_once: sa.UpdateBase, names: Sequence[str]) -> None:
        self._one = one
        self._all_at_once = all_at_once
        self._names = names
        self._compiled: dict[tuple[str, str], tuple[str, list[str] | None]] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Execute it for all rows."""
        if connection.dialect.name == "postgresql":
            columns = {f"all_{name}": [row[name] for row in rows] for name in self._names}
            connection.execute(self._all_at_once, columns)
            return
        text, names = self._text(connection.dialect)
        if names is None:
            connection.exec_driver_sql(text, list(rows))
            return
        parts = itemgetter(*names)
        connection.exec_driver_sql(
            text, list(map(parts, rows)) if len(names) > 1 else [(parts(row),) for row in rows]
        )

    def _text(self, dialect: Dialect) -> tuple[str, list[str] | None]:
        """The text, and the order in which it takes parameters, None if it takes them by name."""
        kind = (dialect.name, dialect.paramstyle)
        if kind not in self._compiled:
            compiled = self._one.compile(dialect=dialect)
            assert isinstance(compiled, sa.sql.compiler.SQLCompiler)
            self._compiled[kind] = str(compiled), compiled.positiontup
        return self._compiled[kind]


def bulk_insert(table: sa.Table) -> Bulk:
    """Rows with all columns of a table."""
    names = [column.name for column in table.columns]
    given = _unnested(table, {name: name for name in names})
    return Bulk(sa.insert(table), sa.insert(table).from_select(names, sa.select(given)), names)


def bulk_update(table: sa.Table, keys: Sequence[str], values: Sequence[str]) -> Bulk:
    """Rows with ``values``, and the key of the row to update as ``key_…``."""
    parameters = {f"key_{key}": key for key in keys} | {name: name for name in values}
    given = _unnested(table, parameters)
    one = sa.update(table).where(*(table.c[key] == sa.bindparam(f"key_{key}") for key in keys))
    together = sa.update(table).where(*(table.c[key] == given.c[f"key_{key}"] for key in keys))
    return Bulk(
        one.values({name: sa.bindparam(name) for name in values}),
        together.values({name: given.c[name] for name in values}),
        list(parameters),
    )


def bulk_delete(table: sa.Table, keys: Sequence[str]) -> Bulk:
    """Rows with the key of the row to delete as ``key_…``."""
    given = _unnested(table, {f"key_{key}": key for key in keys})
    return Bulk(
        sa.delete(table).where(*(table.c[key] == sa.bindparam(f"key_{key}") for key in keys)),
        sa.delete(table).where(*(table.c[key] == given.c[f"key_{key}"] for key in keys)),
        [f"key_{key}" for key in keys],
    )


def _unnested(table: sa.Table, parameters: dict[str, str]) -> sa.Subquery:
    """Rows from arrays: ``parameters`` are the names of the members, and the column that each is for."""
    columns = []
    for name, column in parameters.items():
        array = sa.bindparam(f"all_{name}", type_=ARRAY(table.c[column].type))
        columns.append(sa.func.unnest(array, type_=table.c[column].type).label(name))
    return sa.select(*columns).subquery("given")
