"""Databases for tests: an empty one of each kind, on servers that the whole session shares."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.bench.errors import DidNotStart
from roost.bench.mariadb import MariaDB, set_up_mariadb
from roost.bench.postgresql import PostgreSQL
from support.servers import Galera, made, missing, server_folder

SERVERS = ("postgresql", "mariadb", "galera")
KINDS = ("sqlite", *SERVERS)
TRIES = 2


class Place(NamedTuple):
    """A database. ``urls`` has its URL; on Galera, the URL of each node of the cluster."""

    kind: str
    urls: tuple[str, ...]

    @property
    def url(self) -> str:
        return self.urls[0]

    def at(self, number: int) -> str:
        """Return the URL for the process or ledger of this number. They take the nodes in turn."""
        return self.urls[number % len(self.urls)]


class Servers:
    """The servers of a test session. Each starts when a test first needs it."""

    def __init__(self) -> None:
        self.tested: dict[str, str] = {}
        self.untested: dict[str, str] = {}
        self.not_started: dict[str, list[str]] = {}
        self._stack = contextlib.ExitStack()
        self._running: dict[str, PostgreSQL | MariaDB | Galera] = {}
        self._folder: Path | None = None
        self._template: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the servers, which their accounts can reach."""
        if self._folder is None:
            self._folder = self._stack.enter_context(server_folder())
        return self._folder

    @property
    def template(self) -> Path:
        """The data directory of MariaDB from which new ones are copied."""
        if self._template is None:
            self._template = set_up_mariadb(made(self.folder, "template") / "data")
        return self._template

    def needs(self, kind: str) -> None:
        """Skip the test if servers of this kind are not installed. The summary of the run says so."""
        reason = missing(kind)
        if reason is not None:
            self.untested[kind] = reason
            pytest.skip(reason)
        self.tested.setdefault(kind, kind)

    def running(self, kind: str) -> PostgreSQL | MariaDB | Galera:
        """Return the session's server of a kind. A failed start is repeated, and one that died is followed
        by another; the summary says so."""
        failures = self.not_started.setdefault(kind, [])
        if death := _death(self._running.get(kind)):
            failures.append(death)
            del self._running[kind]
        while kind not in self._running:
            if len(failures) == TRIES:
                raise DidNotStart(failures[-1])
            try:
                self._running[kind] = self._started(kind)
            except DidNotStart as error:
                failures.append(str(error))
        return self._running[kind]

    def _started(self, kind: str) -> PostgreSQL | MariaDB | Galera:
        server = self.new(kind, kind)
        self._stack.callback(server.kill)
        server.start()
        return server

    def new(self, kind: str, name: str, durable: bool = False) -> PostgreSQL | MariaDB | Galera:
        """Return a server that is not started, for a test that stops it. ``name`` is in its folder's name."""
        self.needs(kind)
        folder = made(self.folder, name)
        if kind == "postgresql":
            return PostgreSQL(folder, durable)
        if kind == "mariadb":
            return MariaDB(folder, durable, self.template)
        return Galera(folder, self.template, durable)

    @contextlib.contextmanager
    def place(self, kind: str, folder: Path) -> Iterator[Place]:
        """Create an empty database of a kind. A SQLite file is in ``folder``."""
        self.needs(kind)
        if kind == "sqlite":
            yield Place(kind, (f"sqlite:///{folder / 'roost.db'}",))
            return
        server = self.running(kind)
        name = server.create_database()
        try:
            yield Place(kind, tuple(server.urls(name)))
        finally:
            server.drop_database(name)

    def close(self) -> None:
        """Stop all servers."""
        self._stack.close()


def _death(server: PostgreSQL | MariaDB | Galera | None) -> str | None:
    """How a server, or the first such node of a cluster, ended by itself."""
    nodes = server.nodes if isinstance(server, Galera) else [] if server is None else [server]
    return next((death for node in nodes if (death := node.death) is not None), None)
