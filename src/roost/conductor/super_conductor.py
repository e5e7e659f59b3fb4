"""The super conductor: accepts requests, has hosts selected by the scheduler, hands instances to cells.

Several work on one API database. Each holds a lease and owns the requests that it accepts. The work of one
that shows no sign of life is taken over by the others.
"""

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from roost.conductor.audit.rounds import AuditOptions, audit, audit_tenure
from roost.conductor.backoff import Backoff, CarryOptions
from roost.conductor.context import AsyncioConductorContext, SchedulerLike, SuperConductorContext
from roost.conductor.deletions import carry_deletions
from roost.conductor.evacuation.dead_hosts import DeadHosts
from roost.conductor.evacuation.fence_command import FenceProcess
from roost.conductor.evacuation.options import EvacuationOptions
from roost.conductor.events.cell_logs import keep_cell_logs, number_changes
from roost.conductor.hosts.watch import ServiceWatch, held_back_by
from roost.conductor.maintenance.hook import MaintenanceHook, MaintenanceOptions
from roost.conductor.maintenance.waves import (
    AnnouncesWords,
    Maintenances,
    carry_maintenances,
    step_maintenances,
)
from roost.conductor.moves.crossing_steps import Crossings
from roost.conductor.moves.crossings import carry_crossings, step_crossings
from roost.conductor.request_check import clean_request
from roost.conductor.request_worker import DELETIONS, FINISHED, RequestWorker
from roost.conductor.words.departures import DrainTimes, ask_for_moves, empty_subjects
from roost.conductor.words.drains import look_at_drains, watch_drains
from roost.model.idempotency import KeyedAnswer
from roost.model.instance import BuildRequest, Requester
from roost.model.record import RecordSink
from roost.model.service_version import Feature
from roost.placement.interface import Placement
from roost.process.asyncio_context import Transactor
from roost.process.context import Routine, lasting
from roost.state.api_database.audit import LEASE
from roost.state.cell_database import Cell
from roost.state.cell_database.cell import GONE, changed
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.leases import LeaseTimes, Tenure, keep_lease, release_lease, renew, vacate_all, watch_leases
from roost.storage import Database, DatabaseUnavailable, StorageError

KIND = "conductor"
"""The kind of the leases of super conductors."""

_log = structlog.get_logger()


class SuperConductor:
    """A super conductor in this process.

    ``api``: the API database. ``cells`` by name, cell0 among them; more may come. ``max_attempts``: hosts
    tried for an instance, the first included. ``history_days``: days for which the history of an instance is
    kept after its end. ``move_limits``: of moves at once. ``evacuations``: of dead hosts, by themselves.
    ``words``: announces the words of maintenances; None: this process carries none. ``hook``: of
    maintenances. ``backoff``: how often a request that fails is tried, and after which pauses; an outage of
    a database or service is waited out. ``sleep`` waits for some seconds.

    A request that is given up ends in cell0, in error, with the reason. ``failure`` is set to the error of a
    request for which even that failed: it is taken up again by another process, or at the next start.
    ``scheduler`` is the one that the constructor got. ``watch`` knows which processes and hosts are up, while
    the conductor runs.
    """

    def __init__(
        self,
        api: Database,
        scheduler: SchedulerLike,
        placement: Placement,
        cells: Mapping[str, Cell],
        *,
        records: RecordSink | None = None,
        max_attempts: int = 3,
        history_days: float = 30.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - it is frozen
        audits: AuditOptions = AuditOptions(),  # noqa: B008 - it is frozen
        move_limits: MoveLimits = MoveLimits(),  # noqa: B008 - it is frozen
        evacuations: EvacuationOptions = EvacuationOptions(),  # noqa: B008 - it is frozen
        words: AnnouncesWords | None = None,
        hook: MaintenanceHook | None = None,
        maintenances: MaintenanceOptions = MaintenanceOptions(),  # noqa: B008 - it is frozen
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cells = cells
        self.scheduler = scheduler
        self.watch = ServiceWatch(api, cells, monotonic=monotonic, clock=clock)
        self._api = api
        self._history_days = history_days
        self._context = AsyncioConductorContext(
            self._database,
            placement,
            scheduler,
            records=records,
            clock=clock,
            monotonic=monotonic,
            sleep=sleep,
        )
        host = socket.gethostname()
        name = f"{KIND}/{host}/{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._tenure = Tenure(name, KIND, host, times=times)
        self._auditing = audit_tenure(name, times)
        self._audits = audits
        self._move_limits = move_limits
        self._retry_times = DrainTimes()
        self._dead_hosts: DeadHosts | None = None
        if evacuations.after:
            command = evacuations.command
            process = FenceProcess(command, evacuations.command_seconds) if command else None
            self._dead_hosts = DeadHosts(evacuations, process, name)
        options = CarryOptions(max_attempts=max_attempts, backoff=backoff)
        self._working = RequestWorker(self._context, self._tenure, options)
        self._crossings = Crossings(self._tenure, self._answering, move_limits)
        self._maintenances = None if words is None else Maintenances(self._tenure, words, hook, maintenances)
        self._listening: set[asyncio.Task[None]] = set()

    @property
    def holder(self) -> str:
        """The nonce under which this process owns work; empty while it holds no lease."""
        return self._tenure.holder

    @property
    def context(self) -> SuperConductorContext:
        """The context of its coroutines: the API database is ``api`` there, and each cell's ``cell/NAME``."""
        return self._context

    @property
    def in_progress(self) -> int:
        """The number of requests that are on their way to a cell."""
        return len(self._working.carrying)

    @property
    def failure(self) -> BaseException | None:
        """The error of the last request that could not be carried out; None if there is none."""
        return self._working.failure or self._context.failure

    async def begin(self, *, alone: bool = False) -> None:
        """Acquire the lease of this process, so that it can own work.

        ``alone``: no other conductor works on the database, so all other holders of leases are dead.

        Raises: `StorageError`.
        """
        if alone:
            for kind in (KIND, LEASE):
                await self._api.write(vacate_all(kind))
        await renew(self._context, "api", self._tenure)

    async def resume(self) -> None:
        """Renew the lease, take up all work without an owner, and look for further work, for ever.

        Raises: `StorageError` of the API database.
        """
        # First of all: after an outage the work that is to be taken up may take longer than the lease.
        self._run_for_ever(
            keep_lease=lambda: keep_lease(self._context, "api", self._tenure),
            watch_leases=lambda: watch_leases(self._context, "api", KIND, self._tenure.times),
        )
        await self.step()
        self._run_for_ever(
            seek=self._working.seek,
            carry_deletions=self._working.carry_deletions,
            free_late_claims=self._working.free_late_claims,
            complete_mappings=self._working.complete_mappings,
            prune_past=lambda: self._working.prune_past(self._history_days),
            watch_drains=lambda: watch_drains(self._context, self._answering),
            empty_subjects=lambda: empty_subjects(
                self._context, self._answering, self._move_limits, self._knows
            ),
            carry_crossings=lambda: carry_crossings(self._context, self._crossings),
            keep_cell_logs=lambda: keep_cell_logs(self._context, self._answering, self._history_days),
            prune_answers=self._working.prune_answers,
            keep_audit=lambda: keep_lease(self._context, "api", self._auditing),
            watch_audit=lambda: watch_leases(self._context, "api", LEASE, self._auditing.times),
            audit=lambda: audit(self._context, self._auditing, self._audits),
        )
        if (dead := self._dead_hosts) is not None:
            self._run_for_ever(
                evacuate_dead_hosts=lambda: dead.run(self._context, self._answering, self._knows)
            )
        if (maintenances := self._maintenances) is not None:
            self._run_for_ever(carry_maintenances=lambda: carry_maintenances(self._context, maintenances))
        self._listening.add(asyncio.create_task(self.watch.run()))
        for cell in self.cells.values():
            self._listening.add(asyncio.create_task(self._listen(cell)))

    async def step(self) -> None:
        """Take up all work without an owner; take what is under way on: deletions, drains and others.

        Raises: `StorageError` of the API database.
        """
        await self._working.take_all()
        await carry_deletions(self._context, self._working.deletions)
        await self._working.look_for_late_claims()
        await number_changes(self._context, self._answering())
        await look_at_drains(self._context, self._answering())
        await ask_for_moves(self._context, self._answering(), self._move_limits, self._retry_times)
        await step_crossings(self._context, self._crossings)
        if self._maintenances is not None:
            await step_maintenances(self._context, self._maintenances)

    async def accept(self, request: BuildRequest, answer: KeyedAnswer | None = None) -> None:
        """Accept a request: it is durable when this returns, and on its way to its cells.

        ``answer``: stored with the request, for the client's key.

        Raises:
            OutcomeUnknown: the request is carried out if it is found in the database, and not otherwise.
            KeyInWork: an answer is stored for the key already. Nothing is accepted.
        """
        await self._working.accept(clean_request(request), answer)

    async def delete(self, instances: Sequence[str], by: Requester | None = None) -> list[str]:
        """Have instances destroyed and their claims freed; returns those that are known.

        Durable when this returns. A cell that is down is told when it is back. ``by``: the requester.

        Raises: `StorageError` of the API database.
        """
        known = await self._working.delete(tuple(instances), by)
        return [each for each in instances if each in known]

    async def take_up(self) -> bool:
        """Take up all work without an owner; False while this process has no lease.

        What was accepted without a lease has no owner. Raises: `StorageError` of the API database.
        """
        return await self._working.take_all()

    async def idle(self) -> None:
        """Wait until no request of this process is on its way to a cell."""
        finished = self._context.listen(FINISHED)
        while self._working.carrying:
            await finished.wait(1.0)

    async def close(self) -> None:
        """Stop carrying requests. Unfinished ones are taken up by other conductors, or at the next start."""
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        await self._context.close()
        for tenure in (self._tenure, self._auditing):
            if not tenure.holder:
                continue
            try:
                await self._api.write(release_lease(tenure.name, tenure.holder))
            except StorageError as error:
                _log.warning("the lease could not be given back", error=str(error))

    def _run_for_ever(self, **routines: Callable[[], Routine[None]]) -> None:
        """Run coroutines for ever."""
        for name, begin in routines.items():
            self._context.start(name, lasting(self._context, name, begin))

    def _knows(self, feature: Feature) -> bool:
        """Return whether all processes and agents that are up know a feature."""
        return not held_back_by(self.watch, feature)

    def _answering(self) -> list[str]:
        """The cells whose databases answered when they were last read, or were not read yet."""
        silent = self.watch.silent()
        return [name for name in self.cells if name not in silent]

    def _database(self, name: str) -> Transactor:
        if name == "api":
            return self._api
        cell = self.cells.get(name.removeprefix("cell/"))
        if cell is None:
            raise DatabaseUnavailable(f"this process has no database of {name}")
        return cell

    async def _listen(self, cell: Cell) -> None:
        """Have deletions looked at when a cell of this process has forgotten instances."""
        event = cell.listen(GONE)
        try:
            while True:
                await changed(event, 60.0)
                self._context.wake(DELETIONS)
        finally:
            cell.unlisten(event)
