"""Stores of benchmark databases: each fleet's database is made once and copied for each measurement.

Claims change the database, so each measurement works on a copy, which is dropped afterwards. SQLite files are
copied as files, PostgreSQL databases by CREATE DATABASE … TEMPLATE.
"""

import asyncio
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal

import sqlalchemy as sa

from roost.bench.bulk_load import bulk_load
from roost.bench.errors import BenchError
from roost.bench.fleets import FleetPlan
from roost.bench.postgresql import PostgreSQL
from roost.ledger import SCHEMA
from roost.placement.exchange import export_placement
from roost.placement.exchange.placement_tables import REVISION
from roost.server.all_in_one.data_directory import locked
from roost.storage import Database

Product = Literal["roost", "upstream"]
"""The product whose tables a database has."""

CONTENT_VERSION: Final = 2
"""The version of the content of plans; raised when a plan of the same name describes another fleet."""


class Store(ABC):
    """The databases of one kind of server."""

    kind: str

    @contextmanager
    def copy(self, plan: FleetPlan, product: Product) -> Iterator[str]:
        """Yield the URL of a copy of a fleet's database, which is dropped afterwards."""
        original = self.original(plan, product)
        name = f"run_{uuid.uuid4().hex[:12]}"
        self._copy(original, name)
        try:
            yield self._url(name)
        finally:
            self._drop(name)

    def original(self, plan: FleetPlan, product: Product) -> str:
        """Return the name of the database that is copied, which is made if it is missing."""
        revision = SCHEMA.newest if product == "roost" else REVISION
        name = f"{product}_{plan.key}_{CONTENT_VERSION}_{revision}"
        if name not in self.database_names():
            making = f"making_{name}"
            self._drop(making)
            self.create(making)
            if product == "roost":
                self.fill(making, plan)
            else:
                self._export(self.original(plan, "roost"), making)
            self._analyse(making)
            self._rename(making, name)
        return name

    def fill(self, name: str, plan: FleetPlan) -> None:
        """Write the fleet of a plan into the empty database ``name``."""
        database = Database(self._url(name))
        try:
            bulk_load(database, plan)
        finally:
            asyncio.run(database.close())

    def _export(self, source: str, name: str) -> None:
        database = Database(self._url(source), read_only=True)
        try:
            export_placement(database, self._url(name), lambda done, total: None)
        finally:
            asyncio.run(database.close())

    def clean_up(self) -> None:
        """Drop the databases that killed runs left. No other process may use the store."""
        for name in self.database_names():
            if name.startswith(("run_", "making_")):
                self._drop(name)

    def _analyse(self, name: str) -> None:
        """Collect the statistics of the query planner, which a database in production has."""
        engine = sa.create_engine(self._url(name), poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("ANALYZE")

    @abstractmethod
    def _url(self, name: str) -> str: ...

    @abstractmethod
    def database_names(self) -> list[str]:
        """Return the names of all databases of the store."""

    @abstractmethod
    def create(self, name: str) -> None:
        """Create an empty database."""

    @abstractmethod
    def _copy(self, original: str, name: str) -> None: ...

    @abstractmethod
    def _rename(self, name: str, to: str) -> None: ...

    @abstractmethod
    def _drop(self, name: str) -> None: ...


class SqliteStore(Store):
    """A store of SQLite files in a folder."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.db"

    def _url(self, name: str) -> str:
        return f"sqlite:///{self._path(name)}"

    def database_names(self) -> list[str]:
        return [path.stem for path in self._folder.glob("*.db")]

    def create(self, name: str) -> None:
        """Do nothing: SQLite makes a file when it opens it."""

    def _copy(self, original: str, name: str) -> None:
        shutil.copy(self._path(original), self._path(name))

    def _rename(self, name: str, to: str) -> None:
        self._path(name).rename(self._path(to))

    def _drop(self, name: str) -> None:
        for path in self._folder.glob(f"{name}.db*"):
            path.unlink()


class PostgresqlStore(Store):
    """A store of databases on a PostgreSQL server. ``url``: with an account that may create databases."""

    kind = "postgresql"

    def __init__(self, url: str) -> None:
        self._server = sa.make_url(url)
        if self._server.get_backend_name() != "postgresql":
            raise BenchError(f"--database {url!r}: sqlite, postgresql, or the URL of a PostgreSQL server")
        if not self._server.database:
            self._server = self._server.set(database="postgres")
        self._server = self._server.set(drivername="postgresql+psycopg")

    def _url(self, name: str) -> str:
        return self._server.set(database=name).render_as_string(hide_password=False)

    def database_names(self) -> list[str]:
        return [str(name) for (name,) in self._ask("SELECT datname FROM pg_database")]

    def create(self, name: str) -> None:
        self._ask(f"CREATE DATABASE {name}")

    def _copy(self, original: str, name: str) -> None:
        self._ask(f"CREATE DATABASE {name} TEMPLATE {original} STRATEGY file_copy")

    def _rename(self, name: str, to: str) -> None:
        self._ask(f"ALTER DATABASE {name} RENAME TO {to}")

    def _drop(self, name: str) -> None:
        self._ask(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _ask(self, statement: str) -> list[sa.Row[tuple[object]]]:
        engine = sa.create_engine(self._server, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            answer = connection.exec_driver_sql(statement)
            return list(answer) if answer.returns_rows else []


@contextmanager
def open_store(folder: Path, database: str) -> Iterator[Store]:
    """Open the store that ``--database`` names.

    ``sqlite`` is a folder of files; ``postgresql`` is a private server with all syncs on, which runs as long
    as the context. Both are locked for one process. Any other value is the URL of a PostgreSQL server.

    Raises:
        OperatorError: Another process uses the store, or the server does not start or has another type.
    """
    if database not in (SqliteStore.kind, PostgresqlStore.kind):
        yield PostgresqlStore(database)
        return
    with locked(folder / database), ExitStack() as stack:
        if database == SqliteStore.kind:
            store: Store = SqliteStore(folder / database)
        else:
            server = durable_server(folder / database)
            stack.callback(server.stop)
            server.start()
            store = PostgresqlStore(server.url("postgres"))
        store.clean_up()
        yield store


def durable_server(home: Path) -> PostgreSQL:
    """Return a PostgreSQL server with all syncs on, as in production.

    Raises `BenchError` if its account cannot reach the folder.
    """
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(home, "postgres")
        closed = [str(each) for each in home.parents if not each.stat().st_mode & 0o001]
        if closed:
            raise BenchError(f"PostgreSQL's account cannot reach {home}, for {closed[0]}: name another --dir")
    return PostgreSQL(home, durable=True, settings={"shared_buffers": "256MB", "max_wal_size": "4GB"})
