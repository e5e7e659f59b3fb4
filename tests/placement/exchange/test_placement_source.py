"""A source is read as it was at one moment, and cannot be written to."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from roost.placement.exchange.placement_tables import (
    REVISION,
    alembic_version,
    metadata,
    projects,
    read_snapshot,
)
from roost.storage import Database, StorageError
from support.databases import Servers

COUNT = sa.select(sa.func.count()).select_from(projects)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_others_writes_are_not_seen_and_own_ones_refused(kind: str, servers: Servers, tmp_path: Path) -> None:
    with servers.place(kind, tmp_path) as place:
        others = sa.create_engine(place.url, poolclass=sa.NullPool)
        with others.connect() as connection:
            if kind == "sqlite":
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with others.begin() as connection:
            metadata.create_all(connection)
            connection.execute(sa.insert(alembic_version), {"version_num": REVISION})

        def count_twice(connection: Connection) -> list[int]:
            before = connection.execute(COUNT).scalar_one()
            with others.begin() as another:
                another.execute(sa.insert(projects), {"external_id": "somebody"})
            return [before, connection.execute(COUNT).scalar_one()]

        def write(connection: Connection) -> None:
            connection.execute(sa.insert(projects), {"external_id": "me"})

        source = Database(place.url, read_only=True)
        try:
            assert read_snapshot(source, count_twice) == [0, 0]
            assert read_snapshot(source, lambda connection: connection.execute(COUNT).scalar_one()) == 1
            with pytest.raises((StorageError, DBAPIError)):
                read_snapshot(source, write)
        finally:
            asyncio.run(source.close())
