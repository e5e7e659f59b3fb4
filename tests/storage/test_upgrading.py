"""Tests on tables that repeated statements made are tests on the tables of the migrations."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from roost.storage import Database
from roost.storage.identity import TABLE, read_identity
from roost.storage.schema import Schema
from support.databases import KINDS, Servers
from support.preparing import SCHEMAS
from support.upgrading import upgrade_empty


def contents(database: Database) -> dict[str, Any]:
    """Each table with its columns, keys, indexes and checks, and its rows."""

    def read(connection: sa.Connection) -> dict[str, Any]:
        inspector, found = sa.inspect(connection), {}
        for name in inspector.get_table_names():
            told = (
                inspector.get_columns(name),
                [inspector.get_pk_constraint(name)],
                inspector.get_unique_constraints(name),
                inspector.get_foreign_keys(name),
                map(plain, inspector.get_indexes(name)),
                inspector.get_check_constraints(name),
                inspector.get_table_options(name).items(),
            )
            rows = connection.execute(sa.select(sa.text("*")).select_from(sa.table(name))).all()
            # Each database has an identity of its own.
            found[name] = (
                [sorted(map(repr, each)) for each in told],
                len(rows) if name == TABLE else sorted(map(repr, rows)),
            )
        return found

    return database.read_now(read)


def plain(index: Any) -> dict[str, Any]:
    """An index with the conditions of its options as texts."""
    options = index.get("dialect_options", {})
    return {**index, "dialect_options": {name: str(value) for name, value in options.items()}}


@pytest.mark.parametrize(
    "schemas",
    [*([schema] for schema in SCHEMAS), SCHEMAS],
    ids=lambda schemas: "-".join(s.name for s in schemas),
)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "galera"])
def test_repeated_statements_make_the_tables_of_the_migrations(
    servers: Servers, tmp_path, schemas: list[Schema], kind: str
) -> None:
    found, identities = [], set()
    # The second of two that are upgraded so is certainly made by repeated statements.
    for number, upgrade in enumerate((Schema.upgrade, upgrade_empty, upgrade_empty)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with servers.place(kind, folder) as place:
            database = Database(place.url)
            for schema in schemas:
                upgrade(schema, database)
                assert schema.revision(database) == schema.newest
            found.append(contents(database))
            identities.add(database.read_now(read_identity))
            asyncio.run(database.close())
    assert found[0] == found[1] == found[2]
    assert len(identities) == 3


def test_a_database_that_has_the_tables_stays_as_it_is(tmp_path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'roost.db'}")
    [schema, *_] = SCHEMAS
    for _ in range(3):
        upgrade_empty(schema, database)
    assert schema.revision(database) == schema.newest
    asyncio.run(database.close())
