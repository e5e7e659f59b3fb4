"""The decision is the transaction: choosing and claiming are one command of the ledger.

Why not ask and then claim: between the two, others claim the same host, and the more load there is the
more often. Here the choice is made on the exact state that the claim is committed on top of.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from roost.ledger import Ledger, State
from roost.model.record import Step
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.scheduler.gateways import Decided
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import FleetOffers
from roost.scheduler.outcome import Claim, Outcome
from roost.scheduler.question import Question
from roost.scheduler.selection import Plugins, Random, Selecting, select

INSTANCE = "INSTANCE"
"""Consumer type of what the scheduler claims."""


class LocalGateway:
    """Decides inside a ledger of this process. ``random`` breaks the choice among the best hosts."""

    def __init__(self, ledger: Ledger, random: Random) -> None:
        self._ledger = ledger
        self._random = random

    async def decide(self, question: Question, table: HostTable, plugins: Plugins) -> Decided:
        return await self._ledger.execute(Decide(question, table, plugins, self._random))


class Decide(NamedTuple):
    """The command: see `roost.scheduler.selection.select`."""

    question: Question
    table: HostTable
    plugins: Plugins
    random: Random

    def consumers(self) -> Iterable[str]:
        return self.question.instances

    def run(self, state: State) -> Decided:
        started = time.perf_counter()
        mark = len(state.changes)
        version = state.fleet.version
        steps: list[Step] = [Step("hosts known", len(self.table))]
        offers = FleetOffers(
            state.fleet, self.question.query, self.table, lambda name, left: steps.append(Step(name, left))
        )
        steps.append(Step("hosts with candidates", len(offers.index)))
        selecting = select(self.question, self.table, offers, self.plugins, self.random, steps)
        outcome = self._drive(selecting, state)
        if not outcome.destinations:
            state.take_back(mark)
        return Decided(outcome, version, time.perf_counter() - started)

    def _drive(self, selecting: Selecting, state: State) -> Outcome:
        answer: str | None = None
        try:
            claim = next(selecting)
            while True:
                answer = self._claim(state, claim)
                claim = selecting.send(answer)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _claim(self, state: State, claim: Claim) -> str | None:
        try:
            write_allocations(state, [claim_write(self.question, claim)])
        except ConcurrentUpdate:
            # The consumer holds something already: no other host would change that.
            raise
        except PlacementError as error:
            return str(error)
        return None


def claim_write(question: Question, claim: Claim) -> ConsumerWrite:
    """The allocation write that makes a claim: for a consumer that holds nothing yet."""
    return ConsumerWrite(
        consumer=claim.instance,
        allocations=claim.candidate.allocations,
        project_id=question.spec.project_id,
        user_id=question.spec.user_id,
        consumer_type=INSTANCE,
        generation=None,
    )
