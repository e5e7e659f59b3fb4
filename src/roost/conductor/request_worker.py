"""The work of one super conductor: its requests and deletions, and the machines that find more."""

import math
from collections import defaultdict

from roost.conductor.deletions import Deletions, accept_deletion, carry_deletions, take_deletions
from roost.conductor.late_claims import LOOK_SECONDS, free_late_claims
from roost.conductor.request_progress import CarryOptions, carry_through
from roost.conductor.time_limits import DAY
from roost.machine import Await, Clock, Log, Machine, Monotonic, Read, Sleep, Start, Wake, Write
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

    def accept(self, request: BuildRequest, answer: KeyedAnswer | None = None) -> Machine[None]:
        """Accept a request: durable when this returns, and on its way.

        ``answer``: stored with the request, for the client's key.

        If this process has no lease, the request is durable, and any conductor takes it. Raises
        `StorageError`; after `OutcomeUnknown`, `seek` finds the request if it is written.
        """
        holds = self.tenure.holds((yield from Monotonic().do()))
        owner = self.tenure.holder if holds else None
        new = request.request_id not in self.carrying
        self.carrying.add(request.request_id)
        number = 0
        try:
            at = yield from Clock().do()
            accepted = AcceptRequest(request, at, owner)
            kept = Once(accepted, lambda number: answer if number else None)
            number = yield from Write(API, accepted if answer is None else kept).do()
        finally:
            if new and not (number and owner):
                self.carrying.discard(request.request_id)
        if number and owner:
            yield from self._start(OwnedRequest(request, owner, number), fresh=True)

    def delete(
        self, uuids: tuple[str, ...], by: Requester | None = None
    ) -> Machine[dict[str, InstanceMapping]]:
        """Accept the deletion of instances: see `roost.conductor.deletions.accept_deletion`."""
        known = yield from accept_deletion(uuids, self.tenure, self.deletions, by)
        yield from Wake(DELETIONS).do()
        return known

    def take_all(self) -> Machine[None]:
        """Take up all requests and deletions without an owner. Raises: `StorageError`."""
        now = yield from Monotonic().do()
        if not self.tenure.holds(now):
            return
        self.failed = {request_id: due for request_id, due in self.failed.items() if due > now}
        while (yield from self._take_requests()):
            pass
        yield from take_deletions(self.tenure, self.deletions)

    def _take_requests(self) -> Machine[bool]:
        """Take up some requests without an owner; returns whether there may be more."""
        # The read finds those that this process carries, too.
        most = TAKEN_AT_ONCE + len(self.carrying) + len(self.failed)
        free = yield from Read(API, FreeRequests(self.tenure.holder, most)).do()
        # As carried now, not before the read: the read also finds requests accepted meanwhile.
        known = self.carrying | self.failed.keys()
        new = tuple(key for key in free if key.request_id not in known)[:TAKEN_AT_ONCE]
        if not new:
            return False
        taken = yield from Write(API, TakeRequests(new, self.tenure.holder)).do()
        self.failed.update(dict.fromkeys(taken.unreadable, math.inf))
        for owned in taken.owned:
            yield from Log("resuming a request", {"request_id": owned.request.request_id}).do()
            yield from self._start(owned, fresh=False)
        return len(free) == most and bool(taken.owned or taken.unreadable)

    def seek(self) -> Machine[None]:
        """Look for work without an owner, for ever."""
        while True:
            try:
                yield from self.take_all()
            except StorageError as error:
                yield from Log("work cannot be looked for", {"error": str(error)}, "debug").do()
            yield from Await(FREED, self.tenure.times.look).do()

    def carry_deletions(self) -> Machine[None]:
        """Take deletions on, for ever."""
        failures = 0
        while True:
            pause = self.tenure.times.look
            try:
                yield from carry_deletions(self.deletions)
                failures = 0
            except Exception as error:
                # For example, placement cannot be reached. No error may end the only machine of deletions.
                failures += 1
                pause = max(pause, self.options.backoff.pause(failures))
                values = {"error": one_line(error), "failures": failures}
                yield from Log("deletions are ended later", values, "warning").do()
            yield from Await(DELETIONS, pause).do()

    def free_late_claims(self) -> Machine[None]:
        """Free claims that are made after the end of their instances, for ever."""
        while True:
            yield from self.look_for_late_claims()
            yield from Sleep(LOOK_SECONDS).do()

    def look_for_late_claims(self) -> Machine[None]:
        """Free claims that were made after the end of their instances; later if placement is away."""
        try:
            yield from free_late_claims(self.tenure)
        except Exception as error:
            values = {"error": one_line(error)}
            yield from Log("late claims are looked for later", values, "warning").do()

    def prune_past(self, days: float) -> Machine[None]:
        """Remove instances that ended, and events that happened, more than ``days`` ago: hourly, for ever."""
        while True:
            older = (yield from Clock().do()) - days * DAY
            try:
                while (yield from Write(API, PrunePastMappings(older)).do()) == PRUNED_AT_ONCE:
                    pass
                while (yield from Write(API, PruneEvents(older)).do()) == EVENTS_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                yield from Log("histories are pruned later", values, "warning").do()
            yield from Sleep(3600.0).do()

    def prune_answers(self) -> Machine[None]:
        """Remove the answers to requests with a key that are older than a day: hourly, for ever."""
        while True:
            older = (yield from Clock().do()) - KEPT_SECONDS
            try:
                while (yield from Write(API, PruneAnswers(older)).do()) == ANSWERS_AT_ONCE:
                    pass
            except StorageError as error:
                values = {"error": one_line(error)}
                yield from Log("kept answers are pruned later", values, "warning").do()
            yield from Sleep(3600.0).do()

    def complete_mappings(self) -> Machine[None]:
        """Complete the mappings that an earlier version wrote, from the cells; then end."""
        after, late = "", 0
        while True:
            try:
                found = yield from Read(API, IncompleteMappings(COMPLETED_AT_ONCE, after)).do()
                late += yield from _complete(found)
            except StorageError:
                yield from Sleep(self.tenure.times.lease).do()
                continue
            if found:
                after = found[-1].instance_uuid
            elif late:
                after, late = "", 0
                yield from Sleep(self.tenure.times.lease).do()
            else:
                return

    def _start(self, owned: OwnedRequest, fresh: bool) -> Machine[None]:
        request = owned.request
        self.carrying.add(request.request_id)
        ids = RequestIds(request.request_id, request.global_request_id)
        yield from Start(f"carry {request.request_id}", self._carry(owned, fresh), ids).do()

    def _carry(self, owned: OwnedRequest, fresh: bool) -> Machine[None]:
        request_id = owned.request.request_id
        try:
            yield from carry_through(owned, self.options, fresh=fresh)
        except Exception as error:
            self.failure = error
            self.failed[request_id] = (yield from Monotonic().do()) + FAILED_SECONDS
            self.carrying.discard(request_id)
            yield from Wake(FINISHED).do()
            raise
        finally:
            self.carrying.discard(request_id)
        yield from Wake(FINISHED).do()


def _complete(found: list[InstanceMapping]) -> Machine[int]:
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
            there = yield from Read(f"cell/{cell}", FindInstances(tuple(uuids))).do()
        except StorageError:
            late += len(uuids)
            continue
        yield from Write(API, CompleteMappings(tuple(there.values()))).do()
        gone = tuple(uuid for uuid in uuids if uuid not in there)
        if gone:
            yield from Write(API, ForgetInstances(gone, (yield from Clock().do()))).do()
    return late
