"""The swap of a claim over HTTP: at the consumer's generation, and again after a conflict."""

import msgspec

from roost.ledger import Held
from roost.model.assignment import Assignment
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import Selection
from roost.placement.errors import AssignmentChanged, BadRequest, ConcurrentUpdate, PlacementError
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.errors import BadRequestSpec, NothingClaimed, PlacementRefused, PlacementUnavailable
from roost.scheduler.gateways.foreign_groups import COLLIDED, ForeignGroup, Members, Sleep, look_for_members
from roost.scheduler.gateways.node_assignments import NodeAssignments, assignments_for
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.request.scheduling_request import GroupPlacement, progress_at_start
from roost.scheduler.selection.claim_result import (
    ClaimVerdict,
    is_consumer_conflict,
    one_line,
    result_of,
    translated,
)
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Claim
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest, Replacing
from roost.scheduler.selection.running_selection import claim_write

ATTEMPTS = 4
"""Attempts of a swap that meets other writers of the consumer, or of the providers. Source: Nova."""


class _NodeChanged(Exception):
    """Others were assigned something of the node since its assignments were read."""


class _ConsumerChanged(Exception):
    """Another writer has changed the consumer since it was read."""


class HttpReplacing:
    """The use of an alternate at a placement service over HTTP.

    Between two requests other writers may change anything. The result of a check may be out of date when the
    claim is written, but placement judges room and the consumer's generation in the write. The condition of a
    server group is judged in the write too, or by a second look: see `foreign_groups`.
    """

    def __init__(
        self,
        placement: RunPlacement,
        request: ReplacementRequest,
        pools: HostPools,
        *,
        members: Members,
        sleep: Sleep,
    ) -> None:
        self._placement = placement
        self._request = request
        self._pools = pools
        self._members = members
        self._sleep = sleep

    async def replace(self) -> Replacement:
        """Use an alternate.

        Raises:
            NothingClaimed: The instance holds nothing.
            StaleClaim: Others have moved the claim.
            BadRequestSpec: Placement does not know a resource class or trait of the query.
            PlacementUnavailable: Placement did not answer, or other writers came first each time. The swap
                may be made nevertheless: the next call finds it.
            PlacementRefused: Placement refuses the write, whatever the host.
        """
        for _ in range(ATTEMPTS):
            try:
                return await self._replace(await self._held())
            except _ConsumerChanged:
                continue
        raise PlacementUnavailable(
            f"other writers changed {self._request.instance} {ATTEMPTS} times meanwhile"
        )

    async def _held(self) -> Held:
        held = await translated(self._placement.allocations_of(self._request.instance))
        if held is None:
            raise NothingClaimed(self._request.instance)
        return held

    async def _replace(self, held: Held) -> Replacement:
        replacing = Replacing(self._request, self._pools)
        alternates, first = self._request.alternates, 0
        before = await self._moved_before(replacing, held)
        if before is not None and before.selected is not None:
            # The earlier call may have ended before its second look.
            if await self._stays(before.selected):
                return before
            first = len(alternates) - len(before.alternates)
            replacing.passed_over(before.selected, COLLIDED)
        for number, alternate in enumerate(alternates[first:], first):
            claimed = await self._claim(replacing, held, alternate)
            if isinstance(claimed, Selection):
                if await self._stays(claimed):
                    return replacing.claimed(number, claimed)
                claimed, held = COLLIDED, await self._held()
            replacing.passed_over(alternate, claimed)
        return replacing.nothing_left()

    async def _stays(self, selected: Selection) -> bool:
        """Return whether the claim on an alternate may stay by the instance's server group."""
        scheduling, instance = self._request.scheduling, self._request.instance
        group = scheduling.spec.group
        if group is None or await translated(self._placement.knows_groups()):
            return True
        foreign = ForeignGroup(self._placement, group, self._members, self._sleep)
        return await translated(foreign.stays(instance, selected.node, scheduling.holders.get(instance)))

    async def _moved_before(self, replacing: Replacing, held: Held) -> Replacement | None:
        """Return the result of an earlier call; the trees are read only if the consumer has changed."""
        if replacing.is_failed(held):
            return None
        trees: dict[str, set[str]] = {}
        for alternate in self._request.alternates:
            found = await translated(self._placement.tree(alternate.node))
            trees[alternate.node] = {provider.uuid for provider in found}
        return replacing.moved_before(
            held, await self._assignment(), lambda provider, root: provider in trees[root]
        )

    async def _assignment(self) -> Assignment | None:
        """Return the instance's assignment on one of the alternates, as far as placement returns it."""
        alternates = self._request.alternates
        nodes = [each.node for each in alternates if each.assignment is not None]
        read = await translated(self._placement.assignments(nodes)) if nodes else None
        found = (assigned.get(self._request.instance) for assigned in (read or {}).values())
        return next((each for each in found if each is not None), None)

    async def _claim(self, replacing: Replacing, held: Held, alternate: Selection) -> Selection | str:
        """Claim an alternate; returns the selection, or why it cannot be claimed."""
        for _ in range(ATTEMPTS):
            try:
                return await self._claim_once(replacing, held, alternate)
            except _NodeChanged:
                continue
        return f"others were assigned parts of the node {ATTEMPTS} times meanwhile"

    async def _claim_once(self, replacing: Replacing, held: Held, alternate: Selection) -> Selection | str:
        index = replacing.alive(alternate)
        if isinstance(index, str):
            return index
        queries = [*self._request.scheduling.queries]
        while queries:
            query = queries.pop(0)
            # Mostly the tree alone has everything; a sharing provider is outside of it.
            narrow = msgspec.structs.replace(
                query, groups=tuple(_in(alternate.node, each) for each in query.groups)
            )
            try:
                candidates = await self._fetched(narrow, index)
                if not len(candidates.index):
                    candidates = await self._fetched(query, index)
            except BadRequestSpec:
                # A query for a class that no host has; the next one may serve.
                if not queries:
                    raise
                continue
            if len(candidates.index):
                break
        progress = await self._progress()
        scheduling, instance = self._request.scheduling, self._request.instance
        assigned = await assignments_for(
            self._placement, scheduling, self._pools, candidates.index, leaving=instance
        )
        candidates = candidates.beside(assigned.on)
        found = replacing.candidates(alternate, self._pools.of_source(candidates, scheduling, progress))
        if isinstance(found, str):
            return found
        reason = replacing.bound
        for candidate in replacing.to_claim(found):
            claim = Claim(instance, candidate)
            assigned.chosen(claim)
            reason = await self._write(claim, held.consumer.generation, assigned)
            if reason is None:
                return replacing.selection(alternate, index, candidate, held.consumer.generation + 1)
            assigned.refused([claim])
        return reason or ""

    async def _progress(self) -> GroupPlacement:
        """Return the members of the instance's server group, as far as placement or the spec names them."""
        scheduling = self._request.scheduling
        group = scheduling.spec.group
        claims, _ = await look_for_members(self._placement, group, self._members, self._sleep)
        return progress_at_start(scheduling, self._pools.table, claims=claims)

    async def _fetched(self, query: CandidateQuery, only: int) -> FetchedCandidates:
        try:
            requests, summaries = await translated(self._placement.candidates(query))
        except BadRequest as error:
            raise BadRequestSpec(f"placement cannot serve the request: {one_line(error)}") from error
        return FetchedCandidates(requests, summaries, self._pools.table, only=only)

    async def _write(self, claim: Claim, generation: int, assigned: NodeAssignments) -> str | None:
        """Swap the claim; returns why the host refuses it, None if it is made."""
        beside = assigned.beside(claim.candidate.root) if claim.candidate.assignment is not None else None
        write = claim_write(self._request.scheduling, claim, generation, beside)
        for left in reversed(range(ATTEMPTS)):
            try:
                await translated(self._placement.write_allocations([write]))
            except ConcurrentUpdate as error:
                if is_consumer_conflict(error):
                    raise _ConsumerChanged from error
                if not left:
                    raise PlacementUnavailable(one_line(error)) from error
            except AssignmentChanged as error:
                raise _NodeChanged from error
            except PlacementError as error:
                result = result_of(error)
                if result.verdict is ClaimVerdict.FATAL:
                    raise PlacementRefused(result.reason or "") from error
                return result.reason
            else:
                return None
        return None


def _in(root: str, group: RequestGroup) -> RequestGroup:
    return msgspec.structs.replace(group, in_tree=root)
