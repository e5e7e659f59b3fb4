"""The writes by which a run over HTTP makes claims, and takes them back beside what an instance keeps.

An instance that keeps what it held loses a claim by a write of that. It is never deleted: an emptied consumer
would begin at generation 1 again, and its guest would run without a claim.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET

from roost.ledger import Held
from roost.model.allocation import KeptAllocations
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import is_consumer_conflict, translated
from roost.scheduler.selection.outcome import Claim
from roost.scheduler.selection.running_selection import INSTANCE, claim_write

ATTEMPTS = 4
"""Attempts of a write that meets other writers of the same providers. Source: Nova."""


class AllocationCalls(Protocol):
    """The calls of a placement client on the allocations of consumers."""

    async def allocations_of(self, consumer: str) -> Held | None: ...

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None: ...


async def write_again(placement: AllocationCalls, writes: Sequence[ConsumerWrite]) -> None:
    """Write, and write again if another writer changed one of the providers meanwhile, as its conflict tells.

    Raises: `PlacementError`, of the last attempt.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return await placement.write_allocations(writes)
        except ConcurrentUpdate as error:
            if is_consumer_conflict(error):
                raise
    return await placement.write_allocations(writes)


async def give_back(
    placement: AllocationCalls, request: SchedulingRequest, instance: str, generation: int
) -> int:
    """Take the claim of an instance back that keeps what it held. Returns the new generation.

    ``generation``: the one that the claim has reached.

    Raises: as `translated`; `PlacementError`, `ConcurrentUpdate` if others have changed the instance since.
    """
    before = request.beside[instance]
    kept = before.allocations
    write = ConsumerWrite(
        consumer=instance,
        allocations=kept,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        consumer_type=INSTANCE,
        generation=generation,
        assignment=before.assignment or UNSET,
    )
    try:
        await translated(write_again(placement, [write]))
    except ConcurrentUpdate as error:
        # An earlier write of the same may have been made, though its answer was lost.
        held = await translated(placement.allocations_of(instance)) if is_consumer_conflict(error) else None
        if held is None or held.allocations != kept:
            raise
        return held.consumer.generation
    return generation + 1


async def settle(
    placement: AllocationCalls, request: SchedulingRequest, claim: Claim, generation: int
) -> int:
    """Take a claim back whose answer was lost, and perhaps the write too, from an instance that keeps
    something.

    A write that may still arrive is fenced off: what is kept is written at its generation. Returns the new
    generation; the same one if others have changed the instance since, and nothing is done.

    ``generation``: the one that the claim was written at. Raises: as `give_back`.
    """
    before = KeptAllocations(request.beside[claim.instance].allocations, generation)
    after = KeptAllocations(claim_write(request, claim).allocations, generation + 1)
    for left in reversed(range(ATTEMPTS)):
        held = await translated(placement.allocations_of(claim.instance))
        if held is None:
            break
        found = KeptAllocations(held.allocations, held.consumer.generation)
        if found not in (before, after):
            break
        try:
            return await give_back(placement, request, claim.instance, found.generation)
        except ConcurrentUpdate as error:
            # The write has arrived between the read and the write after it.
            if not left or not is_consumer_conflict(error):
                raise
    return generation
