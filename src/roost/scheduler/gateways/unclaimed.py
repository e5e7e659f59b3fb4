"""Gateways that decide without a claim, on the ledger or over HTTP, with their verdict on each host."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from roost.fleet import Fleet
from roost.ledger import Ledger, State
from roost.model.change import AllocationsChanged
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.gateways import Decided, GatewayWrapper
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import Decide, LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import HostPool
from roost.scheduler.pool.judged_pool import JudgedPool, PoolJudgement
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

MOST_JUDGED: Final = 200
"""Runs of which the pool is kept until its judgement is taken. A caller has no more of them at a time."""


class JudgingPools(HostPools):
    """Host pools of which the judgement can be taken after the run."""

    def __init__(self, table: NodeTable, options: SchedulerOptions) -> None:
        super().__init__(table, options)
        self._judged: OrderedDict[str, JudgedPool] = OrderedDict()

    def of_fleet(self, fleet: Fleet, request: SchedulingRequest) -> HostPool:
        return self.fresh_of_fleet(fleet, request)

    def of_source(
        self,
        source: CandidateSource,
        request: SchedulingRequest,
        progress: GroupPlacement | None = None,
        filters: Sequence[Filter] | None = None,
    ) -> JudgedPool:
        chosen = self.plugins.filters if filters is None else filters
        pool = JudgedPool(request, self.table, source, chosen, self.plugins.weighers, progress)
        self._judged[request.run] = pool
        while len(self._judged) > MOST_JUDGED:
            self._judged.popitem(last=False)
        return pool

    def judgement(self, run: str) -> PoolJudgement | None:
        """Return the verdicts of a run on all hosts, once; None if it judged none."""
        pool = self._judged.pop(run, None)
        return None if pool is None else pool.judgement


class UnclaimedDecide(Decide, frozen=True):
    """The command that decides a request, and takes its claims back before the commit.

    Instances that hold something already do not count: another scheduler may have claimed for them.
    """

    @property
    def requires_new_consumers(self) -> bool:
        return False

    def run(self, state: State) -> Decided:
        mark = len(state.changes)
        try:
            for instance in self.request.instances:
                if (held := state.held(instance)) is not None:
                    state.apply(AllocationsChanged(instance, held.consumer, None, held.allocations, {}))
            decided = super().run(state)
            state.take_back(mark)
        finally:
            self.pools.table.release(*self.request.instances)
        return _unclaimed(decided)._replace(version=None, position=None)


class LocalUnclaimedGateway(LocalGateway):
    """Decides on a ledger of this process without a claim."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        super().__init__(ledger, pools)
        self._of = ledger

    async def decide(self, request: SchedulingRequest) -> Decided:
        await self._ahead.evaluate(request.queries)
        return await self._of.execute(UnclaimedDecide(request, self.pools))


class ReadPlacement(HttpPlacement):
    """A placement service over HTTP to which no allocation is written: each write succeeds at once."""

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        """Do nothing."""

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        """Do nothing."""


class HttpUnclaimedGateway(GatewayWrapper):
    """Decides by a placement service over HTTP without a claim."""

    def __init__(self, placement: ReadPlacement, pools: HostPools) -> None:
        super().__init__(HttpGateway(placement, pools))

    async def decide(self, request: SchedulingRequest) -> Decided:
        try:
            decided = await super().decide(request)
        finally:
            self.pools.table.release(*request.instances)
        return _unclaimed(decided)._replace(told=())


def _unclaimed(decided: Decided) -> Decided:
    """Return a decision without its tries, which are no attempts: nobody is going to end them."""
    return decided._replace(outcome=msgspec.structs.replace(decided.outcome, tries=()), claims=False)
