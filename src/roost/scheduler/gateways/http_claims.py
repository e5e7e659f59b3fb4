"""The claims of one run over HTTP, which nothing but this module holds together.

Several claims are made in one write, all or none. One after the other, those made so far are freed again when
the run comes to nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence

import structlog

from roost.model.allocation import AFFINITY
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import AssignmentChanged, ConcurrentUpdate, GroupRefused, PlacementError
from roost.scheduler.errors import (
    ClaimsInDoubt,
    PlacementFailed,
    PlacementRefused,
    PlacementUnavailable,
    SchedulerError,
)
from roost.scheduler.gateways.error_translation import asked
from roost.scheduler.gateways.foreign_groups import COLLIDED, ForeignGroup
from roost.scheduler.gateways.node_assignments import NoAssignments, NodeAssignments
from roost.scheduler.gateways.recording_placement import RecordingPlacement
from roost.scheduler.gateways.running_selection import RunningSelection, claim_write
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import (
    CLAIMED,
    ClaimResult,
    Verdict,
    is_consumer_conflict,
    named,
    result_of,
)
from roost.scheduler.selection.outcome import Claim, Outcome

_log = structlog.get_logger()


ATTEMPTS = 4
"""Attempts of a write that meets other writers of the same providers. Source: Nova."""


class MembersChanged(Exception):
    """Another member of an affinity group was placed after the run had looked for members."""


class HttpClaims:
    """Makes the claims of one run. ``waited``: seconds spent waiting for placement. ``assigned``: the
    assignments on the nodes that the run chooses from. ``judged``: the version of the ledger that each claim
    was judged on, None if placement does not tell.

    ``generations``: the present ones of the consumers whose claims the run replaces. These are never freed: a
    consumer that was emptied would begin at generation 1 again.

    ``begins_anew``: `MembersChanged` is raised if only another look at the group's members can help.
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
        self.generations = dict(request.generations)
        self._in_doubt: Sequence[Claim] = ()
        self.waited = 0.0
        self.judged: list[int | None] = []
        self.assigned: NodeAssignments = NoAssignments()

    @property
    def may_be_made_together(self) -> bool:
        """Whether one write judges all; members of a group at a foreign service need a look after each."""
        return self._foreign is None

    async def carry_out(self, driven: RunningSelection) -> Outcome:
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

    async def make_together(self, claims: Sequence[Claim]) -> bool:
        """Make claims of several instances in one write; False, and none is made, if placement refuses it."""
        try:
            return await self._write(claims) is None
        except BaseException as error:
            await asyncio.shield(self._give_up(error))
            raise

    async def _claim(self, claim: Claim) -> ClaimResult:
        self.assigned.chosen(claim)
        refusal = await self._write([claim])
        if refusal is not None:
            if refusal.verdict is Verdict.CHANGED:
                await self._wait(self.assigned.read_again(claim.candidate.root))
            return refusal
        if claim.instance not in self.generations:
            self._made.append(claim.instance)
        if self._foreign is not None and not await self._stays(self._foreign, claim):
            if self._begins_anew and self._is_affine:
                raise MembersChanged
            return ClaimResult(Verdict.REFUSED, COLLIDED)
        return CLAIMED

    async def _write(self, claims: Sequence[Claim]) -> ClaimResult | None:
        """Write claims, all or none. Returns why placement refuses them, None if they are made."""
        started = time.perf_counter()
        self._in_doubt = claims
        try:
            writes = [self._write_of(claim) for claim in claims]
            await asked(self._written(writes))
        except PlacementError as error:
            self._in_doubt = ()
            self.assigned.refused(claims)
            result = result_of(error)
            if isinstance(error, AssignmentChanged):
                return ClaimResult(Verdict.CHANGED, result.reason)
            if is_consumer_conflict(error):
                raise
            if self._begins_anew and isinstance(error, GroupRefused) and self._is_affine:
                # Only one host is left, perhaps the last of ten thousand that this run would try.
                raise MembersChanged from error
            if result.verdict is Verdict.FATAL:
                of = ", ".join(claim.instance for claim in claims)
                raise PlacementRefused(f"placement refused a claim of {of}: {named(error)}") from error
            # Others are faster on one of the host's providers, each time. This run has other hosts.
            return ClaimResult(Verdict.REFUSED, result.reason)
        finally:
            self.waited += time.perf_counter() - started
            self.judged += [self._placement.judged_on] * len(claims)
        self._in_doubt = ()
        for claim in claims:
            if claim.instance in self.generations:
                self.generations[claim.instance] += 1
        self.assigned.made(claims)
        return None

    async def _written(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write; again if another writer changed one of the providers meanwhile, as its conflict says.

        Raises: `PlacementError`, of the last attempt.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._placement.write_allocations(writes)
            except ConcurrentUpdate as error:
                if is_consumer_conflict(error):
                    raise
        return await self._placement.write_allocations(writes)

    def _write_of(self, claim: Claim) -> ConsumerWrite:
        assignment = claim.candidate.assignment
        beside = None if assignment is None else self.assigned.beside(assignment.node)
        return claim_write(self._request, claim, self.generations.get(claim.instance), beside)

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
        """Whether a claim in a server group may stay. If not, it is freed."""
        started = time.perf_counter()
        try:
            stays = await asked(foreign.stays(claim.instance, claim.candidate.root))
            if not stays and claim.instance not in self.generations:
                await asked(self._placement.delete_allocations([claim.instance]))
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
        """Free what the run has claimed. Returns the consumers of claims that nothing is seen of, though
        placement may still get them."""
        started, unseen = time.perf_counter(), []
        for claim in self._in_doubt:
            # The answer was lost, and perhaps the question too. What else the consumer may hold stays.
            held = await asked(self._placement.allocations_of(claim.instance))
            own = claim.instance not in self.generations
            if own and held is None:
                unseen.append(claim.instance)
            if own and held is not None and held.allocations == claim.candidate.allocations:
                self._made.append(claim.instance)
        self._in_doubt = ()
        if self._made:
            await asked(self._placement.delete_allocations(self._made))
        self._made = []
        self.waited += time.perf_counter() - started
        return unseen
