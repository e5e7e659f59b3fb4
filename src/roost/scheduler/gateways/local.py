"""Decides inside the transaction: choosing and claiming are one command of the ledger.

Why not choose and then claim: between the two, others claim the same host, and the more load there is the
more often. Here the choice is made on the exact state that the claim is committed on top of. The use of an
alternate is such a command too.

A query that is new to the fleet is evaluated before its decision. That takes 60 µs for each tree that is like
no other: a tenth of a second in a region of odd hosts. Within the decision it would hold the ledger's writer,
and with it everything else in the process, for that long. Ahead of the decision it is made in parts, with
pauses between them for other tasks. The results are cached beside the fleet, where the decision finds them
and applies the changes since then.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from roost.fleet import Fleet
from roost.fleet.errors import TooMuchWork
from roost.fleet.feasibility import feasibilities
from roost.ledger import Command, Held, Ledger, State
from roost.model.allocation import Candidate
from roost.model.change import AllocationsChanged
from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.spec import Selection
from roost.model.what_if import WhatIf
from roost.placement.commands.allocations import write_allocations
from roost.placement.errors import PlacementError
from roost.scheduler.errors import NothingClaimed, SchedulerError
from roost.scheduler.explain.explainer import Explainer, Job
from roost.scheduler.explain.ledger_copy import MOST_WAITING, LedgerCopies
from roost.scheduler.explain.resident_reader import ResidentReader
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.explain.what_if import Suppositions
from roost.scheduler.gateways import Decided
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.maintenance.plans import Plans
from roost.scheduler.request.query import check_queries
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.bounds import TOO_MUCH_WORK, decision_work
from roost.scheduler.selection.claim_result import ClaimVerdict, one_line, result_of
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import WORK, Basis, Claim, Outcome
from roost.scheduler.selection.replacement import NO_CANDIDATE, Replacement, ReplacementRequest, Replacing
from roost.scheduler.selection.running_selection import INSTANCE as INSTANCE
from roost.scheduler.selection.running_selection import (
    RunningSelection,
    claim_write,
    claim_writes,
    claimed,
    set_aside,
)
from roost.scheduler.selection.selection import RandomDraw, choose

UNITS: Final = 20_000
"""Units of work of one part: some 10 ms."""

MOST_UNITS: Final = 80_000
"""Units of work of the longest part, where shorter ones make no progress: some 40 ms, twice that in a search.

A query that needs more is left to the decision, whose own limit tells whether it is too much.
"""


class EvaluationAhead:
    """Evaluates queries on the fleet of a ledger, one query at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._turn = asyncio.Lock()

    async def evaluate(self, queries: Sequence[CandidateQuery]) -> None:
        """Evaluate the trees for the queries that are not evaluated yet."""
        if not self._ledger.tentative().has_trees:
            return
        for query in queries:
            if not self._is_done(query):
                async with self._turn:
                    await self._in_parts(query)

    def _is_done(self, query: CandidateQuery) -> bool:
        return feasibilities(self._ledger.tentative()).is_evaluated(query)

    async def _in_parts(self, query: CandidateQuery) -> None:
        units, reached = min(UNITS, MOST_UNITS), -1
        while units and not self._is_done(query):
            now = feasibilities(self._ledger.tentative()).evaluate(query, units)
            await asyncio.sleep(0)
            if now is None or (now <= reached and units == MOST_UNITS):
                break
            if now <= reached:
                units = min(2 * units, MOST_UNITS)
            reached = max(now, reached)


class UseAlternate(Command[Replacement], frozen=True):
    """The command that uses an alternate: see `roost.scheduler.selection.replacement`."""

    request: ReplacementRequest
    pools: HostPools

    def consumers(self) -> Iterable[str]:
        return (self.request.instance,)

    def run(self, state: State) -> Replacement:
        request, fleet = self.request, state.fleet
        request.scheduling.check_word(fleet.word)
        held = state.held(request.instance)
        if held is None:
            raise NothingClaimed(request.instance)
        check_queries(fleet, request.scheduling.queries)
        replacing = Replacing(request, self.pools)
        before = replacing.moved_before(
            held, held.consumer.assignment, lambda each, root: _root(fleet, each) == root
        )
        if before is not None:
            return before
        work = decision_work(1, len(fleet))
        for number, alternate in enumerate(request.alternates):
            with fleet.meter.limited(work):
                claimed = self._claim(state, held, replacing, alternate)
            if isinstance(claimed, Selection):
                return replacing.claimed(number, claimed)
            replacing.passed_over(alternate, claimed)
        return replacing.nothing_left()

    def _claim(self, state: State, held: Held, replacing: Replacing, alternate: Selection) -> Selection | str:
        """Claim an alternate; returns the selection, or why it cannot be claimed."""
        index = replacing.alive(alternate)
        if isinstance(index, str):
            return index
        # The instance's own allocations must not count against it: neither room in a pool that both hosts
        # share, nor its membership in its server group.
        mark = len(state.changes)
        state.apply(AllocationsChanged(replacing.request.instance, held.consumer, None, held.allocations, {}))
        try:
            pool = self.pools.fresh_of_fleet(state.fleet, replacing.request.scheduling, only=index)
            found = replacing.candidates(alternate, pool)
        except TooMuchWork:
            found = TOO_MUCH_WORK
        finally:
            state.take_back(mark)
        if isinstance(found, str):
            return self._why_none(state, held, alternate) if found == NO_CANDIDATE else found
        reason = replacing.bound or ""
        for candidate in replacing.to_claim(found):
            claim = Claim(replacing.request.instance, candidate)
            try:
                write = claim_write(replacing.request.scheduling, claim, held.consumer.generation)
                write_allocations(state, [write])
            except PlacementError as error:
                result = result_of(error)
                if result.verdict is not ClaimVerdict.REFUSED:
                    raise
                reason = result.reason or ""
            else:
                return replacing.selection(alternate, index, candidate, held.consumer.generation + 1)
        return reason

    def _why_none(self, state: State, held: Held, alternate: Selection) -> str:
        """Return why placement has no candidate on the host of an alternate that is alive."""
        mark = len(state.changes)
        claim = Claim(self.request.instance, Candidate(alternate.node, alternate.allocations, {}))
        try:
            write_allocations(state, [claim_write(self.request.scheduling, claim, held.consumer.generation)])
        except PlacementError as error:
            return one_line(error)
        finally:
            state.take_back(mark)
        return f"{NO_CANDIDATE}: its traits or aggregates no longer meet the request"


def _root(fleet: Fleet, provider: str) -> str | None:
    """Return the root of a provider's tree, None if there is no such provider."""
    row = fleet.find_row(provider)
    return None if row < 0 else fleet.uuid(fleet.root.item(row))


class LocalGateway:
    """Decides inside a ledger of this process.

    ``residents``: reads the instances that may move, for explanations that look for moves; None: none does.
    """

    def __init__(self, ledger: Ledger, pools: HostPools, residents: ResidentReader | None = None) -> None:
        self.pools = pools
        self._ledger = ledger
        self._ahead = EvaluationAhead(ledger)
        self._explainer = Explainer(LedgerCopies(ledger, pools, residents).find, MOST_WAITING)
        self._suppositions = Suppositions(ledger, pools)
        self._plans = Plans(ledger, pools)

    async def evaluate(self, queries: Sequence[CandidateQuery]) -> None:
        """Evaluate new queries on the fleet in parts, so that a decision on it finds the results."""
        await self._ahead.evaluate(queries)

    async def decide(self, request: SchedulingRequest) -> Decided:
        await self._ahead.evaluate(request.queries)
        return await self._ledger.execute(Decide(request, self.pools))

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        check_queries(await self._ledger.current(), queries)

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        return await self._ledger.execute(UseAlternate(request, self.pools))

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        return await self._explainer.explain(Job(request, placed, newest, moves))

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        return await self._suppositions.what_if(supposed)

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        return await self._plans.plan(wanted, now)

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        fleet = await self._ledger.current()
        return {
            provider: frozenset(fleet.aggregates_of(fleet.row(provider)) if provider in fleet else ())
            for provider in providers
        }


class Decide(Command[Decided], frozen=True):
    """The command that decides a request: see `roost.scheduler.selection.selection.choose`."""

    request: SchedulingRequest
    pools: HostPools

    def consumers(self) -> Iterable[str]:
        return self.request.consumers

    @property
    def requires_new_consumers(self) -> bool:
        return not (self.request.generations or self.request.beside or self.request.handed)

    def run(self, state: State) -> Decided:
        started, table = time.perf_counter(), self.pools.table
        self.request.check_word(state.fleet.word)
        mark = len(state.changes)
        # A decision that lost its commit to another writer is made again: its earlier claims do not count.
        table.release(*self.request.instances)
        # Services that are found to be down or up again here are part of the node version.
        table.seen_since(self.request.oldest_heartbeat)
        node_version = table.version
        try:
            with state.fleet.meter.limited(decision_work(len(self.request.instances), len(state.fleet))):
                outcome = self._outcome(state, mark)
        except TooMuchWork:
            table.release(*self.request.instances)
            outcome = Outcome((), (), (), TOO_MUCH_WORK, WORK)
        except SchedulerError as error:
            error.basis = Basis(state.fleet.version, mark, node_version)
            raise
        if not outcome.destinations:
            # The reasons are found beside the writer, see `roost.scheduler.explain`.
            state.take_back(mark)
        return Decided(outcome, state.fleet.version, time.perf_counter() - started, mark, node_version)

    def _outcome(self, state: State, mark: int) -> Outcome:
        check_queries(state.fleet, self.request.queries)
        set_aside(state, self.request)
        pool = self.pools.of_fleet(state.fleet, self.request)
        selecting = choose(self.request, self.pools.table, pool, RandomDraw(self.request.seed))
        running = RunningSelection(selecting)
        made: list[Claim] = []
        while running.claim is not None:
            claim = running.claim
            result = claimed(state, self.request, claim)
            if result.verdict is ClaimVerdict.CLAIMED:
                made.append(claim)
            running.answer(result)
        if running.outcome.destinations and self.request.generations:
            state.take_back(mark)
            writes = (claim_writes(self.request, claim) for claim in made)
            write_allocations(state, list(chain.from_iterable(writes)))
        return running.outcome
