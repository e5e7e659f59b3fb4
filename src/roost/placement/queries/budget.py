"""The computation of queries within limits: their share of time, the count of work, a forked process."""

import asyncio
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

import structlog

from roost.fleet import Fleet
from roost.fleet.errors import TooMuchWork
from roost.fleet.work import WorkBudget
from roost.ledger import Ledger
from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
    run_forked,
)
from roost.placement.queries.turns import Turns, writer_busy, writes_arrive
from roost.process.metrics import catalogue as metrics
from roost.web.admission import Cause, Overloaded
from roost.web.errors import BadRequest, Unavailable
from roost.web.limits import Limits

UNITS_BESIDE_WRITES: Final = 15_000
"""Units of work that a query may take in the event loop while writes arrive: some 7 ms.

A query of eight groups with a limit of 1,000 takes 10,000.
"""

UNITS_ALONE: Final = 40_000
"""Units of work that a query may take in the event loop while no writes arrive: some 20 ms."""

_MOST_KNOWN: Final = 1_000
"""Keys of expensive queries that are remembered at most. With more, all are forgotten."""

_FORKED: Final = metrics.FORKED_QUERIES
_LOG = structlog.get_logger()

T = TypeVar("T")

Check = Callable[[Fleet], None]
"""Raises an error if the query is refused on a fleet."""

Compute = Callable[[Fleet], bytes]
"""Computes the body of the response. It spends units from the fleet's meter, and raises `TooMuchWork`."""


def unchecked(fleet: Fleet) -> None:
    """Refuse nothing: the check of a query that is valid on every fleet."""


class TooExpensive(BadRequest):
    """The query exceeds its limit of time or memory."""

    code = "placement.query.too_expensive"


class QueryBudget:
    """Computes the queries of one process beside its writes."""

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._turns = Turns(limits.query_share, limits.query_waiting, limits.query_seconds, self._writer_busy)
        self._processes = asyncio.Semaphore(limits.query_processes)
        self._waiting = 0
        self._expensive: set[tuple[Hashable, bool]] = set()

    async def answer(self, key: Hashable, check: Check, compute: Compute) -> bytes:
        """Compute a query on the newest version. ``key`` is equal for queries of equal cost.

        A query that has exceeded its units in the event loop is computed in a forked process at once the next
        time, unless some of its work was cached, so that it needs fewer units then.

        Raises:
            Overloaded: too many queries wait, or this one has waited for too long.
            TooExpensive: it exceeds its limit of time or memory.
            Unavailable: the system cannot start a process for it.
            StorageError: the database cannot be read.
        """
        beside_writes = writes_arrive(time.monotonic(), self._ledger.last_command)
        if (key, beside_writes) in self._expensive:
            return await self._apart(check, compute)

        work = WorkBudget(UNITS_BESIDE_WRITES if beside_writes else UNITS_ALONE)

        def bounded(fleet: Fleet) -> bytes:
            check(fleet)
            with fleet.meter.limited(work):
                return compute(fleet)

        try:
            return await self._in_turn(bounded)
        except TooMuchWork:
            if not work.kept:
                if len(self._expensive) >= _MOST_KNOWN:
                    self._expensive.clear()
                self._expensive.add((key, beside_writes))
        return await self._apart(check, compute)

    async def on(self, fleet: Fleet, compute: Callable[[Fleet], T]) -> T:
        """Compute a part of a query on a fixed fleet in the event loop, when it is its turn.

        Raises: `TooMuchWork`, and as `answer`.
        """

        def bounded(fleet: Fleet) -> T:
            with fleet.meter.limited(WorkBudget(UNITS_ALONE)):
                return compute(fleet)

        if self._turns.free():
            # Other tasks run between the parts of a query, even if it never has to wait for its turn.
            await asyncio.sleep(0)
            if self._turns.free():
                return self._timed(bounded, fleet)
        async with self._turns.turn():
            return self._timed(bounded, fleet)

    async def apart_on(self, fleet: Fleet, compute: Compute) -> bytes:
        """Compute a query on a fixed fleet in a process of its own. Raises: as `answer`."""
        return await self._apart(unchecked, compute, fleet)

    async def _in_turn(self, compute: Callable[[Fleet], T]) -> T:
        """Compute something on the newest version in the event loop, when it is the turn of a query.

        Raises `Overloaded` if too many queries wait or this one has waited for too long, and `StorageError`
        if the database cannot be read.
        """
        if self._turns.free():
            fleet = await self._ledger.current()
            # Other queries may have used the time meanwhile.
            if self._turns.free():
                return self._timed(compute, fleet)
        async with self._turns.turn():
            return self._timed(compute, await self._ledger.current())

    def _timed(self, compute: Callable[[Fleet], T], fleet: Fleet) -> T:
        started = time.monotonic()
        try:
            return compute(fleet)
        finally:
            self._turns.spent(time.monotonic() - started)

    async def _apart(self, check: Check, compute: Compute, on: Fleet | None = None) -> bytes:
        """Compute a query in a process of its own. ``on``: the fleet; None for the newest version."""
        limits = self._limits
        if self._processes.locked() and self._waiting >= limits.query_waiting:
            raise Overloaded(Cause.QUERIES)
        self._waiting += 1
        try:
            async with asyncio.timeout(limits.query_seconds):
                await self._processes.acquire()
        except TimeoutError:
            raise Overloaded(Cause.QUERIES) from None
        finally:
            self._waiting -= 1
        try:
            fleet = on or await self._ledger.current()
            check(fleet)
            found = await run_forked(partial(compute, fleet), limits.query_seconds, limits.query_bytes)
            _FORKED.labels("answered").inc()
            return found
        except ForkedTooLong:
            _FORKED.labels("too_long").inc()
            _LOG.warning("a query was given up", seconds=limits.query_seconds)
            raise TooExpensive(
                f"The query takes more than {limits.query_seconds:g} seconds: narrow it, or give a limit."
            ) from None
        except ForkedUnavailable as error:
            _FORKED.labels("failed").inc()
            _LOG.warning("a query has no process", error=str(error))
            raise Unavailable(
                f"The system has no process for an expensive query: {error}. Try again."
            ) from None
        except ForkedFailed:
            _FORKED.labels("failed").inc()
            raise
        except ForkedTooLarge:
            _FORKED.labels("too_large").inc()
            _LOG.warning("a query was given up", bytes=limits.query_bytes)
            raise TooExpensive(
                f"The query takes more than {limits.query_bytes:,} bytes: narrow it, or give a limit."
            ) from None
        finally:
            self._processes.release()

    def _writer_busy(self) -> bool:
        ledger = self._ledger
        return writer_busy(time.monotonic(), ledger.last_command, ledger.waiting_commands)
