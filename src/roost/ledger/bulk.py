"""Bulk statements: many rows in one statement, in the fastest way of each database.

- PostgreSQL takes all rows as one JSON text. Row by row, each would be a message; the driver builds arrays in
  Python, element by element.
- MariaDB does too, for updates and deletes of rows that are all numbers. Its driver would send them one by
  one, and wait for each.
- SQLite takes many inserted rows in one statement. Row by row, its driver would release Python's lock and
  wait for it each time.
- Otherwise the driver's own ``executemany`` is used. SQLAlchemy builds the parameters of each row, which took
  longer than SQLite takes for the row.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.engine import Connection, Dialect

from roost.storage import insert_rows

Row = dict[str, Any]


class Bulk:
    """One statement on one table, for any number of rows.

    ``one``: the statement for one row; its parameters have the names of the row's members. ``all_at_once``:
    the statement for all rows; its parameter ``rows`` is a JSON array of rows. ``on_mariadb``: the same in
    MariaDB's SQL, with the JSON as its only parameter; None: MariaDB gets the rows by ``executemany``.
    ``inserted``: the table of which ``one`` inserts all columns, if it does.
    """

    def __init__(
        self,
        one: sa.UpdateBase,
        all_at_once: sa.UpdateBase,
        on_mariadb: str | None = None,
        inserted: sa.Table | None = None,
    ) -> None:
        self._one = one
        self._all_at_once = all_at_once
        self._on_mariadb = on_mariadb
        self._inserted = inserted
        self._columns = () if inserted is None else tuple(column.name for column in inserted.columns)
        self._compiled: dict[tuple[str, str], tuple[str, list[str] | None]] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Execute the statement for all rows."""
        kind = connection.dialect.name
        if kind == "postgresql":
            connection.execute(self._all_at_once, {"rows": _json(rows)})
            return
        if kind != "sqlite" and self._on_mariadb is not None:
            connection.exec_driver_sql(self._on_mariadb, (_json(rows),))
            return
        if kind == "sqlite" and self._inserted is not None:
            parts = itemgetter(*self._columns)
            insert_rows(connection, self._inserted, self._columns, list(map(parts, rows)))
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
        """Return the SQL text, and its positional parameters' names in order; None if they are named."""
        kind = (dialect.name, dialect.paramstyle)
        if kind not in self._compiled:
            compiled = self._one.compile(dialect=dialect)
            assert isinstance(compiled, sa.sql.compiler.SQLCompiler)
            self._compiled[kind] = str(compiled), compiled.positiontup
        return self._compiled[kind]


def bulk_insert(table: sa.Table) -> Bulk:
    """Return a statement that inserts rows, each with all columns of the table."""
    names = [column.name for column in table.columns]
    given = _rows(table, {name: name for name in names})
    all_at_once = sa.insert(table).from_select(names, sa.select(given))
    return Bulk(sa.insert(table), all_at_once, inserted=table)


def bulk_update(table: sa.Table, keys: Sequence[str], values: Sequence[str]) -> Bulk:
    """Return a statement that updates rows: each has new ``values``, and its key in members ``key_…``."""
    parameters = {f"key_{key}": key for key in keys} | {name: name for name in values}
    given = _rows(table, parameters)
    one = sa.update(table).where(*(table.c[key] == sa.bindparam(f"key_{key}") for key in keys))
    together = sa.update(table).where(*(table.c[key] == given.c[f"key_{key}"] for key in keys))
    joined = _joined(table, keys, parameters)
    changed = ", ".join(f"{table.name}.{name} = given.{name}" for name in values)
    return Bulk(
        one.values({name: sa.bindparam(name) for name in values}),
        together.values({name: given.c[name] for name in values}),
        None if joined is None else f"UPDATE {joined} SET {changed}",
    )


def bulk_delete(table: sa.Table, keys: Sequence[str]) -> Bulk:
    """Return a statement that deletes rows. Each has its key in members named ``key_…``."""
    parameters = {f"key_{key}": key for key in keys}
    given = _rows(table, parameters)
    joined = _joined(table, keys, parameters)
    return Bulk(
        sa.delete(table).where(*(table.c[key] == sa.bindparam(f"key_{key}") for key in keys)),
        sa.delete(table).where(*(table.c[key] == given.c[f"key_{key}"] for key in keys)),
        None if joined is None else f"DELETE {table.name} FROM {joined}",
    )


def _json(rows: Sequence[Row]) -> str:
    return msgspec.json.encode(rows).decode()


def _rows(table: sa.Table, members: dict[str, str]) -> sa.TableValuedAlias:
    """Return the parameter ``rows`` as a table. ``members``: the column of ``table`` for each member."""
    text = sa.cast(sa.bindparam("rows", type_=sa.Text()), JSON)
    columns = [sa.column(name, table.c[column].type) for name, column in members.items()]
    return (
        sa.func.json_to_recordset(text).table_valued(*columns).render_derived(name="given", with_types=True)
    )


def _joined(table: sa.Table, keys: Sequence[str], members: dict[str, str]) -> str | None:
    """Return MariaDB's SQL for the table joined with the JSON parameter by ``keys``.

    None unless all members are numbers: text would be compared by another collation than the table's, and
    truncated.
    """
    types = {name: table.c[column].type for name, column in members.items()}
    if not all(isinstance(kind, sa.Integer | sa.Float) for kind in types.values()):
        return None
    dialect = mysql.dialect()
    columns = ", ".join(
        f"{name} {kind.compile(dialect)} PATH '$.{name}' ERROR ON EMPTY ERROR ON ERROR"
        for name, kind in types.items()
    )
    same = " AND ".join(f"{table.name}.{key} = given.key_{key}" for key in keys)
    return f"{table.name} JOIN JSON_TABLE(%s, '$[*]' COLUMNS ({columns})) AS given ON {same}"
