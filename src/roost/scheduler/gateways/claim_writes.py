"""The writes by which a run over HTTP makes claims, and takes them back from instances that held something.

An instance that keeps what it held, or whose migration took it over, loses a claim by a write of what it
held. It is never deleted: an emptied consumer would begin at generation 1 again, and its guest would run
without a claim. The migration is deleted by the same write.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET

from roost.ledger import Held
from roost.model.allocation import HandedClaim, KeptAllocations
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import is_consumer_conflict, translated
from roost.scheduler.selection.outcome import Claim
from roost.scheduler.selection.running_selection import INSTANCE, MIGRATION, claim_write

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
    placement: AllocationCalls,
    request: SchedulingRequest,
    instance: str,
    generation: int,
    *,
    arrived: bool = True,
) -> int:
    """Take the claim of an instance back that held something before. Returns the new generation.

    ``generation``: the present one. ``arrived``: False for a claim that was not made, and is fenced off.

    Raises: as `translated`; `PlacementError`, `ConcurrentUpdate` if others have changed the instance since.
    """
    before = _held_before(request, instance)
    try:
        await translated(write_again(placement, _writes_back(request, instance, generation, arrived)))
    except ConcurrentUpdate as error:
        # An earlier write of the same may have been made, though its answer was lost.
        held = await translated(placement.allocations_of(instance)) if is_consumer_conflict(error) else None
        if held is None or held.allocations != before.allocations:
            raise
        if isinstance(before, HandedClaim):
            migration = await translated(placement.allocations_of(before.consumer))
            if migration is not None:
                raise
        return held.consumer.generation
    return generation + 1


def _held_before(request: SchedulingRequest, instance: str) -> KeptAllocations:
    kept = request.kept_of(instance)
    assert kept is not None
    return kept


def _writes_back(
    request: SchedulingRequest, instance: str, generation: int, arrived: bool
) -> list[ConsumerWrite]:
    """Return the writes that take a claim back together, with arguments as those of `give_back`."""
    before, spec = _held_before(request, instance), request.spec
    writes = [
        ConsumerWrite(
            consumer=instance,
            allocations=before.allocations,
            project_id=spec.project_id,
            user_id=spec.user_id,
            consumer_type=INSTANCE,
            generation=generation,
            assignment=before.assignment or UNSET,
        )
    ]
    if arrived and isinstance(before, HandedClaim):
        migration = ConsumerWrite(
            consumer=before.consumer,
            allocations={},
            project_id=spec.project_id,
            user_id=spec.user_id,
            consumer_type=MIGRATION,
            generation=1,
        )
        writes.append(migration)
    return writes


async def settle(
    placement: AllocationCalls, request: SchedulingRequest, claim: Claim, generation: int
) -> int:
    """Take a claim back whose answer was lost, and perhaps the write too, from an instance that held
    something before.

    A write that may still arrive is fenced off: what was held is written at its generation. Returns the new
    generation; the same one if others have changed the instance since, and nothing is done.

    ``generation``: the one that the claim was written at. Raises: as `give_back`.
    """
    before = KeptAllocations(_held_before(request, claim.instance).allocations, generation)
    after = KeptAllocations(claim_write(request, claim).allocations, generation + 1)
    for left in reversed(range(ATTEMPTS)):
        held = await translated(placement.allocations_of(claim.instance))
        if held is None:
            break
        found = KeptAllocations(held.allocations, held.consumer.generation)
        if found not in (before, after):
            break
        try:
            return await give_back(
                placement, request, claim.instance, found.generation, arrived=found == after
            )
        except ConcurrentUpdate as error:
            # The write has arrived between the read and the write after it.
            if not left or not is_consumer_conflict(error):
                raise
    return generation
