"""Upgrades of empty databases: the statements of the migrations are kept from the first one and repeated.

Alembic needs more processor time for an upgrade than most tests that begin with one. Tests of the migrations
call `Schema.upgrade` itself.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage import Database
from roost.storage.identity import TABLE, create_identity
from roost.storage.schema import Schema
from support.databases import Place

_LEFT_OUT = ("SELECT", "PRAGMA", "SHOW", "DESCRIBE", "BEGIN")
"""The beginnings of statements that read, and of the one that begins a transaction."""

_kept: dict[tuple[str, str, frozenset[str]], list[tuple[str, Any]]] = {}
"""The statements that change something, with their parameters, by name of the schema, dialect, and the tables
that are there: schemas in one database share tables."""


def upgrade_empty(schema: Schema, database: Database) -> None:
    """Create the tables of a schema, as `Schema.upgrade` does. A database that has them stays as it is."""
    tables = database.read_now(lambda connection: frozenset(sa.inspect(connection).get_table_names()))
    key = (schema.name, database.engine.dialect.name, tables)
    if key not in _kept:
        if schema.revision(database) is None:
            _kept[key] = _recorded(schema, database)
        return

    def repeat(connection: Connection) -> None:
        for statement, parameters in _kept[key]:
            connection.exec_driver_sql(statement, parameters)
        create_identity(connection)

    database.write_now(repeat)


@contextmanager
def two_processes(place: Place, schema: Schema) -> Iterator[tuple[Database, Database]]:
    """One database with the tables of a schema, as two processes open it."""
    first, second = (Database(place.at(number)) for number in range(2))
    upgrade_empty(schema, first)
    try:
        # As a process does at its start: this read waits until its node of a cluster has the tables. A write
        # would not.
        schema.check(second)
        yield first, second
    finally:
        for database in (first, second):
            asyncio.run(database.close())


def _recorded(schema: Schema, database: Database) -> list[tuple[str, Any]]:
    statements: list[tuple[str, Any]] = []

    def record(_: Connection, __: object, statement: str, parameters: Any, *___: object) -> None:
        # Each database has an identity of its own, which the schemas in it share.
        if not statement.lstrip().upper().startswith(_LEFT_OUT) and TABLE not in statement:
            statements.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", record)
    try:
        schema.upgrade(database)
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", record)
    return statements
