"""A selection in progress, and the write of a claim, for all gateways."""

import msgspec

from roost.ledger import Held, State
from roost.model.allocation import sum_of
from roost.model.change import AllocationsChanged
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import CLAIMED, ClaimResult, ClaimVerdict, result_of
from roost.scheduler.selection.outcome import Claim, Outcome
from roost.scheduler.selection.selection import Selecting

INSTANCE = "INSTANCE"
"""Consumer type of what the scheduler claims."""


def claim_write(
    request: SchedulingRequest,
    claim: Claim,
    generation: int | None = None,
    beside: str | None = None,
) -> ConsumerWrite:
    """Return the allocation write that makes a claim.

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
        group=None if group is None else group.claim(request.held_by.get(claim.instance)),
        assignment=claim.candidate.assignment,
        beside=beside,
        mappings=claim.candidate.mappings,
    )


def set_aside(state: State, request: SchedulingRequest) -> None:
    """Remove the allocations that a request replaces from a ledger's state, and check those that it keeps.

    The removed ones do not count against the instances: neither as room nor as membership in their server
    group. The caller takes this back before it writes.

    Raises: `ConcurrentUpdate` if an instance holds nothing, or not at the generation in the request.
    """
    for instance, generation in request.generations.items():
        held = _held(state, instance, generation)
        state.apply(AllocationsChanged(instance, held.consumer, None, held.allocations, {}))
    for instance, kept in request.beside.items():
        held = _held(state, instance, kept.generation)
        if held.allocations != kept.allocations:
            raise ConcurrentUpdate(
                f"consumer generation conflict - consumer {instance} holds other allocations at generation "
                f"{kept.generation} than were read: its placement was restored since"
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
        write = claim_write(request, claim)
        if claim.instance in request.generations:
            write = msgspec.structs.replace(write, generation=None)
        write_allocations(state, [write])
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
