"""Decisions on reported amounts, as before placement existed: nothing is written."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from roost.model.allocation import Allocations
from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.scheduler.candidates.reported_candidates import (
    CLASSES,
    ReportedCandidates,
    ReportedColumns,
    amounts_text,
    served_classes,
    traits_of,
)
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.gateways import Decided
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.pool.host_pool import OFFERED
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import CLAIMED
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest, Replacing
from roost.scheduler.selection.running_selection import RunningSelection
from roost.scheduler.selection.selection import RandomDraw, choose


class ReportedGateway:
    """Decides on the nodes of the cells' databases, by the amounts that they report.

    No allocation is written. A decision of this process counts until the node reports the instance, or until
    the node would be down if it did not report. Decisions of other processes show only in reports. So hosts
    may be overbooked, and the cell has the last word: a host that confirms a build claims on the row of its
    node (`roost.state.cell_database.node_claims`).
    """

    def __init__(self, pools: HostPools) -> None:
        self.pools = pools
        self._columns = ReportedColumns(pools.table)
        self._pending: dict[str, tuple[Allocations, float]] = {}

    async def decide(self, request: SchedulingRequest) -> Decided:
        """As `roost.scheduler.gateways.Gateway.decide`."""
        started = time.perf_counter()
        pool = self.pools.of_source(self._candidates(request, set(request.instances)), request)
        running = RunningSelection(choose(request, self.pools.table, pool, RandomDraw(request.seed)))
        while running.claim is not None:
            running.answer(CLAIMED)
        outcome = running.outcome
        for one in outcome.destinations:
            self._pending[one.instance] = (one.selected.allocations, request.now)
        if not outcome.destinations and outcome.cause == OFFERED:
            outcome = msgspec.structs.replace(outcome, refusal=_why_none(request.query))
        return Decided(outcome, None, time.perf_counter() - started, claims=False)

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        """Do nothing: reports do not tell which resource classes and traits exist."""

    async def give_back(self, request: SchedulingRequest) -> Mapping[str, int]:
        """Forget the decision on a request, so that it counts no longer."""
        for instance in request.instances:
            self._pending.pop(instance, None)
        return {}

    def forget_answers(self) -> None:
        """Do nothing: reports are all that is kept."""

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        """Return None: without placement there is no query to explain, and the refusal names the filter."""
        return None

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        """Return None: without placement there is nothing to claim on a copy."""
        return None

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        """Return None: without placement there is no fleet to plan on."""
        return None

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """As `roost.scheduler.gateways.Gateway.aggregates`; without placement no segment has any."""
        return {provider: frozenset() for provider in providers}

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        """As `roost.scheduler.gateways.Gateway.use_alternate`; there is no claim to swap."""
        replacing = Replacing(request, self.pools)
        for number, alternate in enumerate(request.alternates):
            index = replacing.alive(alternate)
            if isinstance(index, str):
                replacing.passed_over(alternate, index)
                continue
            candidates = self._candidates(request.scheduling, {request.instance}, index)
            found = replacing.candidates(alternate, self.pools.of_source(candidates, request.scheduling))
            if isinstance(found, str):
                replacing.passed_over(alternate, found)
                continue
            selection = replacing.selection(alternate, index, found[0], None)
            self._pending[request.instance] = (selection.allocations, request.scheduling.now)
            return replacing.claimed(number, selection)
        return replacing.nothing_left()

    def _candidates(
        self, request: SchedulingRequest, but: set[str], only: int | None = None
    ) -> ReportedCandidates:
        self._columns.catch_up()
        pending = list(self._still_pending(request, but))
        return ReportedCandidates(request.query, self.pools.table, self._columns, pending, only)

    def _still_pending(self, request: SchedulingRequest, but: set[str]) -> Iterator[Allocations]:
        """Yield decided allocations that no report includes yet, without those of the instances ``but``."""
        for instance, (allocations, at) in list(self._pending.items()):
            if self.pools.table.indexes_of_instance(instance) or at < request.oldest_heartbeat:
                del self._pending[instance]
            elif instance not in but:
                yield allocations


def _why_none(query: CandidateQuery) -> str:
    """Return why no node serves a query."""
    source = "hosts come from the cells' databases"
    if not served_classes(query):
        others = ", ".join(sorted(set(query.resources) - set(CLASSES)))
        return f"{source}, where nodes report {', '.join(CLASSES)}, and not {others}"
    if traits_of(query):
        return f"{source}, where nodes report no traits: {', '.join(sorted(traits_of(query)))} are required"
    return f"{source}, and no node reports room for {amounts_text(query.resources)}"
