"""The update of an instance's row to a newer claim in placement: see `roost.state.cell_database.reshapes`."""

from roost.conductor.context import PlacementContext
from roost.model.instance import Instance
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.reshapes import Claimed, follow_claims


async def follow_claim(context: PlacementContext, database: str, instance: Instance) -> bool:
    """Update the row of an instance to its claim in placement, if that is newer and on the same node.

    Returns whether the row differs now from the one that ``instance`` was read from, by this or another
    change. Raises `StorageError`, and what placement raises.
    """
    if instance.node is None:
        return False
    held = (await context.placement.holdings((instance.uuid,))).get(instance.uuid)
    if held is not None:
        tree = await context.placement.tree(instance.node)
        claimed = {instance.uuid: Claimed(held.allocations, held.consumer.generation)}
        names = {each.uuid: each.name for each in tree}
        follow = follow_claims(instance.node, names, claimed, context.clock())
        if await context.write(database, follow):
            values = {"instance": instance.uuid, "host": instance.host}
            context.log("the row of an instance follows its claim, which was reshaped", values)
    row = (await context.read(database, find_instances((instance.uuid,)))).get(instance.uuid)
    return row is None or row.selection != instance.selection
