"""One run over HTTP: reads candidates, chooses and claims hosts, and reads more candidates while none is
found."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from roost.placement.client.candidate_pages import CandidatePages
from roost.placement.errors import BadRequest
from roost.scheduler.candidates.fetched_candidates import CachedAnswers, FetchedCandidates
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways.http_claims import HttpClaims
from roost.scheduler.gateways.node_assignments import NodeAssignments
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest, progress_at_start
from roost.scheduler.selection.claim_result import CLAIMED, named, translated
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import BOUND, Claim, ClaimAttempt, Outcome
from roost.scheduler.selection.running_selection import RunningSelection
from roost.scheduler.selection.selection import RandomDraw, choose


class AskedCandidates:
    """The candidates of a request's queries.

    At first those of a cached answer, or ``request.limit`` of each query, or all without a limit. ``bound``:
    option and value of the limit that ended the reading, None before. ``known``: the number of hosts read.
    """

    def __init__(
        self, placement: RunPlacement, request: SchedulingRequest, table: NodeTable, cached: CachedAnswers
    ) -> None:
        self._request = request
        self._table = table
        self._cached = cached
        self._answer = cached.of(request, table)
        self._pages = [CandidatePages(placement, query, request.limit) for query in request.queries]
        self._read = 0
        self.known = 0
        self.bound: str | None = None

    async def fetched(self) -> FetchedCandidates:
        """Return the candidates read so far, without any claim of this run. Raises: as `read_on`."""
        answer, self._answer = self._answer, None
        if answer is None:
            if not self._read:
                await self._read_to(self._request.limit)
            requests = [request for pages in self._pages for request in pages.requests]
            summaries = {uuid: each for pages in self._pages for uuid, each in pages.summaries.items()}
            answer = FetchedCandidates(requests, summaries, self._table)
            self._cached.keep(self._request, self._table, answer)
        self.known = len(answer.index)
        return answer

    async def read_on(self) -> bool:
        """Read twice as many candidates; False if there are no more, or the bound is met.

        Raises:
            BadRequestSpec: Placement does not know a resource class or trait of the query.
            PlacementUnavailable, PlacementRefused: Placement returns no candidates.
        """
        limit = self._request.limit
        if limit is None or (self._read and all(pages.complete for pages in self._pages)):
            return False
        most = self._request.options.request_filters.max_paged_placement_results
        wanted = 2 * (self._read or limit)
        if most:
            if self._read >= most:
                self.bound = f"max_paged_placement_results={most}"
                return False
            wanted = min(wanted, most)
        await self._read_to(wanted)
        return True

    def were_wrong(self) -> None:
        """Drop the cached answer, because placement refused a claim that is based on it."""
        self._cached.decided(self._request, None)

    async def _read_to(self, wanted: int | None) -> None:
        for pages in tuple(self._pages):
            try:
                await translated(pages.read_to(wanted))
            except BadRequest as error:
                # A query for a class that no host has finds nothing; another query may be served.
                if len(self._pages) == 1:
                    raise BadRequestSpec(f"placement cannot serve the request: {named(error)}") from error
                self._pages.remove(pages)
        self._read = max(wanted or 0, 1)


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
