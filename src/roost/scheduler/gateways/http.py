"""Placement over HTTP: candidates, filter and weigh, claim, next candidate or next host on refusal.

Others may claim between the answer and the claim, so a claim can be refused here for what was there a
moment ago. And nothing holds the claims of one run together: when it comes to nothing, those made so far
are freed again.
"""

import asyncio
import time
from collections.abc import Collection
from itertools import islice

import structlog

from roost.model.allocation import AFFINITY
from roost.placement.client import HttpPlacement
from roost.placement.errors import BadRequest, GroupRefused, NotFound, PlacementError
from roost.scheduler.answered_offers import AnsweredOffers
from roost.scheduler.claim_result import (
    CLAIMED,
    ClaimResult,
    Verdict,
    is_consumer_conflict,
    named,
    one_line,
    result_of,
)
from roost.scheduler.errors import BadRequestSpec, PlacementRefused, PlacementUnavailable, SchedulerError
from roost.scheduler.gateways import Decided
from roost.scheduler.gateways.asking import asked
from roost.scheduler.gateways.claiming import Driven, claim_write
from roost.scheduler.gateways.foreign_groups import (
    COLLIDED,
    ForeignGroup,
    Members,
    Sleep,
    look_for_members,
    no_members,
)
from roost.scheduler.gateways.replacing_over_http import HttpReplacing
from roost.scheduler.group_members import progress_at_start
from roost.scheduler.nodes import NodeTable
from roost.scheduler.outcome import Claim, Outcome
from roost.scheduler.question import Question
from roost.scheduler.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection import Draw, Plugins, select
from roost.scheduler.sources.cached import CachedAnswers
from roost.scheduler.sources.filling import being_filled, known_nodes

NODES_ASKED = 10
"""Nodes whose providers are looked for after a refusal, to tell whether placement is being filled."""

_log = structlog.get_logger()

_AGAIN = 3
"""Times that a run begins anew because a member of its affinity group was placed meanwhile."""


class HttpGateway:
    """Decides by any service that speaks the Placement API, Roost's or OpenStack's own.

    ``members`` tells the members of a server group to a service that knows no groups: see `foreign_groups`.
    ``sleep`` waits for some seconds. With a limit on candidates, better hosts may be among those that
    placement leaves out.
    """

    def __init__(
        self, placement: HttpPlacement, members: Members = no_members, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._placement = placement
        self._members = members
        self._sleep = sleep
        self._cached = CachedAnswers()

    async def decide(self, question: Question, table: NodeTable, plugins: Plugins) -> Decided:
        """As `Gateway.decide` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        for _ in range(_AGAIN):
            try:
                return await self._decide(question, table, plugins, begins_anew=True)
            except _MembersChanged:
                continue
        return await self._decide(question, table, plugins, begins_anew=False)

    async def _decide(
        self, question: Question, table: NodeTable, plugins: Plugins, begins_anew: bool
    ) -> Decided:
        group = question.spec.group
        claims, foreign = await look_for_members(self._placement, group, self._members, self._sleep)
        offers = self._cached.of(question, table) or await self._asked(question, table)
        started = time.perf_counter()
        outcome = None
        try:
            progress = progress_at_start(question, table, claims=claims)
            driven = Driven(select(question, table, offers, plugins, Draw(question.seed), progress))
            claiming = _Claiming(self._placement, question, foreign, begins_anew)
            outcome = await claiming.carry_out(driven)
        finally:
            self._cached.decided(question, outcome)
        seconds = time.perf_counter() - started - claiming.waited
        if not outcome.destinations and not len(offers.index):
            outcome = being_filled(outcome, *await self._nodes_without_provider(table))
        return Decided(outcome, None, seconds)

    async def _nodes_without_provider(self, table: NodeTable) -> tuple[int, int]:
        """Of how many of the first nodes placement has no provider; and how many were asked for."""
        nodes = list(islice(known_nodes(table), NODES_ASKED))
        try:
            found = [await asked(self._placement.provider(node)) for node in nodes]
        except (SchedulerError, PlacementError) as error:
            _log.warning("whether placement knows the nodes cannot be read", error=one_line(error))
            return 0, 0
        return found.count(None), len(nodes)

    async def _asked(self, question: Question, table: NodeTable) -> AnsweredOffers:
        try:
            requests, summaries = await asked(self._placement.candidates(question.query, question.limit))
            if question.fallback is not None:
                more = await asked(self._placement.candidates(question.fallback, question.limit))
                requests, summaries = [*requests, *more[0]], {**summaries, **more[1]}
        except BadRequest as error:
            raise BadRequestSpec(f"placement cannot serve the request: {named(error)}") from error
        offers = AnsweredOffers(requests, summaries, table)
        self._cached.keep(question, table, offers)
        return offers

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        """As `Gateway.use_alternate` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        replacing = HttpReplacing(
            self._placement, request, table, plugins, members=self._members, sleep=self._sleep
        )
        return await replacing.replace()

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """As `Gateway.aggregates` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return {provider: await asked(self._aggregates(provider)) for provider in providers}

    async def _aggregates(self, provider: str) -> frozenset[str]:
        try:
            return await self._placement.aggregates(provider)
        except NotFound:
            return frozenset()


class _MembersChanged(Exception):
    """Another member of an affinity group was placed after the run had looked for members."""


class _Claiming:
    """The claims of one run, made one after the other. ``waited``: seconds spent waiting for placement."""

    def __init__(
        self,
        placement: HttpPlacement,
        question: Question,
        foreign: ForeignGroup | None = None,
        begins_anew: bool = False,
    ) -> None:
        self._placement = placement
        self._question = question
        self._foreign = foreign
        self._begins_anew = begins_anew
        self._made: list[str] = []
        self._in_doubt: Claim | None = None
        self.waited = 0.0

    async def carry_out(self, driven: Driven) -> Outcome:
        """Make the claims that are wanted; free all of them if the run comes to nothing."""
        try:
            while driven.claim is not None:
                driven.answer(await self._claim(driven.claim))
            if not driven.outcome.destinations:
                await self._free()
        except BaseException as error:
            # Shielded: a run that is cancelled frees its claims too.
            await asyncio.shield(self._give_up(error))
            raise
        return driven.outcome

    async def _claim(self, claim: Claim) -> ClaimResult:
        started = time.perf_counter()
        self._in_doubt = claim
        try:
            await asked(self._placement.write_allocations([claim_write(self._question, claim)]))
        except PlacementError as error:
            self._in_doubt = None
            result = result_of(error)
            if is_consumer_conflict(error):
                raise
            if self._begins_anew and isinstance(error, GroupRefused) and self._is_affine:
                # Only one host is left, perhaps the last of ten thousand that this run would try.
                raise _MembersChanged from error
            if result.verdict is Verdict.FATAL:
                raise PlacementRefused(
                    f"placement refused a claim of {claim.instance}: {named(error)}"
                ) from error
            # Others are faster on one of the host's providers. This run has other hosts: it need not wait.
            return ClaimResult(Verdict.REFUSED, result.reason)
        finally:
            self.waited += time.perf_counter() - started
        self._in_doubt = None
        self._made.append(claim.instance)
        if self._foreign is not None and not await self._stays(self._foreign, claim):
            if self._begins_anew and self._is_affine:
                raise _MembersChanged
            return ClaimResult(Verdict.REFUSED, COLLIDED)
        return CLAIMED

    @property
    def _is_affine(self) -> bool:
        group = self._question.spec.group
        return group is not None and group.policy == AFFINITY

    async def _stays(self, foreign: ForeignGroup, claim: Claim) -> bool:
        """Whether a claim in a server group may stay. If not, it is freed."""
        started = time.perf_counter()
        try:
            stays = await asked(foreign.stays(claim.instance, claim.candidate.root))
            if not stays:
                await asked(self._placement.delete_allocations([claim.instance]))
                self._made.remove(claim.instance)
        finally:
            self.waited += time.perf_counter() - started
        return stays

    async def _give_up(self, cause: BaseException) -> None:
        try:
            await self._free()
        except (SchedulerError, PlacementError) as error:
            held = ", ".join([*self._made, *([self._in_doubt.instance] if self._in_doubt else [])])
            text = f"what {held} may have claimed could not be freed: {error}"
            if not isinstance(cause, Exception):
                # The run is cancelled, and must end so: its task would go on with any other error.
                _log.warning("a cancelled run left claims behind", error=text)
                return
            raise PlacementUnavailable(f"{cause}; and {text}") from cause

    async def _free(self) -> None:
        started = time.perf_counter()
        if self._in_doubt is not None:
            # The answer was lost, and perhaps the question too. What else the consumer may hold stays.
            held = await asked(self._placement.allocations_of(self._in_doubt.instance))
            if held is not None and held.allocations == self._in_doubt.candidate.allocations:
                self._made.append(self._in_doubt.instance)
            self._in_doubt = None
        if self._made:
            await asked(self._placement.delete_allocations(self._made))
        self._made = []
        self.waited += time.perf_counter() - started
