"""One run over HTTP: reads candidates, chooses and claims hosts, and reads more candidates while none is
found."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from roost.scheduler.gateways.asked_candidates import AskedCandidates
from roost.scheduler.gateways.http_claims import HttpClaims
from roost.scheduler.gateways.node_assignments import NodeAssignments
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import CLAIMED
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import BOUND, Claim, ClaimAttempt, Outcome
from roost.scheduler.selection.running_selection import RunningSelection
from roost.scheduler.selection.selection import RandomDraw, choose

ReadAssignments = Callable[[Indexes], Awaitable[NodeAssignments]]
"""Reads the assignments on nodes, by their indexes in the table."""


class HttpRun:
    """Decides a request on the answers of placement.

    The hosts of several instances are chosen first and claimed in one write. Where placement refuses it
    because others were faster, the instances are placed one after the other, each on the next host that takes
    it.

    ``assigned`` reads the assignments on the nodes of the answer. ``members``: the hosts of each member of
    the server group, see `progress_at_start`. ``seconds``: time of choosing, without waiting for placement.
    """

    def __init__(
        self,
        request: SchedulingRequest,
        pools: HostPools,
        candidates: AskedCandidates,
        members: Mapping[str, Sequence[str]] | None,
        claims: HttpClaims,
        assigned: ReadAssignments,
    ) -> None:
        self._request = request
        self._pools = pools
        self._candidates = candidates
        self._members = members
        self._claims = claims
        self._read_assignments = assigned
        self._tries: tuple[ClaimAttempt, ...] = ()
        self.seconds = 0.0

    async def run(self) -> Outcome:
        """Choose and claim. Claims of a run that places nothing, or raises, do not stay."""
        outcome = None
        if len(self._request.instances) > 1 and self._claims.may_be_made_together:
            outcome = await self._together()
        while outcome is None:
            outcome = await self._one_by_one()
            if not outcome.destinations and await self._reads_on(outcome):
                outcome = None
        if self._falls_short(outcome) and self._candidates.bound is not None:
            reason = f"{outcome.refusal}; more candidates are not read: {self._candidates.bound} is met"
            outcome = msgspec.structs.replace(outcome, refusal=reason)
        return outcome

    async def _together(self) -> Outcome | None:
        """Choose for all instances, then claim; None if placement refuses that, and nothing is claimed."""
        while True:
            running, claims = await self._selection(), list[Claim]()
            started = time.perf_counter()
            while running.claim is not None:
                claims.append(running.claim)
                self._claims.assigned.chosen(running.claim)
                running.answer(CLAIMED)
            self.seconds += time.perf_counter() - started
            outcome = running.outcome
            if not await self._reads_on(outcome):
                break
        if not outcome.destinations:
            return outcome
        if await self._claims.make_together(claims):
            return self._dated(outcome)
        self._claims.judged.clear()
        self._candidates.were_wrong()
        return None

    async def _one_by_one(self) -> Outcome:
        running = await self._selection()
        started, waited = time.perf_counter(), self._claims.waited
        outcome = await self._claims.carry_out(running)
        self.seconds += time.perf_counter() - started - (self._claims.waited - waited)
        self._tries += self._dated(outcome).tries
        return msgspec.structs.replace(outcome, tries=self._tries)

    def _dated(self, outcome: Outcome) -> Outcome:
        """Return an outcome whose claim attempts have the versions that they were judged on."""
        dated = [
            msgspec.structs.replace(tried, version=version)
            for tried, version in zip(outcome.tries, self._claims.judged, strict=True)
        ]
        self._claims.judged.clear()
        return msgspec.structs.replace(outcome, tries=tuple(dated))

    async def _selection(self) -> RunningSelection:
        request, table = self._request, self._pools.table
        answered = await self._candidates.fetched()
        self._claims.assigned = await self._read_assignments(answered.index)
        source = answered.beside(self._claims.assigned.on)
        # The placements of the selection before this one do not count.
        table.release(*request.instances)
        progress = progress_at_start(request, table, claims=self._members)
        started = time.perf_counter()
        pool = self._pools.of_source(source, request, progress)
        running = RunningSelection(choose(request, table, pool, RandomDraw(request.seed)))
        self.seconds += time.perf_counter() - started
        return running

    async def _reads_on(self, outcome: Outcome) -> bool:
        """Return whether an outcome falls short and more candidates have been read."""
        if not self._falls_short(outcome) or outcome.cause == BOUND or self._request.expired():
            return False
        return await self._candidates.read_on()

    def _falls_short(self, outcome: Outcome) -> bool:
        return len(outcome.destinations) < len(self._request.instances)
