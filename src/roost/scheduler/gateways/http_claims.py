"""Makes a run's claims over HTTP, and frees all of them if the run fails.

The claims of several instances are made in one write, all or none, or one after the other.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import chain

import structlog

from roost.model.allocation import AFFINITY
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import AssignmentChanged, GroupRefused, PlacementError
from roost.scheduler.errors import (
    ClaimsInDoubt,
    PlacementFailed,
    PlacementRefused,
    PlacementUnavailable,
    SchedulerError,
)
from roost.scheduler.gateways.claim_writes import give_back, settle, write_again
from roost.scheduler.gateways.foreign_groups import COLLIDED, ForeignGroup
from roost.scheduler.gateways.node_assignments import NoAssignments, NodeAssignments
from roost.scheduler.gateways.recording_placement import RecordingPlacement
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import (
    CLAIMED,
    ClaimResult,
    ClaimVerdict,
    is_consumer_conflict,
    named,
    result_of,
    translated,
)
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.running_selection import RunningSelection, claim_writes

_log = structlog.get_logger()


class MembersChanged(Exception):
    """Another member of an affinity group was placed after the run had looked for members.

    ``generations``: as those of `HttpClaims`, which has freed its claims by the time that this is seen.
    """

    def __init__(self, generations: Mapping[str, int]) -> None:
        super().__init__()
        self.generations = generations


class HttpClaims:
    """Makes the claims of one run.

    ``waited``: seconds spent waiting for placement. ``assigned``: the assignments on the nodes that the run
    chooses from. ``judged``: the version of the ledger that each claim was judged on, None if placement does
    not return it.

    ``generations``: the present ones of the consumers that held something before. Those whose claims the run
    replaces are never freed: an emptied consumer would begin at generation 1 again. Those that keep what they
    held, or have handed it over, lose the claim alone.

    ``begins_anew``: raise `MembersChanged` if only reading the group's members again can help.
    """

    def __init__(
        self,
        placement: RecordingPlacement,
        request: SchedulingRequest,
        foreign: ForeignGroup | None = None,
        begins_anew: bool = False,
    ) -> None:
        self._placement = placement
        self._request = request
        self._foreign = foreign
        self._begins_anew = begins_anew
        self._made: list[str] = []
        self.generations = {
            each: generation
            for each in request.instances
            if (generation := request.generation_of(each)) is not None
        }
        self._in_doubt: Sequence[Claim] = ()
        self.waited = 0.0
        self.judged: list[int | None] = []
        self.assigned: NodeAssignments = NoAssignments()

    @property
    def may_be_made_together(self) -> bool:
        """Return whether one write may make all claims; at a foreign service each group member needs a second
        look."""
        return self._foreign is None

    async def carry_out(self, running: RunningSelection) -> Outcome:
        """Make the claims that a selection wants; free all of them if the run places nothing."""
        try:
            while running.claim is not None:
                running.answer(await self._claim(running.claim))
            if not running.outcome.destinations:
                await self._free()
        except BaseException as error:
            # Shielded: a run that is cancelled frees its claims too.
            await asyncio.shield(self._give_up(error))
            raise
        return running.outcome

    async def make_together(self, claims: Sequence[Claim]) -> bool:
        """Make claims of several instances in one write; False if placement refuses it, and none is made."""
        try:
            return await self._write(claims) is None
        except BaseException as error:
            await asyncio.shield(self._give_up(error))
            raise

    async def _claim(self, claim: Claim) -> ClaimResult:
        self.assigned.chosen(claim)
        refusal = await self._write([claim])
        if refusal is not None:
            if refusal.verdict is ClaimVerdict.CHANGED:
                await self._wait(self.assigned.read_again(claim.candidate.root))
            return refusal
        if claim.instance not in self._request.generations:
            self._made.append(claim.instance)
        if self._foreign is not None and not await self._stays(self._foreign, claim):
            if self._begins_anew and self._is_affine:
                raise MembersChanged(self.generations)
            return ClaimResult(ClaimVerdict.REFUSED, COLLIDED)
        return CLAIMED

    async def _write(self, claims: Sequence[Claim]) -> ClaimResult | None:
        """Write claims, all or none. Returns why placement refuses them, None if they are made."""
        started = time.perf_counter()
        self._in_doubt = claims
        try:
            writes = list(chain.from_iterable(map(self._writes_of, claims)))
            await translated(write_again(self._placement, writes))
        except PlacementError as error:
            self._in_doubt = ()
            self.assigned.refused(claims)
            result = result_of(error)
            if isinstance(error, AssignmentChanged):
                return ClaimResult(ClaimVerdict.CHANGED, result.reason)
            if is_consumer_conflict(error):
                raise
            if self._begins_anew and isinstance(error, GroupRefused) and self._is_affine:
                # One host alone can take the instance, perhaps the last of ten thousand in this run's order.
                raise MembersChanged(self.generations) from error
            if result.verdict is ClaimVerdict.FATAL:
                of = ", ".join(claim.instance for claim in claims)
                raise PlacementRefused(f"placement refused a claim of {of}: {named(error)}") from error
            # Other writers won each time on one of the host's providers. This run has other hosts.
            return ClaimResult(ClaimVerdict.REFUSED, result.reason)
        finally:
            self.waited += time.perf_counter() - started
            self.judged += [self._placement.judged_on] * len(claims)
        self._in_doubt = ()
        for claim in claims:
            if claim.instance in self.generations:
                self.generations[claim.instance] += 1
        self.assigned.made(claims)
        return None

    def _writes_of(self, claim: Claim) -> Iterable[ConsumerWrite]:
        assignment = claim.candidate.assignment
        beside = None if assignment is None else self.assigned.beside(assignment.node)
        return claim_writes(self._request, claim, self.generations.get(claim.instance), beside)

    async def _wait(self, answer: Awaitable[None]) -> None:
        started = time.perf_counter()
        try:
            await answer
        finally:
            self.waited += time.perf_counter() - started

    @property
    def _is_affine(self) -> bool:
        group = self._request.spec.group
        return group is not None and group.policy == AFFINITY

    async def _stays(self, foreign: ForeignGroup, claim: Claim) -> bool:
        """Return whether a claim in a server group may stay. If not, free it."""
        started = time.perf_counter()
        try:
            stays = await translated(
                foreign.stays(claim.instance, claim.candidate.root, self._request.holders.get(claim.instance))
            )
            if not stays and claim.instance not in self._request.generations:
                await self._delete([claim.instance])
                self._made.remove(claim.instance)
        finally:
            self.waited += time.perf_counter() - started
        return stays

    async def _give_up(self, cause: BaseException) -> None:
        try:
            unseen = await self._free()
        except (SchedulerError, PlacementError) as error:
            held = ", ".join([*self._made, *(claim.instance for claim in self._in_doubt)])
            text = f"what {held} may have claimed could not be freed: {error}"
            if not isinstance(cause, Exception):
                # The run is cancelled, and must end so: its task would go on with any other error.
                _log.warning("a cancelled run left claims behind", error=text)
                return
            raise ClaimsInDoubt(f"{cause}; and {text}") from cause
        if unseen and isinstance(cause, PlacementUnavailable) and not isinstance(cause, PlacementFailed):
            raise ClaimsInDoubt(f"{cause}; and claims of {', '.join(unseen)} may still arrive") from cause

    async def _free(self) -> list[str]:
        """Free the claims of the run. Returns the consumers of claims not found there, which may still
        arrive."""
        started, unseen = time.perf_counter(), []
        for claim in self._in_doubt:
            # The answer was lost, and perhaps the write too. Other allocations of the consumer stay.
            if self._request.kept_of(claim.instance) is not None:
                await self._settle(claim)
                continue
            held = await translated(self._placement.allocations_of(claim.instance))
            own = claim.instance not in self._request.generations
            if own and held is None:
                unseen.append(claim.instance)
            if own and held is not None and held.allocations == claim.candidate.allocations:
                self._made.append(claim.instance)
        self._in_doubt = ()
        if self._made:
            await self._delete(self._made)
        self._made = []
        self.waited += time.perf_counter() - started
        return unseen

    async def _delete(self, instances: Sequence[str]) -> None:
        """Free claims of the run. Raises: as `translated`, and `PlacementError`."""
        new = [each for each in instances if self._request.kept_of(each) is None]
        if new:
            await translated(self._placement.delete_allocations(new))
        for each in instances:
            if self._request.kept_of(each) is not None:
                at = self.generations[each]
                self.generations[each] = await give_back(self._placement, self._request, each, at)

    async def _settle(self, claim: Claim) -> None:
        at = self.generations[claim.instance]
        self.generations[claim.instance] = await settle(self._placement, self._request, claim, at)
