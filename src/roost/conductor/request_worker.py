"""The work of one super conductor: its requests and deletions, and the machines that find more."""

import math
from collections import defaultdict

from roost.conductor.deletions import Deletions, accept_deletion, carry_deletions, take_deletions
from roost.conductor.late_claims import LOOK_SECONDS, free_late_claims
from roost.conductor.request_progress import CarryOptions, carry_through
from roost.conductor.time_limits import DAY
from roost.machine import Await, Clock, Log, Monotonic, Read, Sleep, Start, Wake, Write
from roost.model.history import Requester
from roost.model.idempotency import KeyedAnswer
from roost.model.instance import BuildRequest
from roost.process.logs import RequestIds
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.build_requests import AcceptRequest, FreeRequests, OwnedRequest, TakeRequests
from roost.state.api_database.events import PRUNED_AT_ONCE as EVENTS_AT_ONCE
from roost.state.api_database.events import PruneEvents
from roost.state.api_database.kept_answers import KEPT_SECONDS, Once, PruneAnswers
from roost.state.api_database.kept_answers import PRUNED_AT_ONCE as ANSWERS_AT_ONCE
from roost.state.api_database.mappings import (
    CompleteMappings,
    ForgetInstances,
    IncompleteMappings,
    InstanceMapping,
)
from roost.state.api_database.past import PRUNED_AT_ONCE, PrunePastMappings
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import FindInstances
from roost.state.leases import FREED, Tenure
from roost.storage import StorageError

FINISHED = "conductor/finished"
"""Topic: a request is no longer carried by this process."""

DELETIONS = "conductor/deletions"
"""Topic: a deletion may have work to do."""

FAILED_SECONDS = 60.0
"""Seconds after which a request that ended with an error is taken up again: an outage may be over."""

TAKEN_AT_ONCE = 100
"""Requests that one transaction takes over at most."""

COMPLETED_AT_ONCE = 500
"""Mappings of earlier versions that one transaction completes at most."""


class RequestWorker:
    """The requests and deletions that one process works on.

    Its machines share it. A crash loses it, and another process resumes the work from the databases.
    ``carrying``: the ids of the requests on their way. ``failed``: when a request that ended with an error is
    taken up again, by the monotonic clock; a request that cannot be read never is. ``failure``: the last of
    these errors.
    """

    def __init__(self, tenure: Tenure, options: CarryOptions) -> None:
        self.tenure = tenure
        self.options = options
        self.carrying: set[str] = set()
        self.failed: dict[str, float] = {}
        self.failure: BaseException | None = None
        self.deletions = Deletions()

    async def accept(self, request: BuildRequest, answer: KeyedAnswer | None = None) -> None:
        """Accept a request: durable when this returns, and on its way.

        ``answer``: stored with the request, for the client's key.

        If this process has no lease, the request is durable, and any conductor takes it. Raises
        `StorageError`; after `OutcomeUnknown`, `seek` finds the request if it is written.
        """
        holds = self.tenure.holds(await Monotonic())
        owner = self.tenure.holder if holds else None
        new = request.request_id not in self.carrying
        self.carrying.add(request.request_id)
        number = 0
        try:
            at = await Clock()
            accepted = AcceptRequest(request, at, owner)
            kept = Once(accepted, lambda number: answer if number else None)
            number = await Write(API, accepted if answer is None else kept)
        finally:
            if new and not (number and owner):
                self.carrying.discard(request.request_id)
        if number and owner:
            await self._start(OwnedRequest(request, owner, number), fresh=True)

    async def delete(self, uuids: tuple[str, ...], by: Requester | None = None) -> dict[str, InstanceMapping]:
        """Accept the deletion of instances: see `roost.conductor.deletions.accept_deletion`."""
        known = await accept_deletion(uuids, self.tenure, self.deletions, by)
        await Wake(DELETIONS)
        return known

    async def take_all(self) -> None:
        """Take up all requests and deletions without an owner. Raises: `StorageError`."""
        now = await Monotonic()
        if not self.tenure.holds(now):
            return
        self.failed = {request_id: due for request_id, due in self.failed.items() if due > now}
        while await self._take_requests():
            pass
        await take_deletions(self.tenure, self.deletions)

    async def _take_requests(self) -> bool:
        """Take up some requests without an owner; returns whether there may be more."""
        # The read finds those that this process carries, too.
        most = TAKEN_AT_ONCE + len(self.carrying) + len(self.failed)
        free = await Read(API, FreeRequests(self.tenure.holder, most))
        # As carried now, not before the read: the read also finds requests accepted meanwhile.
        known = self.carrying | self.failed.keys()
        new = tuple(key for key in free if key.request_id not in known)[:TAKEN_AT_ONCE]
        if not new:
            return False
        taken = await Write(API, TakeRequests(new, self.tenure.holder))
        self.failed.update(dict.fromkeys(taken.unreadable, math.inf))
        for owned in taken.owned:
            await Log("resuming a request", {"request_id": owned.request.request_id})
            await self._start(owned, fresh=False)
        return len(free) == most and bool(taken.owned or taken.unreadable)

    async def seek(self) -> None:
        """Look for work without an owner, for ever."""
        while True:
            try:
                await self.take_all()
            except StorageError as error:
                await Log("work cannot be looked for", {"error": str(error)}, "debug")
            await Await(FREED, self.tenure.times.look)

    async def carry_deletions(self) -> None:
        """Take deletions on, for ever."""
        failures = 0
        while True:
            pause = self.tenure.times.look
            try:
                await carry_deletions(self.deletions)
                failures = 0
            except Exception as error:
                # For example, placement cannot be reached. No error may end the only machine of deletions.
                failures += 1
                pause = max(pause, self.options.backoff.pause(failures))
                values = {"error": one_line(error), "failures": failures}
                await Log("deletions are ended later", values, "warning")
            await Await(DELETIONS, pause)

    async def free_late_claims(self) -> None:
        """Free claims that are made after the end of their instances, for ever."""
        while True:
            await self.look_for_late_claims()
            await Sleep(LOOK_SECONDS)

    async def look_for_late_claims(self) -> None:
        """Free claims that were made after the end of their instances; later if placement is away."""
        try:
            await free_late_claims(self.tenure)
        except Exception as error:
            values = {"error": one_line(error)}
            await Log("late claims are looked for later", values, "warning")

    async def prune_past(self, days: float) -> None:
        """Remove instances that ended, and events that happened, more than ``days`` ago: hourly, for ever."""
        while True:
            older = await Clock() - days * DAY
            try:
                while await Write(API, PrunePastMappings(older)) == PRUNED_AT_ONCE:
                    pass
                while await Write(API, PruneEvents(older)) == EVENTS_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                await Log("histories are pruned later", values, "warning")
            await Sleep(3600.0)

    async def prune_answers(self) -> None:
        """Remove the answers to requests with a key that are older than a day: hourly, for ever."""
        while True:
            older = await Clock() - KEPT_SECONDS
            try:
                while await Write(API, PruneAnswers(older)) == ANSWERS_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                await Log("kept answers are pruned later", values, "warning")
            await Sleep(3600.0)

    async def complete_mappings(self) -> None:
        """Complete the mappings that an earlier version wrote, from the cells; then end."""
        after, late = "", 0
        while True:
            try:
                found = await Read(API, IncompleteMappings(COMPLETED_AT_ONCE, after))
                late += await _complete(found)
            except StorageError:
                await Sleep(self.tenure.times.lease)
                continue
            if found:
                after = found[-1].instance_uuid
            elif late:
                after, late = "", 0
                await Sleep(self.tenure.times.lease)
            else:
                return

    async def _start(self, owned: OwnedRequest, fresh: bool) -> None:
        request = owned.request
        self.carrying.add(request.request_id)
        ids = RequestIds(request.request_id, request.global_request_id)
        await Start(f"carry {request.request_id}", self._carry(owned, fresh), ids)

    async def _carry(self, owned: OwnedRequest, fresh: bool) -> None:
        request_id = owned.request.request_id
        try:
            await carry_through(owned, self.options, fresh=fresh)
        except Exception as error:
            self.failure = error
            self.failed[request_id] = await Monotonic() + FAILED_SECONDS
            self.carrying.discard(request_id)
            await Wake(FINISHED)
            raise
        finally:
            self.carrying.discard(request_id)
        await Wake(FINISHED)


async def _complete(found: list[InstanceMapping]) -> int:
    """Complete mappings; returns the number of mappings whose cell is down.

    A mapping of an instance that its cell does not have is removed.
    """
    by_cell: defaultdict[str, list[str]] = defaultdict(list)
    for mapping in found:
        if mapping.cell is not None:
            by_cell[mapping.cell].append(mapping.instance_uuid)
    late = 0
    for cell, uuids in by_cell.items():
        try:
            there = await Read(f"cell/{cell}", FindInstances(tuple(uuids)))
        except StorageError:
            late += len(uuids)
            continue
        await Write(API, CompleteMappings(tuple(there.values())))
        gone = tuple(uuid for uuid in uuids if uuid not in there)
        if gone:
            await Write(API, ForgetInstances(gone, await Clock()))
    return late
