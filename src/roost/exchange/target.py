"""A database that shall become OpenStack Placement's: is it empty, and which names has it?"""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.exchange import placement_tables as rows
from roost.exchange.errors import NotEmpty, NotPlacement
from roost.ledger.vocabulary import FIRST_CUSTOM_CLASS
from roost.model.vocabulary import is_custom


def check_target(connection: Connection, name: str) -> None:
    """Raise `NotEmpty` or `NotPlacement` unless the database is empty, or holds Placement's tables with
    nothing but standard names in them."""
    present = set(sa.inspect(connection).get_table_names())
    advice = "export into an empty database, or one that only 'placement-manage db sync' was run on"
    if "ledger_schema" in present:
        raise NotEmpty(f"database {name} is Roost's own: {advice}")
    if "alembic_version" in present:
        found = set(connection.execute(sa.select(rows.alembic_version.c.version_num)).scalars())
        if found - {rows.REVISION}:
            raise NotPlacement(
                f"database {name} is at revision {', '.join(sorted(found))}, not OpenStack Placement's "
                f"{rows.REVISION}: {advice}"
            )
    for table in rows.metadata.sorted_tables:
        if table.name not in present or table is rows.alembic_version:
            continue
        if table in (rows.resource_classes, rows.traits):
            filled = any(is_custom(name) for name in connection.execute(sa.select(table.c.name)).scalars())
        else:
            filled = connection.execute(sa.select(table).limit(1)).first() is not None
        if filled:
            raise NotEmpty(f"database {name} is not empty, table {table.name} has rows: {advice}")


def prepare_target(connection: Connection) -> None:
    """Make the tables that are missing, and let a row have the id 0, as the first resource class has."""
    rows.metadata.create_all(connection)
    if connection.dialect.name in ("mysql", "mariadb"):
        # For them 0 is otherwise the word for "the next one".
        connection.exec_driver_sql(
            "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_AUTO_VALUE_ON_ZERO')"
        )


def finish_target(connection: Connection) -> None:
    """Write the revision, and let the next ids follow those that were given."""
    if not list(connection.execute(sa.select(rows.alembic_version))):
        connection.execute(sa.insert(rows.alembic_version), {"version_num": rows.REVISION})
    if connection.dialect.name != "postgresql":
        return
    for table in rows.metadata.sorted_tables:
        if "id" in table.c:
            highest = connection.execute(sa.select(sa.func.max(table.c.id))).scalar()
            if highest is not None:
                sequence = sa.func.pg_get_serial_sequence(table.name, "id")
                connection.execute(sa.select(sa.func.setval(sequence, highest)))


def add_names(
    connection: Connection, table: sa.Table, wanted: dict[str, int], now: datetime
) -> dict[str, int]:
    """Add the names that the table lacks, with the ids wanted where they are free; returns all ids."""
    known = {name: row for row, name in connection.execute(sa.select(table.c.id, table.c.name))}
    taken = set(known.values())
    lowest = FIRST_CUSTOM_CLASS if table is rows.resource_classes else 1
    new: dict[str, int] = {}
    for name, row in wanted.items():
        if name not in known and row not in taken:
            new[name] = row
    for name in wanted:
        if name not in known and name not in new:
            new[name] = max(lowest - 1, *taken, *new.values()) + 1
    if new:
        written = [{"id": row, "name": name, "created_at": now} for name, row in new.items()]
        connection.execute(sa.insert(table), written)
    return known | new
