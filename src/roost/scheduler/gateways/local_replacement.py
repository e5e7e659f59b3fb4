"""The swap of a claim as one command of the ledger: check and write see the same state."""

from collections.abc import Iterable

from roost.fleet import Fleet
from roost.fleet.errors import TooMuchWork
from roost.ledger import Command, Held, State
from roost.model.allocation import Candidate
from roost.model.change import AllocationsChanged
from roost.model.spec import Selection
from roost.placement.commands.allocations import write_allocations
from roost.placement.errors import PlacementError
from roost.scheduler.errors import NothingClaimed
from roost.scheduler.gateways.query_checks import check_queries
from roost.scheduler.selection.bounds import TOO_MUCH_WORK, decision_work
from roost.scheduler.selection.claim_result import ClaimVerdict, one_line, result_of
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim
from roost.scheduler.selection.replacement import NO_CANDIDATE, Replacement, ReplacementRequest, Replacing
from roost.scheduler.selection.running_selection import claim_write


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
