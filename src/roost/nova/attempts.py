"""The attempts of Nova's builds and moves: each ends in the records as Nova's databases say that it ended."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import structlog

from roost.model.record import ABANDONED, PENDING, Attempt, Run
from roost.nova.attempt_ends import (
    AttemptEnd,
    AttemptFacts,
    buried_reason,
    ends_of,
    may_have_ended,
)
from roost.nova.database.actions import NovaAction, read_actions, read_faults
from roost.nova.database.cells import CELL0, NovaCell, NovaCells
from roost.nova.database.traces import read_api_traces, read_row_traces
from roost.process.metrics import nova_bridge as metrics
from roost.records import RecordQueue, RecordsError, Search, SearchableRecords
from roost.storage import StorageError

POLL_SECONDS = 10.0
"""Seconds between two looks at the instances of open attempts."""

SEARCH_SECONDS = 600.0
"""Seconds between two searches in the records for open attempts: of other processes that have died, and of
this one before its start. Attempts younger than that are left to the process that made them."""

MOST_OPEN = 10_000
"""Open attempts that are followed at a time. Later ones are found by the next search."""

FOLLOWED_SECONDS = 86_400.0
"""Age of an attempt from which on it is not followed any more, and stays open."""

_log = structlog.get_logger()


class TriedHost(NamedTuple):
    """A host of an attempt: the claimed one, or an alternate."""

    host: str
    node: str
    cell: str
    weight: float


class OpenAttempt(NamedTuple):
    """An attempt whose end is not known. ``hosts``: the claimed one, and its alternates. ``at``: its begin,
    in seconds since the epoch."""

    run: str
    request_id: str
    instance: str
    ordinal: int
    at: float
    hosts: Sequence[TriedHost]


Ended = tuple[OpenAttempt, list[AttemptEnd]]
"""An attempt with the ends of its hosts."""


class NovaAttempts:
    """Follows the open attempts of the runs that this process records, until Nova's databases tell their end.

    ``clock``: seconds since the epoch.
    """

    def __init__(self, cells: NovaCells, records: RecordQueue, clock: Callable[[], float]) -> None:
        self._cells = cells
        self._records = records
        self._clock = clock
        self._open: dict[tuple[str, str], OpenAttempt] = {}
        self._failed: set[str] = set()
        records.followers.append(self.follow)

    @property
    def open(self) -> int:
        """The number of attempts that are followed."""
        return len(self._open)

    def follow(self, runs: Collection[Run], attempts: Collection[Attempt]) -> None:
        """Follow the open attempts among those that are recorded, and forget those that have ended."""
        by_id = {run.id: run for run in runs}
        for attempt in attempts:
            key = attempt.run, attempt.instance
            if attempt.result != PENDING:
                known = self._open.get(key)
                if known is not None and known.ordinal <= attempt.ordinal:
                    del self._open[key]
                continue
            run = by_id.get(attempt.run)
            if run is not None and len(self._open) < MOST_OPEN:
                self._open[key] = _opened(run, attempt)

    async def run(self) -> None:
        """Follow attempts until cancelled."""
        searched = -SEARCH_SECONDS
        now = asyncio.get_running_loop().time
        while True:
            if now() - searched >= SEARCH_SECONDS:
                searched = now()
                await self.search()
            await self.look()
            await asyncio.sleep(POLL_SECONDS)

    async def search(self) -> None:
        """Follow the attempts of the last day that are open in the records, except for young ones.

        The process that made them follows these, and most end before they are old. An old one is followed by
        each process that finds it, and each records its end.
        """
        backend = self._records.backend
        if not isinstance(backend, SearchableRecords):
            return
        now = self._clock()
        old = Search(result=PENDING, since=now - FOLLOWED_SECONDS, until=now - SEARCH_SECONDS)
        try:
            async for some in backend.each(old):
                for found in some:
                    self.follow([found.run], [each for each in found.attempts if each.result == PENDING])
                if self.open >= MOST_OPEN:
                    return
        except RecordsError as error:
            _log.warning("open attempts cannot be searched in the records", error=str(error))

    async def look(self) -> None:
        """Look once at the instances of all open attempts, and record the ends that are known."""
        oldest = self._clock() - FOLLOWED_SECONDS
        self._open = {key: each for key, each in self._open.items() if each.at >= oldest}
        by_cell: defaultdict[str, list[OpenAttempt]] = defaultdict(list)
        for each in self._open.values():
            by_cell[each.hosts[0].cell].append(each)
        cells = self._cells.cells
        await asyncio.gather(
            *(self._look_into(cells[cell], some) for cell, some in by_cell.items() if cell in cells)
        )

    async def _look_into(self, cell: NovaCell, attempts: Sequence[OpenAttempt]) -> None:
        try:
            ended = [*await self._ended_in(cell, attempts)]
        except StorageError as error:
            if cell.uuid not in self._failed:
                _log.warning("the ends of attempts cannot be read", cell=cell.name, error=str(error))
            self._failed.add(cell.uuid)
            return
        self._failed.discard(cell.uuid)
        now = self._clock()
        for attempt, ends in ended:
            self._open.pop((attempt.run, attempt.instance), None)
            self._records.put([], [*_records(attempt, ends, now)])
            for end in ends:
                metrics.NOVA_ATTEMPTS.labels(end.result).inc()

    async def _ended_in(self, cell: NovaCell, attempts: Sequence[OpenAttempt]) -> list[Ended]:
        """Return the attempts in a cell that have ended. Raises `StorageError`."""
        rows = await cell.database.read(read_row_traces([each.instance for each in attempts]))
        there = [each for each in attempts if each.instance in rows and may_have_ended(rows[each.instance])]
        found = await self._lost([each for each in attempts if each.instance not in rows])
        if there:
            names = [each.instance for each in there]
            actions = await cell.database.read(read_actions(names))
            faults = await cell.database.read(read_faults(names))
            for each in there:
                action = _action_of(each, actions.get(each.instance, ()))
                facts = AttemptFacts(rows[each.instance], action, faults.get(each.instance, ()))
                found.append((each, ends_of([tried.host for tried in each.hosts], facts)))
        return [(each, ends) for each, ends in found if ends]

    async def _lost(self, attempts: Sequence[OpenAttempt]) -> list[Ended]:
        """Return the attempts whose instances are not in the cell, and will not come there."""
        if not attempts:
            return []
        names = [each.instance for each in attempts]
        requested, mapped = await self._cells.api.read(read_api_traces(names))
        cell0 = self._cells.cell0
        buried = [name for name in names if mapped.get(name) == CELL0]
        faults = await cell0.database.read(read_faults(buried)) if cell0 is not None and buried else {}
        return [
            (
                each,
                [AttemptEnd(each.hosts[0].host, ABANDONED, buried_reason(faults.get(each.instance, ())))],
            )
            for each in attempts
            if each.instance not in requested and mapped.get(each.instance) in (None, CELL0)
        ]


def _opened(run: Run, attempt: Attempt) -> OpenAttempt:
    alternates = [
        TriedHost(each.host, each.node, each.cell, each.weight)
        for destination in run.destinations
        if destination.instance == attempt.instance
        for each in destination.alternates
    ]
    claimed = TriedHost(attempt.host, attempt.node, attempt.cell, attempt.weight)
    hosts = (claimed, *alternates)
    return OpenAttempt(attempt.run, attempt.request_id, attempt.instance, attempt.ordinal, attempt.at, hosts)


def _action_of(attempt: OpenAttempt, actions: Sequence[NovaAction]) -> NovaAction | None:
    """Return the action of the request of an attempt; None if Nova has none."""
    return next((each for each in reversed(actions) if each.request_id == attempt.request_id), None)


def _records(attempt: OpenAttempt, ends: Sequence[AttemptEnd], now: float) -> Iterator[Attempt]:
    """Yield the records of ends. An alternate's attempt has the next ordinal.

    Nova tells the host of an end, and no node: of several nodes of a host the first one tried counts.
    """
    by_host = {each.host: each for each in reversed(attempt.hosts)}
    for place, end in enumerate(ends):
        host = by_host[end.host]
        yield Attempt(
            run=attempt.run,
            request_id=attempt.request_id,
            instance=attempt.instance,
            ordinal=attempt.ordinal + place,
            at=attempt.at if place == 0 else now,
            host=host.host,
            cell=host.cell,
            weight=host.weight,
            result=end.result,
            reason=end.reason,
            node=host.node,
            finished_at=now,
        )
