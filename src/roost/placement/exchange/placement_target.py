"""An OpenStack Placement database as the target of an export: the check that it is empty, tables, ids."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.vocabulary import FIRST_CUSTOM_CLASS
from roost.model.vocabulary import is_custom
from roost.placement.exchange import placement_tables as rows
from roost.placement.exchange.errors import NotEmpty, NotPlacement


def check_target(connection: Connection, name: str) -> None:
    """Check that a database is empty, or has Placement's tables with only standard names in them.

    Raises:
        NotEmpty: the database is Roost's, or a table has rows. ``name`` is the database in the error's text.
        NotPlacement: the database is at another revision than `placement_tables.REVISION`.
    """
    present = set(sa.inspect(connection).get_table_names())
    advice = "export into an empty database, or into one on which only 'placement-manage db sync' has run"
    if "ledger_schema" in present:
        raise NotEmpty(f"database {name} is a database of Roost: {advice}")
    if "alembic_version" in present:
        found = set(connection.execute(sa.select(rows.alembic_version.c.version_num)).scalars())
        if found - {rows.REVISION}:
            raise NotPlacement(
                f"database {name} is at revision {', '.join(sorted(found))}, not at OpenStack Placement's "
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
            raise NotEmpty(f"database {name} is not empty: table {table.name} has rows; {advice}")


def prepare_target(connection: Connection) -> None:
    """Create the missing tables, and allow the id 0, which the first resource class has."""
    rows.metadata.create_all(connection)
    if connection.dialect.name in ("mysql", "mariadb"):
        # Without this mode, MySQL and MariaDB replace the id 0 by the next free id.
        connection.exec_driver_sql(
            "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_AUTO_VALUE_ON_ZERO')"
        )


def finish_target(connection: Connection) -> None:
    """Write the revision, and advance PostgreSQL's sequences to the ids that were written."""
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
    """Insert the names that a table lacks; return the ids of all its names.

    ``wanted`` maps names to the ids that they get where these are free.
    """
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
