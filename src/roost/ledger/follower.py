"""The follower: keeps a process's replica at the head of the database, for its readers and its writer."""

import asyncio
import time
from collections.abc import Sequence

from roost.fleet import Fleet
from roost.ledger.commit_protocol import head_checked
from roost.ledger.commit_states import CommitLimits, Memory
from roost.ledger.delta import (
    DatabaseSnapshot,
    Delta,
    Head,
    check_head,
    check_head_of_many,
    newest,
    read_delta,
)
from roost.ledger.replica import Replica
from roost.ledger.status import History, look
from roost.process.deadlines import Deadlines
from roost.process.metrics import catalogue as metrics
from roost.storage import NAMES_PER_STATEMENT, Database, DatabaseUnavailable


class Follower:
    """A replica and the database that it follows.

    ``turn``: the lock that is held while the replica moves: by a batch from reading its consumers to the end
    of its commit, and by a reader for one page of a delta. ``memory``: the state that the commit protocol
    keeps between batches. ``history``: the state of the history at the last `look`; None before the first.
    """

    def __init__(self, database: Database, replica: Replica, limits: CommitLimits) -> None:
        self.database = database
        self.replica = replica
        self.turn = asyncio.Lock()
        self.memory = Memory(limits)
        self.history: History | None = None
        self._checking: asyncio.Task[None] | None = None
        self._next_check: asyncio.Task[None] | None = None
        # A caller waits for several database operations in turn. The database's time limit applies to each of
        # them, and by these deadlines also to all of them together.
        self.deadlines = Deadlines(database.limit)

    async def current(self) -> Fleet:
        """Return the fleet with every commit, of any writer, that was durable before this call.

        Reads that arrive during a head check share the next one. On SQLite each read checks by itself, which
        takes no longer.

        Raises: `roost.storage.StorageError` if the database cannot be read.
        """
        if self.database.is_sqlite:
            await self._catch_up()
        elif self._checking is None:
            self._checking = asyncio.create_task(self._catch_up_and_pass_on())
            await self._checked(self._checking)
        else:
            if self._next_check is None:
                self._next_check = asyncio.create_task(self._catch_up_after(self._checking))
            await self._checked(self._next_check)
        self.replica.discard()
        return self.replica.fleet

    async def close(self) -> None:
        """Wait for the head checks under way. Their errors are raised in the reads that wait for them."""
        under_way = [task for task in (self._checking, self._next_check) if task is not None]
        await asyncio.gather(*under_way, return_exceptions=True)
        self.deadlines.close()

    async def look(self, now: float) -> None:
        """Read the state of the history in the database. ``now``: seconds since the epoch."""
        version = self.replica.position.seq
        self.history = await self.database.autocommit_read(lambda connection: look(connection, version, now))

    async def check_head(self, uuids: Sequence[str]) -> Head:
        """Return the head of the database, and the holdings of the named consumers."""
        if len(uuids) > NAMES_PER_STATEMENT:
            return await self.database.read(
                lambda connection: check_head_of_many(connection, uuids), by_key=True
            )
        return await self.database.autocommit_read(lambda connection: check_head(connection, uuids))

    async def follow(self, uuids: Sequence[str]) -> Delta:
        """Read the next page of the delta and move the replica to its end. The turn must be held."""
        since, follow = self.replica.position, self.replica.follow_limit
        delta = await self.database.load(
            lambda connection: read_delta(DatabaseSnapshot(connection), since, uuids, follow)
        )
        self.replica.follow(delta)
        metrics.FOLLOWED.inc(len(delta.commits))
        if delta.fleet is not None:
            metrics.RELOADS.inc()
        return delta

    async def _catch_up(self) -> None:
        if await self.database.autocommit_read(newest) == self.replica.position:
            return
        complete = False
        while not complete:
            # The writer may commit between two pages.
            async with self.turn:
                head = await self.check_head(())
                unchanged = head.position == self.replica.position and not head.turn_requested
                self.memory = head_checked(self.memory, unchanged, time.monotonic())
                complete = unchanged or (await self.follow(())).complete

    async def _checked(self, check: "asyncio.Task[None]") -> None:
        """Wait for a head check that several reads share, until the deadline."""
        checked: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def pass_on(check: "asyncio.Task[None]") -> None:
            failure = None if check.cancelled() else check.exception()
            if checked.done():
                return
            if check.cancelled():
                checked.cancel()
            elif failure is not None:
                checked.set_exception(failure)
            else:
                checked.set_result(None)

        check.add_done_callback(pass_on)
        self.deadlines.watch(checked, lambda: DatabaseUnavailable(self.database.no_answer()))
        await checked

    async def _catch_up_and_pass_on(self) -> None:
        try:
            await self._catch_up()
        finally:
            self._checking, self._next_check = self._next_check, None

    async def _catch_up_after(self, running: "asyncio.Task[None]") -> None:
        await asyncio.wait([running])
        await self._catch_up_and_pass_on()
