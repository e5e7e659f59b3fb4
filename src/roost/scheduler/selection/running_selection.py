"""A selection in progress, and the write of a claim, for all gateways."""

import msgspec
from msgspec import UNSET

from roost.ledger import Held, State
from roost.model.allocation import SOFT_AFFINITY, GroupClaim, sum_of
from roost.model.change import AllocationsChanged
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import CLAIMED, ClaimResult, ClaimVerdict, result_of
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.selection import Selecting

INSTANCE = "INSTANCE"
"""Consumer type of what the scheduler claims."""

MIGRATION = "MIGRATION"
"""Consumer type of a migration, which holds the source for an instance that moves. Source: Nova."""


def claim_writes(
    request: SchedulingRequest, claim: Claim, generation: int | None = None, beside: str | None = None
) -> list[ConsumerWrite]:
    """Return the allocation writes that make a claim together; the arguments are those of `claim_write`.

    A migration that takes over what the instance holds is written as well. It becomes a member of the
    instance's server group on a condition that refuses nothing, because it claims nothing new: an instance
    may leave a host where the group's policy is violated already.
    """
    write = claim_write(request, claim, generation, beside)
    handed = request.handed.get(claim.instance)
    if handed is None:
        return [write]
    group = request.spec.group
    migration = ConsumerWrite(
        consumer=handed.consumer,
        allocations=handed.allocations,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        consumer_type=MIGRATION,
        generation=None,
        group=None if group is None else GroupClaim(group.uuid, SOFT_AFFINITY, held_by=claim.instance),
        assignment=handed.assignment or UNSET,
    )
    return [migration, write]


def claim_write(
    request: SchedulingRequest,
    claim: Claim,
    generation: int | None = None,
    beside: str | None = None,
) -> ConsumerWrite:
    """Return the allocation write of the instance of a claim; `claim_writes` has all of the claim.

    The write of an instance that keeps what it holds has that as well.

    ``generation``: of the consumer at present, by default as in the request; None: it holds nothing yet. With
    a server group the write has the group's condition, whether or not a filter for it is enabled. ``beside``:
    the digest of the assignments on the node that the claim was fitted beside.
    """
    kept = request.beside.get(claim.instance)
    new, group = claim.candidate.allocations, request.spec.group
    return ConsumerWrite(
        consumer=claim.instance,
        allocations=new if kept is None else sum_of(kept.allocations, new),
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        consumer_type=INSTANCE,
        generation=request.generation_of(claim.instance) if generation is None else generation,
        group=None if group is None else group.claim(request.holders.get(claim.instance)),
        assignment=claim.candidate.assignment,
        beside=beside,
        mappings=claim.candidate.mappings,
    )


def set_aside(state: State, request: SchedulingRequest) -> None:
    """Remove the allocations that a request replaces from a ledger's state, and check those that it keeps.

    The removed ones do not count against the instances: neither as room nor as membership in their server
    group. The caller takes this back before it writes.

    Raises: `ConcurrentUpdate` if an instance holds nothing, or not at the generation in the request, or if a
    migration that is to take over exists already.
    """
    for instance, generation in request.generations.items():
        held = _held(state, instance, generation)
        state.apply(AllocationsChanged(instance, held.consumer, None, held.allocations, {}))
    for instance, kept in (*request.beside.items(), *request.handed.items()):
        held = _held(state, instance, kept.generation)
        if held.allocations != kept.allocations:
            raise ConcurrentUpdate(
                f"consumer generation conflict - consumer {instance} holds other allocations at generation "
                f"{kept.generation} than were read: its placement was restored since"
            )
    for handed in request.handed.values():
        if (migration := state.held(handed.consumer)) is not None:
            raise ConcurrentUpdate(
                f"consumer generation conflict - expected {migration.consumer.generation} but got null for "
                f"consumer {handed.consumer}"
            )


def _held(state: State, instance: str, generation: int) -> Held:
    held = state.held(instance)
    if held is None or held.consumer.generation != generation:
        there = "null" if held is None else held.consumer.generation
        raise ConcurrentUpdate(
            f"consumer generation conflict - expected {there} but got {generation} for consumer {instance}"
        )
    return held


def claimed(state: State, request: SchedulingRequest, claim: Claim) -> ClaimResult:
    """Make a claim in a ledger's state. Allocations that it replaces are set aside already.

    Raises: `PlacementError` that is no refusal of this claim.
    """
    try:
        writes = claim_writes(request, claim)
        if claim.instance in request.generations:
            writes = [msgspec.structs.replace(each, generation=None) for each in writes]
        write_allocations(state, writes)
    except PlacementError as error:
        result = result_of(error)
        if result.verdict is not ClaimVerdict.REFUSED:
            raise
        return result
    return CLAIMED


class RunningSelection:
    """A selection in progress: the claim that it wants made, None once ``outcome`` is there."""

    claim: Claim | None
    outcome: Outcome

    def __init__(self, selecting: Selecting) -> None:
        self._selecting = selecting
        self._resume(None)

    def answer(self, result: ClaimResult) -> None:
        """Send the result of the claim to the selection."""
        self._resume(result)

    def _resume(self, result: ClaimResult | None) -> None:
        try:
            # A generator that has not begun takes nothing but None.
            self.claim = self._selecting.send(result)  # type: ignore[arg-type]
        except StopIteration as end:
            self.claim, self.outcome = None, end.value
