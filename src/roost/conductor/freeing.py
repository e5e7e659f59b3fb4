"""The last write of an instance's claim: nothing, at the consumer's generation.

A conductor that was stopped in between frees nothing that others have claimed since.
"""

from collections.abc import Sequence

from roost.conductor.questions import PLACEMENT, AllocationsOf, FreeConsumers, WriteAllocations
from roost.machine import Ask, Machine, Together
from roost.model.instance import Instance
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate


def free(ended: Sequence[Instance]) -> Machine[None]:
    """Free the claims of instances. Raises `PlacementError`."""
    at = {each.uuid: each.selection.generation for each in ended if each.selection is not None}
    fenced = [each for each in ended if at.get(each.uuid) is not None]
    # Instances without a claim, and claims of versions that stored no generation.
    if others := tuple(each.uuid for each in ended if at.get(each.uuid) is None):
        yield from Ask(PLACEMENT, FreeConsumers(others)).do()
    if fenced:
        try:
            yield from Ask(
                PLACEMENT, WriteAllocations(tuple(_nothing(each, at[each.uuid] or 0) for each in fenced))
            ).do()
        except ConcurrentUpdate:
            yield from Together([_free_one(each) for each in fenced]).do()


def _free_one(instance: Instance) -> Machine[None]:
    """Free a claim that is not as its instance's row says: the row was not written after it changed."""
    held = yield from Ask(PLACEMENT, AllocationsOf(instance.uuid)).do()
    if held is not None:
        write = _nothing(instance, held.consumer.generation)
        yield from Ask(PLACEMENT, WriteAllocations((write,))).do()


def _nothing(instance: Instance, generation: int) -> ConsumerWrite:
    return ConsumerWrite(
        consumer=instance.uuid,
        allocations={},
        project_id=instance.project_id,
        user_id=instance.user_id,
        generation=generation,
    )
