"""The repairs. Each is one write at what the looks have read, and is refused if that has changed."""

from roost.conductor.audit.findings import FREE_CLAIM, Observed
from roost.conductor.questions import PLACEMENT, WriteAllocations
from roost.machine import Ask, Machine
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.scheduler.claim_result import is_outage, one_line

DONE = "done"
"""The result of a repair that was made; that of another one says why it was refused."""


def repair(action: str, observed: Observed) -> Machine[str]:
    """Make a repair; returns its result.

    Raises: `StorageError`, and what placement raises if it cannot be reached: the outcome is unknown then.
    """
    assert action == FREE_CLAIM, action
    try:
        yield from _free_claim(observed)
    except PlacementError as error:
        if is_outage(error):
            raise
        return f"refused: {one_line(error)}"
    return DONE


def _free_claim(observed: Observed) -> Machine[None]:
    assert observed.held is not None
    consumer = observed.held.consumer
    write = ConsumerWrite(
        consumer=observed.instance,
        allocations={},
        project_id=consumer.project_id,
        user_id=consumer.user_id,
        generation=consumer.generation,
    )
    yield from Ask(PLACEMENT, WriteAllocations((write,))).do()
