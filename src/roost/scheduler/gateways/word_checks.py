"""Operators' words where no commit can depend on them: read before a run, and again after its claims.

A word that comes between the two reads and concerns a host of the run makes it give its claims back. So a
claim on a host that an operator has taken away lasts no longer than the second read takes.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import msgspec
import structlog

from roost.model.operator_word import Subject
from roost.model.spec import Selection
from roost.placement.errors import PlacementError
from roost.scheduler.errors import ClaimsInDoubt, NewerWord, SchedulerError, TakenAway
from roost.scheduler.gateways import Decided, Gateway, GatewayWrapper
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest

TAKEN_AWAY = "an operator has taken it away meanwhile"

_log = structlog.get_logger()


class UnconditionalGateway(Gateway, Protocol):
    """A gateway whose claims are not conditional on operators' words."""

    async def give_back(self, request: SchedulingRequest) -> Mapping[str, int]:
        """Take back the claims of a run, but those that replace others.

        ``request``: of the instances that are claimed, at the generations that the claims have reached.
        Returns the new generations of instances that hold again what they held before.

        Raises: `ConcurrentUpdate` if others have changed such an instance since.
        """

    def forget_answers(self) -> None:
        """Drop cached answers: they may be older than a word."""


class WordCheckedGateway(GatewayWrapper):
    """Reads operators' words before and after the runs of another gateway.

    Also raises `StorageError` if they cannot be read. Claims made until then are given back. With
    ``only_before``, words that come during a run count for the next one, as with nova-scheduler.
    """

    def __init__(
        self, gateway: UnconditionalGateway, words: OperatorWords, *, only_before: bool = False
    ) -> None:
        super().__init__(gateway)
        self._unconditional = gateway
        self._words = words
        self._only_before = only_before
        # The number of words when the cached answers of placement were dropped last.
        self._answered_after = 0

    async def decide(self, request: SchedulingRequest) -> Decided:
        """As `Gateway.decide`; also raises `NewerWord`, and `ClaimsInDoubt` if claims cannot be freed."""
        await self._look(request)
        decided = await self._gateway.decide(request)
        destinations = decided.outcome.destinations
        if destinations:
            claimed = msgspec.structs.replace(
                request.at(decided.generations), instances=tuple(each.instance for each in destinations)
            )
            try:
                stands = await self._stands(request, *(each.selected for each in destinations))
            except BaseException as error:
                # Shielded: a run that is cancelled frees its claims too.
                await asyncio.shield(self._give_back(claimed, error))
                raise
            if not stands:
                kept = await asyncio.shield(self._give_back(claimed))
                raise NewerWord(generations={**claimed.generations, **kept})
        return decided

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        """As `Gateway.use_alternate`; also raises `NewerWord`.

        An alternate that is taken away while its claim is made has failed as the host before it. Why the next
        one is not tried at once: it would be judged by the words before, and a word that concerns all hosts
        would use up one alternate after another.
        """
        await self._look(request.scheduling)
        found = await self._gateway.use_alternate(request)
        if (selected := found.selected) is not None and not await self._stands(request.scheduling, selected):
            tries = (*found.tries[:-1], msgspec.structs.replace(found.tries[-1], refusal=TAKEN_AWAY))
            raise NewerWord(taken_away=TakenAway(selected, found.alternates, tries))
        return found

    async def _look(self, request: SchedulingRequest) -> None:
        """Read the newest words. Raises `NewerWord` if there is one since the request was made."""
        await self._words.look()
        events = self._words.taken.events
        if events != self._answered_after:
            self._answered_after = events
            self._unconditional.forget_answers()
        if request.word is not None and request.word.events != events:
            raise NewerWord

    async def _give_back(
        self, request: SchedulingRequest, cause: BaseException | None = None
    ) -> Mapping[str, int]:
        """Free the claims of a run. ``cause``: the error that ends it. Raises `ClaimsInDoubt`."""
        try:
            return await self._unconditional.give_back(request)
        except (SchedulerError, PlacementError) as error:
            text = f"what {', '.join(request.instances)} may have claimed could not be freed: {error}"
            if cause is not None and not isinstance(cause, Exception):
                # The run is cancelled, and must end so: its task would go on with any other error.
                _log.warning("a cancelled run left claims behind", error=text)
                return {}
            raise ClaimsInDoubt(text) from (cause or error)

    async def _stands(self, request: SchedulingRequest, *selected: Selection) -> bool:
        """Return whether no word since the request was made concerns the hosts of some claims."""
        if self._only_before:
            return True
        await self._words.look()
        if request.word is None:
            return True
        nodes = (Subject(each.cell, each.host, each.node) for each in selected)
        return not self._words.concern(request.word, nodes)
