"""Placement over HTTP: candidates, filter and weigh, claim, next candidate or next host on refusal.

Others may claim between the answer and the claim, so a claim can be refused here for what was there a
moment ago. And nothing holds the claims of one run together: when it comes to nothing, those made so far
are freed again.
"""

import asyncio
import time
from itertools import islice

import structlog

from roost.placement.client import HttpPlacement
from roost.placement.errors import BadRequest, PlacementError
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
from roost.scheduler.gateways.replacing_over_http import HttpReplacing
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


class HttpGateway:
    """Decides by any service that speaks the Placement API, Roost's or OpenStack's own.

    ``limit``: so many candidates are asked for at most.
    Better hosts may then be among those that placement leaves out, so there is none by default.
    """

    def __init__(self, placement: HttpPlacement, limit: int | None = None) -> None:
        self._placement = placement
        self._limit = limit
        self._cached = CachedAnswers()

    async def decide(self, question: Question, table: NodeTable, plugins: Plugins) -> Decided:
        """As `Gateway.decide` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        offers = self._cached.of(question, table) or await self._asked(question, table)
        started = time.perf_counter()
        outcome = None
        try:
            driven = Driven(select(question, table, offers, plugins, Draw(question.seed)))
            claiming = _Claiming(self._placement, question)
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
            requests, summaries = await asked(self._placement.candidates(question.query, self._limit))
        except BadRequest as error:
            raise BadRequestSpec(f"placement cannot serve the request: {named(error)}") from error
        offers = AnsweredOffers(requests, summaries, table)
        self._cached.keep(question, table, offers)
        return offers

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        """As `Gateway.use_alternate` says; also raises `PlacementUnavailable` and `PlacementRefused`."""
        return await HttpReplacing(self._placement, request, table, plugins).replace()


class _Claiming:
    """The claims of one run, made one after the other. ``waited``: seconds spent waiting for placement."""

    def __init__(self, placement: HttpPlacement, question: Question) -> None:
        self._placement = placement
        self._question = question
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
        return CLAIMED

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
