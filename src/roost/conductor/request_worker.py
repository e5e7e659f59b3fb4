"""The work of one super conductor: its requests and deletions, and the coroutines that find more."""

import math
from collections import defaultdict

from roost.conductor.backoff import CarryOptions
from roost.conductor.claim_release import LOOK_SECONDS, free_late_claims
from roost.conductor.context import SuperConductorContext
from roost.conductor.deletions import Deletions, accept_deletion, carry_deletions, take_deletions
from roost.conductor.request_progress import carry_through
from roost.conductor.time_limits import DAY
from roost.model.idempotency import KeyedAnswer
from roost.model.instance import BuildRequest, Requester
from roost.process.logs import RequestIds
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.build_requests import (
    AcceptRequest,
    OwnedRequest,
    find_free_requests,
    take_requests,
)
from roost.state.api_database.events import PRUNED_AT_ONCE as EVENTS_AT_ONCE
from roost.state.api_database.events import prune_events
from roost.state.api_database.kept_answers import KEPT_SECONDS, Once, prune_kept_answers
from roost.state.api_database.kept_answers import PRUNED_AT_ONCE as ANSWERS_AT_ONCE
from roost.state.api_database.maintenances import PRUNED_AT_ONCE as MAINTENANCES_AT_ONCE
from roost.state.api_database.maintenances import prune_maintenances
from roost.state.api_database.mappings import (
    InstanceMapping,
    fill_in_projects,
    forget_instances,
    mappings_without_project,
)
from roost.state.api_database.past import PRUNED_AT_ONCE, prune_past_mappings
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import find_instances
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

    Its coroutines share it. A crash loses it, and another process resumes the work from the databases.
    ``carrying``: the ids of the requests on their way. ``failed``: when a request that ended with an error is
    taken up again, by the monotonic clock; a request that cannot be read never is. ``failure``: the last of
    these errors.
    """

    def __init__(self, context: SuperConductorContext, tenure: Tenure, options: CarryOptions) -> None:
        self._context = context
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
        holds = self.tenure.holds(self._context.monotonic())
        owner = self.tenure.holder if holds else None
        new = request.request_id not in self.carrying
        self.carrying.add(request.request_id)
        number = 0
        try:
            at = self._context.clock()
            accepted = AcceptRequest(request, at, owner)
            kept = Once(accepted, lambda number: answer if number else None)
            number = await self._context.write(API, accepted if answer is None else kept)
        finally:
            if new and not (number and owner):
                self.carrying.discard(request.request_id)
        if number and owner:
            self._start(OwnedRequest(request, owner, number), fresh=True)

    async def delete(self, uuids: tuple[str, ...], by: Requester | None = None) -> dict[str, InstanceMapping]:
        """Accept the deletion of instances: see `roost.conductor.deletions.accept_deletion`."""
        known = await accept_deletion(self._context, uuids, self.tenure, self.deletions, by)
        self._context.wake(DELETIONS)
        return known

    async def take_all(self) -> bool:
        """Take up all requests and deletions without an owner; False without a lease.

        Raises: `StorageError`.
        """
        now = self._context.monotonic()
        if not self.tenure.holds(now):
            return False
        self.failed = {request_id: due for request_id, due in self.failed.items() if due > now}
        while await self._take_requests():
            pass
        await take_deletions(self._context, self.tenure, self.deletions)
        return True

    async def _take_requests(self) -> bool:
        """Take up some requests without an owner; returns whether there may be more."""
        # The read finds those that this process carries, too.
        most = TAKEN_AT_ONCE + len(self.carrying) + len(self.failed)
        free = await self._context.read(API, find_free_requests(self.tenure.holder, most))
        # As carried now, not before the read: the read also finds requests accepted meanwhile.
        known = self.carrying | self.failed.keys()
        new = tuple(key for key in free if key.request_id not in known)[:TAKEN_AT_ONCE]
        if not new:
            return False
        taken = await self._context.write(API, take_requests(new, self.tenure.holder))
        self.failed.update(dict.fromkeys(taken.unreadable, math.inf))
        for owned in taken.owned:
            self._context.log("resuming a request", {"request_id": owned.request.request_id})
            self._start(owned, fresh=False)
        return len(free) == most and bool(taken.owned or taken.unreadable)

    async def seek(self) -> None:
        """Look for work without an owner, for ever."""
        freed = self._context.listen(FREED)
        while True:
            try:
                await self.take_all()
            except StorageError as error:
                self._context.log("work cannot be looked for", {"error": str(error)}, "debug")
            await freed.wait(self.tenure.times.look)

    async def carry_deletions(self) -> None:
        """Take deletions on, for ever."""
        wakes = self._context.listen(DELETIONS)
        failures = 0
        while True:
            pause = self.tenure.times.look
            try:
                await carry_deletions(self._context, self.deletions)
                failures = 0
            except Exception as error:
                # For example, placement cannot be reached. No error may end the only coroutine of deletions.
                failures += 1
                pause = max(pause, self.options.backoff.pause(failures))
                values = {"error": one_line(error), "failures": failures}
                self._context.log("deletions are ended later", values, "warning")
            await wakes.wait(pause)

    async def free_late_claims(self) -> None:
        """Free claims that are made after the end of their instances, for ever."""
        while True:
            await self.look_for_late_claims()
            await self._context.sleep(LOOK_SECONDS)

    async def look_for_late_claims(self) -> None:
        """Free claims that were made after the end of their instances; later if placement is away."""
        try:
            await free_late_claims(self._context, self.tenure)
        except Exception as error:
            values = {"error": one_line(error)}
            self._context.log("late claims are looked for later", values, "warning")

    async def prune_past(self, days: float) -> None:
        """Remove instances and maintenances that ended, and events that happened, more than ``days`` ago:
        hourly, for ever."""
        while True:
            older = self._context.clock() - days * DAY
            try:
                while await self._context.write(API, prune_past_mappings(older)) == PRUNED_AT_ONCE:
                    pass
                while await self._context.write(API, prune_events(older)) == EVENTS_AT_ONCE:
                    pass
                while await self._context.write(API, prune_maintenances(older)) == MAINTENANCES_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                self._context.log("histories are pruned later", values, "warning")
            await self._context.sleep(3600.0)

    async def prune_answers(self) -> None:
        """Remove the answers to requests with a key that are older than a day: hourly, for ever."""
        while True:
            older = self._context.clock() - KEPT_SECONDS
            try:
                while await self._context.write(API, prune_kept_answers(older)) == ANSWERS_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                self._context.log("kept answers are pruned later", values, "warning")
            await self._context.sleep(3600.0)

    async def complete_mappings(self) -> None:
        """Complete the mappings that an earlier version wrote, from the cells; then end."""
        after, late = "", 0
        while True:
            try:
                found = await self._context.read(API, mappings_without_project(COMPLETED_AT_ONCE, after))
                late += await _complete(self._context, found)
            except StorageError:
                await self._context.sleep(self.tenure.times.lease)
                continue
            if found:
                after = found[-1].instance_uuid
            elif late:
                after, late = "", 0
                await self._context.sleep(self.tenure.times.lease)
            else:
                return

    def _start(self, owned: OwnedRequest, fresh: bool) -> None:
        request = owned.request
        self.carrying.add(request.request_id)
        ids = RequestIds(request.request_id, request.global_request_id)
        self._context.start(f"carry {request.request_id}", self._carry(owned, fresh), ids)

    async def _carry(self, owned: OwnedRequest, fresh: bool) -> None:
        request_id = owned.request.request_id
        try:
            await carry_through(self._context, owned, self.options, fresh=fresh)
        except Exception as error:
            self.failure = error
            self.failed[request_id] = self._context.monotonic() + FAILED_SECONDS
            self.carrying.discard(request_id)
            self._context.wake(FINISHED)
            raise
        finally:
            self.carrying.discard(request_id)
        self._context.wake(FINISHED)


async def _complete(context: SuperConductorContext, found: list[InstanceMapping]) -> int:
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
            there = await context.read(f"cell/{cell}", find_instances(tuple(uuids)))
        except StorageError:
            late += len(uuids)
            continue
        await context.write(API, fill_in_projects(tuple(there.values())))
        gone = tuple(uuid for uuid in uuids if uuid not in there)
        if gone:
            await context.write(API, forget_instances(gone, context.clock()))
    return late
