"""Databases of the simulated world: real SQL on SQLite in memory.

Each transaction runs at one moment, so the simulation sees no two transactions of one database at once. The
tests on PostgreSQL and MariaDB do.
"""

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from roost.storage import Database, Schema
from roost.storage.database import CONFLICT_ATTEMPTS
from roost.storage.errors import ConflictRolledBack
from support.simulation.repeated import RepeatedWorks
from support.simulation.statements import PlainConnection

SNAPSHOT_SECONDS = 0.25
"""A standby is so many seconds old at most when a snapshot is taken for it."""

_spare: list[sa.Engine] = []
"""Engines of databases that are closed. A new engine would have to compile each statement again."""


@cache
def template(schemas: tuple[Schema, ...]) -> bytes:
    """A database with the tables of rooms, as its migrations make them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "template.db"
        database = Database(f"sqlite:///{file}")
        for schema in schemas:
            schema.prepare(database)
        asyncio.run(database.close())
        # A database in memory has no write-ahead log.
        engine = sa.create_engine(f"sqlite:///{file}")
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        engine.dispose()
        return file.read_bytes()


class SimulatedDatabase:
    """One database. ``up``: whether it answers. ``lives``: how often it was started.

    ``repeats``: works that would do what they did before are not run again (`RepeatedWorks`).
    ``plain``: works get a `PlainConnection`, and not SQLAlchemy's.
    """

    def __init__(self, name: str, schemas: Sequence[Schema], now: Callable[[], float]) -> None:
        self.name = name
        self.up = True
        self.lives = 1
        self.transactions = 0
        self.keeps_snapshots = False
        self.repeats = self.plain = True
        self._now = now
        self._engine = _spare.pop() if _spare else _new_engine()
        self._connection = self._engine.connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw = raw
        self._template = template(tuple(schemas))
        raw.deserialize(self._template)
        raw.execute("PRAGMA foreign_keys=ON")
        self._repeated = RepeatedWorks(
            name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        )
        self._plain = PlainConnection(self._connection, self._repeated.executed)
        self._snapshots: deque[tuple[float, bytes]] = deque(maxlen=40)

    def run(self, work: Callable[[sa.Connection], Any], writes: bool) -> Any:
        """Run a work in a transaction; nothing is written if it raises."""
        self.transactions += 1
        if writes and self.keeps_snapshots:
            self._snapshot()
        if not self.repeats:
            return self._run(work, writes)
        return self._repeated.run(_key(work, writes), lambda: self._run(work, writes))

    def _run(self, work: Callable[[sa.Connection], Any], writes: bool) -> Any:
        for _ in range(CONFLICT_ATTEMPTS - 1):
            try:
                return self._run_once(work, keep=writes)
            except ConflictRolledBack:
                continue
        return self._run_once(work, keep=writes)

    def _run_once(self, work: Callable[[sa.Connection], Any], keep: bool) -> Any:
        # For SQLAlchemy it is one transaction without an end, which saves a third of the time of a work.
        self._raw.execute("BEGIN")
        end = "ROLLBACK"
        try:
            result = work(self._plain if self.plain else self._connection)  # type: ignore[arg-type]
            end = "COMMIT" if keep else "ROLLBACK"
            return result
        finally:
            self._raw.execute(end)

    def run_and_roll_back(self, work: Callable[[sa.Connection], Any]) -> None:
        """Run a work as a server does that rolls it back in favour of another."""
        self._run_once(work, keep=False)

    def fail_over(self, seconds: float) -> float:
        """Go on with a standby that lacks the last ``seconds`` or a little more; returns how many it
        lacks."""
        now = self._now()
        for at, content in reversed(self._snapshots):
            if at <= now - seconds:
                self._raw.deserialize(content)
                self.lives += 1
                self._repeated.forget()
                self._snapshots.clear()
                return now - at
        return 0.0

    def lose(self) -> None:
        """Go on as a new database, which is empty."""
        self._raw.deserialize(self._template)
        self._raw.execute("UPDATE database_identity SET uuid = 'another'")
        self.lives += 1
        self._repeated.forget()

    def close(self) -> None:
        """Give the engine back."""
        self._connection.close()
        _spare.append(self._engine)

    def _snapshot(self) -> None:
        now = self._now()
        if not self._snapshots or self._snapshots[-1][0] < now - SNAPSHOT_SECONDS:
            self._snapshots.append((now, self._raw.serialize()))


def _key(work: Any, writes: bool) -> Any:
    """What tells works apart: their types and fields."""
    key = work, writes
    try:
        hash(key)
    except TypeError:
        return type(work), repr(work), writes
    return key


def _new_engine() -> sa.Engine:
    return sa.create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False, "isolation_level": None}
    )
