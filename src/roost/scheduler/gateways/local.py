"""Decides inside the transaction: choosing and claiming are one command of the ledger.

Why not choose and then claim: between the two, others claim the same host, and the more load there is the
more often. Here the choice is made on the exact state that the claim is committed on top of.
"""

import time
from collections.abc import Collection, Iterable, Sequence

from roost.fleet.errors import TooMuchWork
from roost.ledger import Command, Ledger, State
from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.placement.commands.allocations import write_allocations
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.explainer import Explainer, Job
from roost.scheduler.explain.ledger_copy import MOST_WAITING, LedgerCopies
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.explain.what_if import Suppositions
from roost.scheduler.gateways import Decided
from roost.scheduler.gateways.evaluation_ahead import EvaluationAhead
from roost.scheduler.gateways.local_replacement import UseAlternate
from roost.scheduler.gateways.query_checks import check_queries
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.bounds import TOO_MUCH_WORK, decision_work
from roost.scheduler.selection.claim_result import ClaimVerdict
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import WORK, Basis, Claim, Outcome
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection.running_selection import INSTANCE as INSTANCE
from roost.scheduler.selection.running_selection import RunningSelection, claim_write, claimed, set_aside
from roost.scheduler.selection.selection import RandomDraw, choose


class LocalGateway:
    """Decides inside a ledger of this process."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        self.pools = pools
        self._ledger = ledger
        self._ahead = EvaluationAhead(ledger)
        self._explainer = Explainer(LedgerCopies(ledger, pools).find, MOST_WAITING)
        self._suppositions = Suppositions(ledger, pools)

    async def decide(self, request: SchedulingRequest) -> Decided:
        await self._ahead.evaluate(request.queries)
        return await self._ledger.execute(Decide(request, self.pools))

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        check_queries(await self._ledger.current(), queries)

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        return await self._ledger.execute(UseAlternate(request, self.pools))

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False
    ) -> Reasons | None:
        return await self._explainer.explain(Job(request, placed, newest))

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        return await self._suppositions.what_if(supposed)

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
        return self.request.instances

    @property
    def requires_new_consumers(self) -> bool:
        return not self.request.generations

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
        if self.request.generations:
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
            write_allocations(state, [claim_write(self.request, claim) for claim in made])
        return running.outcome
