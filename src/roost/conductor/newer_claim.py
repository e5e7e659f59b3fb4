"""The update of an instance's row to a newer claim in placement: see `roost.state.cell_database.reshapes`."""

from roost.conductor.questions import PLACEMENT, AllocationsOf, TreeOf
from roost.machine import Ask, Clock, Log, Machine, Read, Write
from roost.model.instance import Instance
from roost.state.cell_database.arrivals import FindInstances
from roost.state.cell_database.reshapes import Claimed, FollowClaims


def follow_claim(database: str, instance: Instance) -> Machine[bool]:
    """Update the row of an instance to its claim in placement, if that is newer and on the same node.

    Returns whether the row differs now from the one that ``instance`` was read from, by this or another
    change. Raises `StorageError`, and what placement raises.
    """
    if instance.node is None:
        return False
    held = (yield from Ask(PLACEMENT, AllocationsOf((instance.uuid,))).do()).get(instance.uuid)
    if held is not None:
        tree = yield from Ask(PLACEMENT, TreeOf(instance.node)).do()
        claimed = {instance.uuid: Claimed(held.allocations, held.consumer.generation)}
        names = {each.uuid: each.name for each in tree}
        follow = FollowClaims(instance.node, names, claimed, (yield from Clock().do()))
        if (yield from Write(database, follow).do()):
            values = {"instance": instance.uuid, "host": instance.host}
            yield from Log("the row of an instance follows its claim, which was reshaped", values).do()
    row = (yield from Read(database, FindInstances((instance.uuid,))).do()).get(instance.uuid)
    return row is None or row.selection != instance.selection
