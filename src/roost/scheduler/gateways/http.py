"""Decides over HTTP: read candidates, filter and weigh, claim, go on with the next candidate after a refusal.

Others may claim between the answer and the claim, so a claim for an amount that was free a moment ago can be
refused.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.placement.errors import BadRequest, NotFound
from roost.scheduler.candidates.fetched_candidates import CachedAnswers
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.explain.explainer import Explainer, Job
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.gateways import Decided
from roost.scheduler.gateways.claim_writes import give_back
from roost.scheduler.gateways.foreign_groups import Members, Sleep, look_for_members, no_members
from roost.scheduler.gateways.http_claims import HttpClaims, MembersChanged
from roost.scheduler.gateways.http_explanation import MOST_WAITING, HttpExplanations
from roost.scheduler.gateways.http_replacement import HttpReplacing
from roost.scheduler.gateways.http_run import AskedCandidates, HttpRun
from roost.scheduler.gateways.missing_providers import being_filled, nodes_without_provider
from roost.scheduler.gateways.node_assignments import assignments_for
from roost.scheduler.gateways.recording_placement import PlacementOverHttp, RecordingPlacement
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import one_line, translated
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Basis
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest

_AGAIN = 3
"""Times that a run begins anew because a member of its affinity group was placed meanwhile."""


class HttpGateway:
    """Decides by any service that speaks the Placement API, Roost's or OpenStack's own.

    ``members`` returns the members of a server group for a service without groups: see `foreign_groups`.
    ``sleep`` waits for some seconds. With a limit on candidates, better hosts may be among those that
    placement leaves out; more are read only while the run finds fewer hosts than it needs.
    """

    def __init__(
        self,
        placement: PlacementOverHttp,
        pools: HostPools,
        members: Members = no_members,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.pools = pools
        self._placement = placement
        self._members = members
        self._sleep = sleep
        self._cached = CachedAnswers()
        explanations = HttpExplanations(placement, pools, members, sleep, self.aggregates)
        self._explainer = Explainer(explanations.find, MOST_WAITING)

    async def decide(self, request: SchedulingRequest) -> Decided:
        """As `Gateway.decide`; also raises `PlacementUnavailable` and `PlacementRefused`."""
        recording = RecordingPlacement(self._placement, request, self.pools.table)
        try:
            for _ in range(_AGAIN):
                try:
                    return await self._decide(request, recording, begins_anew=True)
                except MembersChanged as error:
                    request = request.at(error.generations)
            return await self._decide(request, recording, begins_anew=False)
        except SchedulerError as error:
            error.basis = Basis(node_version=recording.began_at, told=recording.reads)
            raise

    async def _decide(
        self,
        request: SchedulingRequest,
        recording: RecordingPlacement,
        begins_anew: bool,
    ) -> Decided:
        group, table = request.spec.group, self.pools.table
        members, foreign = await look_for_members(recording, group, self._members, self._sleep)
        candidates = AskedCandidates(recording, request, table, self._cached)
        claims = HttpClaims(recording, request, foreign, begins_anew)
        assigned = partial(assignments_for, recording, request, self.pools)
        run = HttpRun(request, self.pools, candidates, members, claims, assigned)
        outcome = None
        try:
            outcome = await run.run()
        finally:
            self._cached.decided(request, outcome)
        if not outcome.destinations and not candidates.known:
            outcome = being_filled(outcome, *await nodes_without_provider(recording, table))
        return Decided(
            outcome,
            None,
            run.seconds,
            node_version=recording.began_at,
            told=recording.reads,
            generations=claims.generations,
        )

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        """As `Gateway.check`; also raises `PlacementUnavailable` and `PlacementRefused`."""
        refused: BadRequest | None = None
        for query in queries:
            try:
                await translated(self._placement.candidates(query, 1))
                return
            except BadRequest as error:
                refused = refused or error
        if refused is not None:
            raise BadRequestSpec(f"placement cannot serve the request: {one_line(refused)}") from refused

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        """As `Gateway.use_alternate`; also raises `PlacementUnavailable` and `PlacementRefused`."""
        replacing = HttpReplacing(
            self._placement, request, self.pools, members=self._members, sleep=self._sleep
        )
        return await replacing.replace()

    async def give_back(self, request: SchedulingRequest) -> Mapping[str, int]:
        """As `UnconditionalGateway.give_back`; also raises `PlacementUnavailable` and `PlacementRefused`.

        A consumer that existed before is never freed: it would begin at generation 1 again.
        """
        kept = [(each, held.generation) for each in request.instances if (held := request.kept_of(each))]
        new = [each for each in request.instances if request.generation_of(each) is None]
        if new:
            await translated(self._placement.delete_allocations(new))
        return {each: await give_back(self._placement, request, each, at) for each, at in kept}

    def forget_answers(self) -> None:
        """Drop the answers of placement that are cached for further runs."""
        self._cached = CachedAnswers()

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        """As `Gateway.explain`; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return await self._explainer.explain(Job(request, placed))

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        """Return None: there is no copy of a remote placement's state to place instances on."""
        return None

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        """Return None: there is no copy of a remote placement's state to plan on."""
        return None

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """As `Gateway.aggregates`; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return {provider: await translated(self._aggregates(provider)) for provider in providers}

    async def _aggregates(self, provider: str) -> frozenset[str]:
        try:
            return await self._placement.aggregates(provider)
        except NotFound:
            return frozenset()
