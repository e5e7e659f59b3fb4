"""The ledger: commands are committed in one order, and a fleet is kept at the head."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from roost.fleet import Fleet
from roost.ledger.commit_states import DEFAULT_LIMITS, CommitLimits
from roost.ledger.commit_steps import Position
from roost.ledger.delta import newest
from roost.ledger.follower import Follower
from roost.ledger.load import load
from roost.ledger.replica import CommitTap, Replica
from roost.ledger.state import Command
from roost.ledger.status import LedgerStatus, status_of
from roost.ledger.tables import SCHEMA
from roost.ledger.trim import trim
from roost.ledger.vocabulary import RegisterStandardNames
from roost.ledger.writer import Writer
from roost.storage import Database

T = TypeVar("T")


class Ledger:
    """The commits of one database, and the fleet at their head. For use from one event loop.

    Open with `Ledger.open`. `execute` runs commands; `current` gives the fleet for reading.
    """

    def __init__(
        self,
        database: Database,
        fleet: Fleet,
        position: Position,
        clock: Callable[[], float] = time.time,
        limits: CommitLimits = DEFAULT_LIMITS,
    ) -> None:
        self.database = database
        self._clock = clock
        self._follower = Follower(database, Replica(fleet, position), limits)
        self._writer = Writer(self._follower, clock)

    @classmethod
    async def open(
        cls, database: Database, clock: Callable[[], float] = time.time, limits: CommitLimits = DEFAULT_LIMITS
    ) -> "Ledger":
        """Load a ledger from a database, and register the standard resource classes and traits in it.

        ``clock``: gives the times of commits, in seconds since the epoch.

        Raises: `StorageError` if the database cannot be used; `Damaged` if allocations refer to missing rows.
        """
        SCHEMA.prepare(database)
        fleet, position = await database.load(lambda connection: (load(connection), newest(connection)))
        ledger = cls(database, fleet, position, clock, limits)
        await ledger.execute(RegisterStandardNames())
        return ledger

    async def close(self) -> None:
        """Finish the commits and reads under way. The database stays open: its owner closes it."""
        await self._writer.close()
        await self._follower.close()

    async def execute(self, command: Command[T]) -> T:
        """Run a command and return its result once its changes are durable.

        Commands that wait at the same time share one commit. A command that is refused raises its own error
        and leaves the others alone.

        Raises: the error by which the command refused; `LedgerBusy` if other writers were first too often;
        `StorageError` if the database failed. In all cases but `OutcomeUnknown` nothing was written.
        """
        return await self._writer.execute(command)

    @property
    def last_command(self) -> float:
        """Time of the last arrival or outcome of a command, in monotonic seconds; 0 before the first."""
        return self._writer.last_command

    @property
    def waiting_commands(self) -> int:
        """The number of commands without an outcome."""
        return self._writer.waiting_commands

    async def current(self) -> Fleet:
        """Return the fleet with every commit, of any writer, that was durable before this call.

        Use it before the next ``await``: later commits change the same object.

        Raises: `StorageError` if the database cannot be read.
        """
        return await self._follower.current()

    def known(self) -> Fleet:
        """Return the fleet with the commits that this process has followed, without reading the database.

        Use it before the next ``await``. It includes every commit of this ledger's own.
        """
        self._follower.replica.discard()
        return self._follower.replica.fleet

    def tentative(self) -> Fleet:
        """Return the fleet with its tentative changes, for caches that follow all changes of a fleet.

        Use it before the next ``await``.
        """
        return self._follower.replica.fleet

    def tap(self) -> CommitTap:
        """Return a tap of the commits that the fleet of `known` moves by from now on."""
        return self._follower.replica.tap()

    async def look(self) -> LedgerStatus:
        """Read the state of the history from the database, and return the status of the ledger.

        Raises: `StorageError` if the database cannot be read.
        """
        await self._follower.look(self._clock())
        return self.status()

    def status(self) -> LedgerStatus:
        """Return the status of the ledger, as of the last `look`."""
        follower = self._follower
        return status_of(
            follower.replica.position.seq,
            len(follower.replica.fleet),
            self._writer.waiting_commands,
            follower.history,
            self._clock(),
        )

    async def trim(self, keep: int, older_than: float, pause: float = 0.0) -> int:
        """Delete old commits, and return their number.

        A commit is deleted if it is older than ``older_than`` (seconds since the epoch) or not among the
        newest ``keep``; the newest commit always stays. ``pause``: seconds between two transactions.

        Raises: `StorageError` if the database failed.
        """
        total = 0
        while removed := await self.database.write(lambda connection: trim(connection, keep, older_than)):
            total += removed
            await asyncio.sleep(pause)
        return total
