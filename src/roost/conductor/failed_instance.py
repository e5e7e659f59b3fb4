"""An instance whose build failed: its request, its claim, and the reasons of the failures.

Its row is updated to a newer claim in placement first: see `roost.state.cell_database.reshapes`.
"""

from collections.abc import Sequence

import msgspec

from roost.conductor.context import PlacementContext
from roost.model.instance import Instance
from roost.model.spec import Flavor, RequestSpec, Selection
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.reshapes import Claimed, follow_claims


def claimed_by(instance: Instance, cell: str) -> Selection:
    """Return the claim of an instance, as far as its row says."""
    claimed = instance.selection
    if claimed is not None:
        # A selection that an earlier version stored has no ordinal.
        return msgspec.structs.replace(claimed, ordinal=claimed.ordinal or instance.attempt)
    return Selection(instance.host or "", instance.node or "", cell, {}, {}, 0.0)


def placed_by(instance: Instance) -> tuple[str, str]:
    """Return the run that has placed the present attempt of an instance, and the request that it was for."""
    shelf = instance.shelf
    if shelf is not None and shelf.run and shelf.by is not None:
        return shelf.run, shelf.by.request_id
    return instance.run, instance.request_id


def spec_of(instance: Instance) -> RequestSpec:
    """Return the request spec of an instance; if none is stored, one with the facts of its row."""
    if instance.spec is not None:
        return instance.spec
    claimed = instance.alternates[0].allocations if instance.alternates else {}
    amounts: dict[str, int] = {}
    for resources in claimed.values():
        for name, amount in resources.items():
            amounts[name] = amounts.get(name, 0) + amount
    wanted = {f"resources:{name}": str(amount) for name, amount in amounts.items()}
    flavor = Flavor(instance.flavor, 0, 0, extra_specs=wanted)
    return RequestSpec(project_id=instance.project_id, user_id=instance.user_id, flavor=flavor)


def all_reasons(attempts: Sequence[str], refusals: Sequence[str]) -> str:
    """Return the reason of an instance in error: why each attempt failed, and why no further one is made."""
    return f"Exceeded maximum number of retries after {len(attempts)} attempts: " + "; ".join(
        (*attempts, *refusals)
    )


async def follow_claim(context: PlacementContext, database: str, instance: Instance) -> bool:
    """Update the row of an instance to its claim in placement, if that is newer and on the same node.

    Returns whether the row differs now from the one that ``instance`` was read from, by this or another
    change. Raises `StorageError`, and what placement raises.
    """
    if instance.node is None:
        return False
    held = (await context.placement.holdings((instance.consumer,))).get(instance.consumer)
    if held is not None:
        tree = await context.placement.tree(instance.node)
        claimed = {instance.consumer: Claimed(held.allocations, held.consumer.generation)}
        names = {each.uuid: each.name for each in tree}
        follow = follow_claims(instance.node, names, claimed, context.clock())
        if await context.write(database, follow):
            values = {"instance": instance.uuid, "host": instance.host}
            context.log("the row of an instance follows its claim, which was reshaped", values)
    row = (await context.read(database, find_instances((instance.uuid,)))).get(instance.uuid)
    return row is None or row.selection != instance.selection
