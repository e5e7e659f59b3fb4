"""Looks at the cloud once a minute, for the samples and the log of states."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
import structlog

from roost.dashboard.past.past_nodes import NodeKeys
from roost.dashboard.past.samples import MINUTE, PastSample
from roost.dashboard.service import DashboardService
from roost.dashboard.views.cloud_cells import instances_by_state, seen_cells
from roost.fleet.utilisation import class_uses
from roost.process.lane import Lane
from roost.records import RecordsError
from roost.records.records import CountableRecords
from roost.scheduler.nodes.host_states import STATES
from roost.storage import StorageError

WRITE_MINUTES: Final = 5
"""Samples after which the file is replaced: so many minutes are lost with a process that is killed."""

MOST_RUNS: Final = 100_000
"""Runs that are counted at the start, the newest; and a minute."""

_log = structlog.get_logger()


class Sampler:
    """Takes the samples of a dashboard, and logs the states of hosts. `run` must run.

    ``lane``: the thread that uses files. ``sleep``: as `asyncio.sleep`.
    """

    def __init__(
        self,
        service: DashboardService,
        lane: Lane,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._service = service
        self._samples = service.past.samples
        self._log = service.past.log
        self._lane = lane
        self._keys = NodeKeys(service.table)
        self._sleep = sleep

    async def run(self) -> None:
        """Sample each minute, until cancelled. What fails is logged, and the next minute tries again."""
        await self._lane.run(self._samples.load)
        await self._attempt(self._fill)
        number = 0
        while True:
            clock = self._service.clock
            await self._sleep(MINUTE - clock() % MINUTE)
            await self._attempt(self.sample)
            number += 1
            if number % WRITE_MINUTES == 0:
                await self._attempt(self.write)

    async def close(self) -> None:
        """Write the samples."""
        await self._attempt(self.write)

    async def sample(self) -> None:
        """Take the sample of the minute that has ended."""
        service = self._service
        end = round(service.clock() / MINUTE) * MINUTE
        instances = await self._instances()
        decisions = {each[0]: each[1:] for each in await self._decisions(end - MINUTE)}
        counts = decisions.get(end, (0, 0)) if self._countable else None
        keys = await self._keys.keys()
        now = await service.hosts.now()
        fleet = now.fleet
        uses = [] if fleet is None else class_uses(fleet)
        hosts = np.bincount(now.states, minlength=len(STATES)).tolist()
        nodes, states = now.layout.nodes, now.states.copy()
        sample = PastSample(
            end,
            (hosts[0], hosts[1], hosts[2]),
            instances,
            {each.resource_class: (each.used, each.capacity) for each in uses},
            None if counts is None else counts[0],
            None if counts is None else counts[1],
        )
        self._samples.add(sample)
        log = self._log
        if log is not None:
            known = nodes < len(keys)
            of_nodes = keys[nodes[known]]
            await self._lane.run(lambda: log.look(float(end), of_nodes, states[known]))

    async def write(self) -> None:
        """Write the file of samples. Raises: `OSError`."""
        content = self._samples.encoded()
        await self._lane.run(lambda: self._samples.write(content))

    @property
    def _countable(self) -> bool:
        return isinstance(self._service.records.backend, CountableRecords)

    async def _fill(self) -> None:
        """Fill in the decisions of the last day, of which the records are there."""
        end = self._service.clock() // MINUTE * MINUTE
        found = await self._decisions(end - 24 * 60 * MINUTE)
        self._samples.fill(each for each in found if each[0] <= end)

    async def _instances(self) -> dict[str, int] | None:
        cloud = self._service.cloud
        if cloud is None:
            return None
        try:
            return instances_by_state(await seen_cells(self._service, cloud))
        except StorageError:
            return None

    async def _decisions(self, since: float) -> list[tuple[int, int, int]]:
        backend = self._service.records.backend
        if not isinstance(backend, CountableRecords):
            return []
        try:
            found = await backend.by_minute(since, MOST_RUNS)
        except RecordsError as error:
            _log.warning("decisions are not counted for a minute", error=str(error))
            return []
        return [(MINUTE * (minute + 1), runs, refused) for minute, runs, refused in found]

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (StorageError, OSError) as error:
            _log.warning("a sample of the past is missing", error=str(error))
        except Exception:
            _log.exception("a defect keeps a sample of the past from being taken")
