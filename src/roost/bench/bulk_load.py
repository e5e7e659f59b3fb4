"""Bulk load of a fleet into a database of Roost.

The ledger would be too slow: a million hosts with forty traits each have forty million rows. The database
itself writes the rows that are equal for all hosts, by arithmetic on provider ids. Python writes only names,
uuids and usages.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.bench.fleets import AGGREGATES, DISABLED_EVERY, PROJECT, USER, FleetPlan, HostBatch
from roost.bench.memory_fleet import FIRST_CUSTOM_TRAIT
from roost.ledger import SCHEMA
from roost.ledger.projection import IDS_OF_A_COMMIT
from roost.ledger.tables import commits, metadata, resource_classes, traits
from roost.ledger.vocabulary import FIRST_CUSTOM_CLASS
from roost.model.vocabulary import DISABLED_TRAIT, standard_resource_classes, standard_traits
from roost.storage import Database

MARIADB_DIALECTS = ("mysql", "mariadb")
"""The names that SQLAlchemy has for MariaDB."""


def bulk_load(database: Database, plan: FleetPlan) -> None:
    """Write the fleet of a plan into an empty database, in one transaction.

    Raises:
        StorageError: The database cannot be written.
    """
    SCHEMA.upgrade(database)
    with _unguarded(database) as connection:
        classes, trait_ids = _write_names(connection, plan)
        for batch in plan.host_batches():
            _copy(connection, "resource_providers", _providers(plan, batch))
            _copy(connection, "consumers", _consumers(batch))
        _write_provider_data(connection, plan, classes, trait_ids)
        for batch in plan.host_batches():
            _copy(connection, "allocations", _allocations(plan, batch, classes))
        row = {"seq": 1, "writer": "bench", "committed_at": 0.0, "changes": "[]"}
        connection.execute(sa.insert(commits), row)


@contextmanager
def _unguarded(database: Database) -> Iterator[Connection]:
    """Open a transaction without foreign key checks and syncs. An interrupted bulk load is dropped."""
    with database.engine.connect() as connection:
        if database.is_sqlite:
            for setting in ("foreign_keys=OFF", "synchronous=OFF", "cache_size=-500000"):
                connection.connection.driver_connection.execute(f"PRAGMA {setting}")  # type: ignore[union-attr]
        elif database.engine.dialect.name in MARIADB_DIALECTS:
            for setting in ("foreign_key_checks = 0", "unique_checks = 0"):
                connection.exec_driver_sql(f"SET SESSION {setting}")
            connection.commit()
        else:
            connection.exec_driver_sql("SET session_replication_role = replica")
            connection.exec_driver_sql("SET synchronous_commit = off")
            connection.commit()
        with connection.begin():
            yield connection
        connection.invalidate()  # the next user of the connection needs the default settings


def _write_names(connection: Connection, plan: FleetPlan) -> tuple[dict[str, int], dict[str, int]]:
    custom_classes, custom_traits = plan.custom_names
    classes = {name: number for number, name in enumerate(standard_resource_classes())}
    classes |= {name: FIRST_CUSTOM_CLASS + number for number, name in enumerate(sorted(custom_classes))}
    ids = {name: number for number, name in enumerate(standard_traits(), 1)}
    ids |= {name: FIRST_CUSTOM_TRAIT + number for number, name in enumerate(sorted(custom_traits))}
    for table, names in ((resource_classes, classes), (traits, ids)):
        connection.execute(sa.insert(table), [{"id": number, "name": name} for name, number in names.items()])
    return classes, ids


def _write_provider_data(
    connection: Connection, plan: FleetPlan, classes: dict[str, int], traits: dict[str, int]
) -> None:
    size = len(plan.tree)
    for place, part in enumerate(plan.tree):
        at_place = f"p.id % {size} = {place}"
        inventories = [
            (classes[name], i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio)
            for name, i in sorted(part.inventories.items())
        ]
        _spread(connection, "inventories", inventories, at_place)
        part_traits = [(traits[name],) for name in sorted(part.traits)]
        _spread(connection, "provider_traits", part_traits, at_place)
    # The remainder is taken away first, because MariaDB's quotients have fractions.
    host = f"((p.id - p.id % {size}) / {size})"
    disabled = f"p.id % {size} = 0 AND {host} % {DISABLED_EVERY} = {DISABLED_EVERY - 1}"
    _spread(connection, "provider_traits", [(traits[DISABLED_TRAIT],)], disabled)
    for number, uuid in enumerate(plan.aggregates()):
        inside = f"p.id % {size} = 0 AND {host} % {AGGREGATES} = {number}"
        _spread(connection, "provider_aggregates", [(uuid,)], inside)


def _spread(connection: Connection, table: str, rows: list[tuple[Any, ...]], where: str) -> None:
    """Write ``rows``, preceded by the provider's id, for each provider that satisfies ``where``."""
    if not rows:
        return
    selects = (
        "SELECT " + ", ".join(f"{_literal(value)} AS column{number}" for number, value in enumerate(row, 1))
        for row in rows
    )
    values = " UNION ALL ".join(selects)
    columns = ", ".join(f"v.column{number}" for number in range(1, len(rows[0]) + 1))
    statement = (
        f"INSERT INTO {table} SELECT p.id, {columns} FROM resource_providers p CROSS JOIN ({values}) AS v "
        f"WHERE {where} ORDER BY p.id"
    )
    in_format = connection.dialect.paramstyle in ("format", "pyformat")
    connection.exec_driver_sql(statement.replace("%", "%%") if in_format else statement)


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _providers(plan: FleetPlan, batch: HostBatch) -> Iterator[tuple[Any, ...]]:
    size = len(plan.tree)
    for index, uuid in enumerate(batch.providers):
        host, place = divmod(batch.first * size + index, size)
        part = plan.tree[place]
        parent = None if part.parent is None else host * size + part.parent
        yield host * size + place, uuid, plan.host_name(host) + part.name, parent, 0, 0.0


def _consumers(batch: HostBatch) -> Iterator[tuple[Any, ...]]:
    for number, uuid in enumerate(batch.consumers, IDS_OF_A_COMMIT + batch.first):
        yield number, uuid, PROJECT, USER, "INSTANCE", 1, 0.0, None, None


def _allocations(plan: FleetPlan, batch: HostBatch, classes: dict[str, int]) -> Iterator[tuple[Any, ...]]:
    size = len(plan.tree)
    usages = [
        (place, classes[name], amount)
        for place, part in enumerate(plan.tree)
        for name, amount in part.usage.items()
    ]
    for host, used in enumerate(batch.used.tolist(), batch.first):
        for place, number, amount in usages:
            yield IDS_OF_A_COMMIT + host, host * size + place, number, used * amount


def _copy(connection: Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    width = len(metadata.tables[table].columns)
    if connection.dialect.name == "postgresql":
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    mark = "%s" if connection.dialect.name in MARIADB_DIALECTS else "?"
    marks = ", ".join([mark] * width)
    connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({marks})", list(rows))
