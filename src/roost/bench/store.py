"""Where the benchmark's databases are kept: made once for each fleet, copied for each measurement.

A claim changes what it is measured on, so every measurement gets a copy that is thrown away: of a file on
SQLite, by CREATE DATABASE … TEMPLATE on PostgreSQL.
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

from roost.bench.errors import BenchError
from roost.bench.filling import fill
from roost.bench.fleets import FleetPlan
from roost.bench.postgresql import PostgreSQL
from roost.exchange import export_placement
from roost.exchange.placement_tables import REVISION
from roost.ledger import SCHEMA
from roost.storage import Database
from roost.system.lock import locked

Flavour = Literal["roost", "upstream"]
"""Whose tables."""

CONTENT: Final = 2
"""Counts up when plans of the same name get another content."""


class Store(ABC):
    """Databases of one kind of server."""

    kind: str

    @contextmanager
    def copy(self, plan: FleetPlan, flavour: Flavour) -> Iterator[str]:
        """A database with a fleet, to do with as one likes; its URL. It is gone afterwards."""
        original = self.original(plan, flavour)
        name = f"run_{uuid.uuid4().hex[:12]}"
        self._copy(original, name)
        try:
            yield self._url(name)
        finally:
            self._drop(name)

    def original(self, plan: FleetPlan, flavour: Flavour) -> str:
        """The name of the database that copies are made of, filled now if there is none yet."""
        revision = SCHEMA.newest if flavour == "roost" else REVISION
        name = f"{flavour}_{plan.key}_{CONTENT}_{revision}"
        if name not in self._names():
            making = f"making_{name}"
            self._drop(making)
            self._create(making)
            if flavour == "roost":
                self._fill(making, plan)
            else:
                self._export(self.original(plan, "roost"), making)
            self._analyse(making)
            self._rename(making, name)
        return name

    def _fill(self, name: str, plan: FleetPlan) -> None:
        database = Database(self._url(name))
        try:
            fill(database, plan)
        finally:
            asyncio.run(database.close())

    def _export(self, source: str, name: str) -> None:
        database = Database(self._url(source), read_only=True)
        try:
            export_placement(database, self._url(name), lambda done, total: None)
        finally:
            asyncio.run(database.close())

    def clean_up(self) -> None:
        """Drop what runs that were killed left behind. Nobody else may be measuring here."""
        for name in self._names():
            if name.startswith(("run_", "making_")):
                self._drop(name)

    def _analyse(self, name: str) -> None:
        """Have the database look at what it holds, as it would have long since: its plans depend on it."""
        engine = sa.create_engine(self._url(name), poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("ANALYZE")

    @abstractmethod
    def _url(self, name: str) -> str: ...

    @abstractmethod
    def _names(self) -> list[str]: ...

    @abstractmethod
    def _create(self, name: str) -> None: ...

    @abstractmethod
    def _copy(self, original: str, name: str) -> None: ...

    @abstractmethod
    def _rename(self, name: str, to: str) -> None: ...

    @abstractmethod
    def _drop(self, name: str) -> None: ...


class Files(Store):
    """SQLite files in a folder."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.db"

    def _url(self, name: str) -> str:
        return f"sqlite:///{self._path(name)}"

    def _names(self) -> list[str]:
        return [path.stem for path in self._folder.glob("*.db")]

    def _create(self, name: str) -> None:
        """A file is made when it is opened."""

    def _copy(self, original: str, name: str) -> None:
        shutil.copy(self._path(original), self._path(name))

    def _rename(self, name: str, to: str) -> None:
        self._path(name).rename(self._path(to))

    def _drop(self, name: str) -> None:
        for path in self._folder.glob(f"{name}.db*"):
            path.unlink()


class Databases(Store):
    """Databases of a PostgreSQL server, which ``url`` names with an account that may create some."""

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

    def _names(self) -> list[str]:
        return [str(name) for (name,) in self._ask("SELECT datname FROM pg_database")]

    def _create(self, name: str) -> None:
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
    """The store that ``--database`` names: ``sqlite``, ``postgresql`` (a server of our own, started now, all
    syncs on), or a PostgreSQL server's URL. The first two are one process's at a time.

    Raises `OperatorError`.
    """
    if database not in (Files.kind, Databases.kind):
        yield Databases(database)
        return
    with locked(folder / database), ExitStack() as stack:
        if database == Files.kind:
            store: Store = Files(folder / database)
        else:
            server = _server(folder / database)
            stack.callback(server.stop)
            server.start()
            store = Databases(server.url("postgres"))
        store.clean_up()
        yield store


def _server(home: Path) -> PostgreSQL:
    if os.geteuid() == 0:  # which PostgreSQL refuses to run as
        shutil.chown(home, "postgres")
        closed = [str(each) for each in home.parents if not each.stat().st_mode & 0o001]
        if closed:
            raise BenchError(f"PostgreSQL's account cannot reach {home}, for {closed[0]}: name another --dir")
    return PostgreSQL(home, durable=True, settings={"shared_buffers": "256MB", "max_wal_size": "4GB"})
