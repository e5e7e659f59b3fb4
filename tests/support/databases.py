"""Databases for tests: a fresh one of each kind, on servers that the whole session shares."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.bench.postgresql import PostgreSQL
from support.servers import Galera, MariaDB, made, missing, server_folder, set_up_mariadb

SERVERS = ("postgresql", "mariadb", "galera")
KINDS = ("sqlite", *SERVERS)


class Place(NamedTuple):
    """A database. ``urls``: where it can be reached; on Galera, each node of the cluster."""

    kind: str
    urls: tuple[str, ...]

    @property
    def url(self) -> str:
        return self.urls[0]

    def at(self, number: int) -> str:
        """A URL for the process, or ledger, of this number: they are dealt out to the nodes."""
        return self.urls[number % len(self.urls)]


class Servers:
    """The servers of a test session, each started when a test first needs it."""

    def __init__(self) -> None:
        self.tested: dict[str, str] = {}
        self.untested: dict[str, str] = {}
        self._stack = contextlib.ExitStack()
        self._running: dict[str, PostgreSQL | MariaDB | Galera] = {}
        self._folder: Path | None = None
        self._template: Path | None = None

    @property
    def folder(self) -> Path:
        """A folder that the accounts of servers can reach."""
        if self._folder is None:
            self._folder = self._stack.enter_context(server_folder())
        return self._folder

    @property
    def template(self) -> Path:
        """A data directory of MariaDB to copy."""
        if self._template is None:
            self._template = set_up_mariadb(self.folder / "template")
        return self._template

    def needs(self, kind: str) -> None:
        """Skip the test, and say so at the end, if databases of this kind cannot be tested here."""
        reason = missing(kind)
        if reason is not None:
            self.untested[kind] = reason
            pytest.skip(reason)
        self.tested.setdefault(kind, kind)

    def running(self, kind: str) -> PostgreSQL | MariaDB | Galera:
        """The session's server of a kind."""
        if kind not in self._running:
            server = self.new(kind, kind)
            self._stack.callback(server.kill)
            server.start()
            self._running[kind] = server
        return self._running[kind]

    def new(self, kind: str, name: str, durable: bool = False) -> PostgreSQL | MariaDB | Galera:
        """A server that is not started, in a folder called ``name``, for a test that stops it."""
        self.needs(kind)
        if kind == "postgresql":
            return PostgreSQL(made(self.folder / name), durable)
        if kind == "mariadb":
            return MariaDB(made(self.folder / name), durable, self.template)
        return Galera(made(self.folder / name), self.template, durable)

    @contextlib.contextmanager
    def place(self, kind: str, folder: Path) -> Iterator[Place]:
        """A fresh database of a kind; ``folder``: where a SQLite file goes."""
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
        """Stop everything."""
        self._stack.close()
