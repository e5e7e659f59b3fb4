"""Placement over HTTP: candidates, filter and weigh, claim, next candidate or next host on refusal.

Others may claim between the answer and the claim, so a claim can be refused here for what was there a
moment ago.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

from roost.model.reasons import Reasons
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.placement.errors import BadRequest, NotFound
from roost.scheduler.candidates.cached_answers import CachedAnswers
from roost.scheduler.candidates.unfilled_placement import being_filled
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.explain.supposition import Supposition
from roost.scheduler.gateways import Decided
from roost.scheduler.gateways.asked_candidates import AskedCandidates
from roost.scheduler.gateways.error_translation import asked
from roost.scheduler.gateways.foreign_groups import Members, Sleep, look_for_members, no_members
from roost.scheduler.gateways.http_claims import HttpClaims, MembersChanged
from roost.scheduler.gateways.http_explanation import Explanations
from roost.scheduler.gateways.http_replacement import HttpReplacing
from roost.scheduler.gateways.http_run import HttpRun
from roost.scheduler.gateways.missing_providers import nodes_without_provider
from roost.scheduler.gateways.node_assignments import assignments_for
from roost.scheduler.gateways.recording_placement import PlacementOverHttp, RecordingPlacement
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import one_line
from roost.scheduler.selection.outcome import Basis
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection.selection import Plugins

_AGAIN = 3
"""Times that a run begins anew because a member of its affinity group was placed meanwhile."""


class HttpGateway:
    """Decides by any service that speaks the Placement API, Roost's or OpenStack's own.

    ``members`` tells the members of a server group to a service that knows no groups: see `foreign_groups`.
    ``sleep`` waits for some seconds. With a limit on candidates, better hosts may be among those that
    placement leaves out; more are read only where fewer hosts are found than are asked for.
    """

    def __init__(
        self, placement: PlacementOverHttp, members: Members = no_members, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._placement = placement
        self._members = members
        self._sleep = sleep
        self._cached = CachedAnswers()
        self._explanations = Explanations(placement, members, sleep)

    async def decide(self, request: SchedulingRequest, table: NodeTable, plugins: Plugins) -> Decided:
        """As `Gateway.decide` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        hearing = RecordingPlacement(self._placement, request, table)
        try:
            for _ in range(_AGAIN):
                try:
                    return await self._decide(request, table, plugins, hearing, begins_anew=True)
                except MembersChanged:
                    continue
            return await self._decide(request, table, plugins, hearing, begins_anew=False)
        except SchedulerError as error:
            error.basis = Basis(node_version=hearing.began_at, told=hearing.told)
            raise

    async def _decide(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        plugins: Plugins,
        hearing: RecordingPlacement,
        begins_anew: bool,
    ) -> Decided:
        group = request.spec.group
        members, foreign = await look_for_members(hearing, group, self._members, self._sleep)
        candidates = AskedCandidates(hearing, request, table, self._cached)
        claims = HttpClaims(hearing, request, foreign, begins_anew)
        assigned = partial(assignments_for, hearing, request, table, plugins)
        run = HttpRun(request, table, plugins, candidates, members, claims, assigned)
        outcome = None
        try:
            outcome = await run.run()
        finally:
            self._cached.decided(request, outcome)
        if not outcome.destinations and not candidates.known:
            outcome = being_filled(outcome, *await nodes_without_provider(hearing, table))
        return Decided(
            outcome,
            None,
            run.seconds,
            node_version=hearing.began_at,
            told=hearing.told,
            generations=claims.generations,
        )

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        """As `Gateway.check` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        refused: BadRequest | None = None
        for query in queries:
            try:
                await asked(self._placement.candidates(query, 1))
                return
            except BadRequest as error:
                refused = refused or error
        if refused is not None:
            raise BadRequestSpec(f"placement cannot serve the request: {one_line(refused)}") from refused

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        """As `Gateway.use_alternate` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        replacing = HttpReplacing(
            self._placement, request, table, plugins, members=self._members, sleep=self._sleep
        )
        return await replacing.replace()

    async def give_back(self, request: SchedulingRequest) -> None:
        """Free what a run has claimed for the new instances of its question.

        Raises `PlacementUnavailable` and `PlacementRefused`. A consumer that was there before is never freed:
        it would begin at generation 1 again.
        """
        new = [each for each in request.instances if each not in request.generations]
        await asked(self._placement.delete_allocations(new))

    def forget_answers(self) -> None:
        """Forget the answers of placement that are kept for further runs."""
        self._cached = CachedAnswers()

    async def explain(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        plugins: Plugins,
        placed: int,
        *,
        newest: bool = False,
    ) -> Reasons | None:
        """As `Gateway.explain` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return await self._explanations.explain(request, table, plugins, placed)

    async def what_if(self, supposed: Supposition, table: NodeTable, plugins: Plugins) -> WhatIf | None:
        """Nothing: the state of a placement service over HTTP is not here to place instances on."""
        return None

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """As `Gateway.aggregates` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return {provider: await asked(self._aggregates(provider)) for provider in providers}

    async def _aggregates(self, provider: str) -> frozenset[str]:
        try:
            return await self._placement.aggregates(provider)
        except NotFound:
            return frozenset()
