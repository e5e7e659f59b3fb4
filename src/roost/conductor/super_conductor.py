"""The super conductor: accepts, asks the scheduler, hands over to cells. It picks nothing itself."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from roost import tracing
from roost.cells import Cell
from roost.conductor.backoff import Backoff
from roost.conductor.requests import Requests, clean_request
from roost.conductor.together import together
from roost.ledger import LedgerError
from roost.logs import RequestIds, serving
from roost.model.instance import ASSIGNED, DELETING, DESTROYED, ERROR, BuildRequest, Fault, Instance
from roost.model.spec import Destination, RequestSpec
from roost.placement.errors import PlacementError
from roost.placement.interface import Placement
from roost.records.redact import without_secrets
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.claim_result import Verdict, result_of
from roost.scheduler.errors import SchedulerError
from roost.storage import OutcomeUnknown, StorageError

CELL0 = "cell0"
"""The cell without hosts that keeps what could not be placed."""

_log = structlog.get_logger()


class SuperConductor:
    """Carries build requests to cells.

    ``cells`` by name, cell0 among them. ``max_attempts``: hosts tried for an instance, the first included.
    ``backoff``: how often a request that fails is tried, and after which pauses; an outage of a database of
    the conductor's own is waited out. ``sleep`` waits for some seconds.

    A request that is given up ends in cell0, in error, with the reason. ``failure`` is set to the error of a
    request for which even that failed: it is taken up again at the next start.
    """

    def __init__(
        self,
        requests: Requests,
        scheduler: Scheduler,
        placement: Placement,
        cells: Mapping[str, Cell],
        *,
        max_attempts: int = 3,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._requests = requests
        self._scheduler = scheduler
        self._placement = placement
        self.cells = cells
        self._max_attempts = max_attempts
        self._backoff = backoff
        self._sleep = sleep
        self._clock = clock
        self._carrying: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None

    @property
    def in_progress(self) -> int:
        """Requests that are on their way to a cell."""
        return len(self._carrying)

    async def accept(self, request: BuildRequest) -> "asyncio.Task[None]":
        """Take a request: durable when this returns. The task ends when its instances are in cells.

        Raises:
            OutcomeUnknown: the request is carried out if it is found in the database, and not otherwise.
        """
        request = clean_request(request)
        try:
            await self._requests.accept(request)
        except OutcomeUnknown:
            self._watch(request, self._carry_if_accepted(request))
            raise
        return self._start(request)

    async def delete(self, instances: Sequence[str]) -> list[str]:
        """Have instances destroyed and their claims freed; returns those that are known.

        Durable when this returns; the work itself is the cell's.
        """
        by_cell: defaultdict[str, list[str]] = defaultdict(list)
        for uuid, cell in (await self._requests.cells_of(instances)).items():
            by_cell[cell].append(uuid)
        await together(self.cells[cell].delete(uuids) for cell, uuids in by_cell.items())
        known = [uuid for uuids in by_cell.values() for uuid in uuids]
        if known:
            await self._requests.unmap(known)
        return known

    async def resume(self) -> None:
        """After a start: take up every request that was accepted and not finished."""
        async for request in self._requests.waiting():
            _log.info("resuming a request", request_id=request.request_id)
            self._start(request, resumed=True)
        await self._forget_stale_mappings()

    async def idle(self) -> None:
        """Wait until no request is on its way to a cell."""
        while self._carrying:
            await asyncio.wait(self._carrying)

    async def close(self) -> None:
        """Stop carrying requests. What is unfinished is taken up after the next start."""
        carrying = list(self._carrying)
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    def _start(self, request: BuildRequest, resumed: bool = False) -> "asyncio.Task[None]":
        return self._watch(request, self._carry_through(request, resumed))

    def _watch(self, request: BuildRequest, carrying: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        with serving(RequestIds(request.request_id, request.global_request_id)):
            task = asyncio.create_task(carrying)
            task.add_done_callback(self._ended)
        self._carrying.add(task)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._carrying.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
            _log.error("a request could not be carried out", exc_info=self.failure)

    async def _carry_if_accepted(self, request: BuildRequest) -> None:
        """Carry a request whose acceptance has no answer, if it is found in the database.

        The server may write it some time after the error, so it is looked for as often as work is tried.
        """
        failures = looks = 0
        while not self._backoff.exhausted(looks):
            await self._sleep(self._backoff.pause(failures + looks + 1))
            try:
                found = [each async for each in self._requests.waiting(request.request_id)]
            except StorageError as error:
                failures += 1
                _log.warning("whether a request is accepted cannot be read", error=str(error))
                continue
            if found:
                _log.info("a request is accepted after all")
                await self._carry_through(request, resumed=True)
                return
            looks += 1

    async def _carry_through(self, request: BuildRequest, resumed: bool) -> None:
        """Carry a request to its cells, again after every failure that may pass, until it is given up.

        Raises what still fails when the request has been given up and waiting cannot help.
        """
        with tracing.span("conductor.carry", parent=request.trace or None):
            await self._carry_to_the_end(request, resumed)

    async def _carry_to_the_end(self, request: BuildRequest, resumed: bool) -> None:
        failures = faults = 0
        given_up: str | None = None
        while True:
            try:
                return await self._carry(request, resumed, given_up)
            except Exception as error:
                failures += 1
                resumed = True
                outage = isinstance(error, StorageError | LedgerError)
                result = result_of(error)
                known = outage or isinstance(error, PlacementError | SchedulerError)
                _log.warning(
                    "a request failed",
                    failures=failures,
                    error=result.reason,
                    exc_info=not known and failures == 1,
                )
                if not outage:
                    faults += 1
                    if given_up is not None:
                        if result.verdict is not Verdict.RETRY or not known:
                            raise
                    elif result.verdict is Verdict.FATAL or self._backoff.exhausted(faults):
                        given_up = f"Given up after {faults} failures: {result.reason}"
                        continue
            await self._sleep(self._backoff.pause(failures))

    async def _carry(self, request: BuildRequest, resumed: bool, given_up: str | None) -> None:
        cells: dict[str, str] = {}
        missing = list(request.instances)
        if resumed:
            found = await self._found(request)
            cells = {uuid: cell for uuid, (cell, _) in found.items()}
            missing = [uuid for uuid in missing if uuid not in cells]
            request = _with_members(request, [instance.host for _, instance in found.values()])
            if given_up is not None and missing:
                cells.update(await self._bury(request, missing, "", given_up))
                missing = []
            # A claim of an instance that reached no cell with hosts is from a run that was cut off.
            unplaced = [uuid for uuid in request.instances if cells.get(uuid, CELL0) == CELL0]
            if unplaced:
                await self._placement.delete_allocations(unplaced)
        if missing:
            cells.update(await self._place(request, missing, already=len(cells)))
        await self._requests.finish(request, cells)

    async def _place(self, request: BuildRequest, missing: Sequence[str], already: int) -> dict[str, str]:
        """Have instances placed and put into their cells; returns the cell of each."""
        try:
            destinations = await self._scheduler.select_destinations(
                request.spec,
                len(missing),
                self._max_attempts - 1,
                instances=missing,
                min_count=max(request.min_count - already, 1),
                request_id=request.request_id,
                global_request_id=request.global_request_id,
            )
        except NoValidHost as error:
            return await self._bury(request, missing, error.run, f"No valid host was found: {error.reason}")
        except SchedulerError as error:
            result = result_of(error)
            if result.verdict is not Verdict.FATAL:
                raise
            return await self._bury(request, missing, "", result.reason or "")
        placed = {destination.instance for destination in destinations}
        by_cell: defaultdict[str, list[Instance]] = defaultdict(list)
        spec = without_secrets(request.spec)
        for destination in destinations:
            by_cell[destination.selected.cell].append(_assigned(request, spec, destination))
        await together(self.cells[cell].add(new) for cell, new in by_cell.items())
        cells = {instance.uuid: cell for cell, new in by_cell.items() for instance in new}
        rest = [uuid for uuid in missing if uuid not in placed]
        if rest:
            reason = f"No valid host was found: {len(placed)} of {len(missing)} instances fit"
            cells.update(await self._bury(request, rest, destinations[0].run, reason))
        return cells

    async def _bury(
        self, request: BuildRequest, instances: Sequence[str], run: str, reason: str
    ) -> dict[str, str]:
        """Keep instances that could not be placed in cell0, with the reason."""
        now = self._clock()
        await self.cells[CELL0].add(
            [
                Instance(
                    uuid=uuid,
                    request_id=request.request_id,
                    run=run,
                    project_id=request.spec.project_id,
                    user_id=request.spec.user_id,
                    flavor=request.spec.flavor.name,
                    state=ERROR,
                    reason=reason,
                )
                for uuid in instances
            ],
            [Fault(uuid, 0, None, reason, now) for uuid in instances],
        )
        return dict.fromkeys(instances, CELL0)

    async def _found(self, request: BuildRequest) -> dict[str, tuple[str, Instance]]:
        """Those instances that reached a cell: uuid -> its name and the instance."""
        found: dict[str, tuple[str, Instance]] = {}
        for name, cell in self.cells.items():
            there = await cell.find(request.instances)
            found.update({uuid: (name, instance) for uuid, instance in there.items()})
        return found

    async def _forget_stale_mappings(self) -> None:
        """Drop mappings of instances that their cell lets go or has let go: a crash came before the
        unmapping."""
        by_cell: defaultdict[str, list[str]] = defaultdict(list)
        for uuid, cell in (await self._requests.every_mapping()).items():
            by_cell[cell].append(uuid)
        stale = []
        for name, uuids in by_cell.items():
            there = await self.cells[name].outcomes(uuids)
            kept = {found.instance for found in there if found.state not in (DELETING, DESTROYED)}
            stale += [uuid for uuid in uuids if uuid not in kept]
        if stale:
            await self._requests.unmap(stale)


def _with_members(request: BuildRequest, hosts: Sequence[str | None]) -> BuildRequest:
    """The request with its server group, if it has one, on these hosts too."""
    group = request.spec.group
    if group is None:
        return request
    joined = (*group.hosts, *(host for host in hosts if host is not None))
    group = msgspec.structs.replace(group, hosts=joined)
    return msgspec.structs.replace(request, spec=msgspec.structs.replace(request.spec, group=group))


def _assigned(request: BuildRequest, spec: RequestSpec, destination: Destination) -> Instance:
    selected = destination.selected
    return Instance(
        uuid=destination.instance,
        request_id=request.request_id,
        run=destination.run,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        flavor=request.spec.flavor.name,
        state=ASSIGNED,
        host=selected.host,
        node=selected.node,
        attempt=1,
        alternates=destination.alternates,
        spec=spec,
        selection=selected,
    )
