"""The repairs. Each is a write that is refused if its subject has changed since the looks have read it.

A repair may claim for an instance that is deleted between the second look and the write: placement knows no
deleted consumers. The next round frees such a claim.
"""

from collections.abc import Callable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.audit.findings import (
    CLAIM_AGAIN,
    DESTROY_GUEST,
    END_INSTANCE,
    FOLLOW_GUEST,
    FREE_CLAIM,
    MAP_AGAIN,
    Observed,
)
from roost.conductor.context import PlacementContext
from roost.model.instance import DestroyOrder, Instance
from roost.model.spec import Selection
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.process.context import Routine
from roost.scheduler.selection.claim_result import is_outage, one_line
from roost.scheduler.selection.running_selection import INSTANCE
from roost.state.api_database.audit import DONE
from roost.state.api_database.mappings import InstanceMapping
from roost.state.api_database.past import find_past
from roost.state.api_database.tables import API, instance_mappings
from roost.state.cell_database.building import note_claimed_again
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.found_guests import follow_guest
from roost.state.cell_database.host_work import give_orders
from roost.storage import insert_missing, transaction


async def repair(context: PlacementContext, action: str, observed: Observed) -> str:
    """Make a repair; returns its result.

    Raises: `StorageError`, and what placement raises if it cannot be reached: the outcome is unknown then.
    """
    assert action in _REPAIRS, action
    try:
        refusal = await _REPAIRS[action](context, observed)
    except PlacementError as error:
        if is_outage(error):
            raise
        refusal = one_line(error)
    return DONE if refusal is None else f"refused: {refusal}"


async def _free_claim(context: PlacementContext, observed: Observed) -> str | None:
    assert observed.held is not None
    consumer = observed.held.consumer
    await _free(context, consumer.uuid, consumer.project_id, consumer.user_id, consumer.generation)
    return None


async def _free(
    context: PlacementContext, consumer: str, project_id: str, user_id: str, generation: int
) -> None:
    write = ConsumerWrite(
        consumer=consumer,
        allocations={},
        project_id=project_id,
        user_id=user_id,
        generation=generation,
    )
    await context.placement.write_allocations((write,))


async def _claim_again(context: PlacementContext, observed: Observed) -> str | None:
    instance = observed.present
    assert instance is not None and instance.selection is not None
    group = None if instance.spec is None else instance.spec.group
    generation = None if observed.held is None else observed.held.consumer.generation
    write = ConsumerWrite(
        consumer=instance.consumer,
        allocations=instance.selection.allocations,
        project_id=instance.project_id,
        user_id=instance.user_id,
        consumer_type=INSTANCE,
        generation=generation,
        group=None if group is None else group.claim(),
        assignment=instance.selection.assignment,
        mappings=instance.selection.mappings,
    )
    await context.placement.write_allocations((write,))
    # Placement counts from 1, and each write counts.
    written = (generation or 0) + 1
    noted = note_claimed_again(instance.uuid, instance.attempt, written)
    if await context.write(f"cell/{instance.selection.cell}", noted):
        return None
    # If there was no claim before, a deletion meanwhile had none to free.
    await _free(context, instance.consumer, instance.project_id, instance.user_id, written)
    return "the instance has changed since"


async def _destroy_guest(context: PlacementContext, observed: Observed) -> str | None:
    at = context.clock()
    for cell, guest in observed.strays:
        order = DestroyOrder(guest.instance, guest.attempt, guest.host)
        await context.write(f"cell/{cell}", give_orders((order,), at))
    return None


async def _map_again(context: PlacementContext, observed: Observed) -> str | None:
    [(cell, row)] = observed.rows.items()
    is_written = await context.write(API, map_again(row, cell, observed.mapping))
    return None if is_written else "the mapping has changed since"


async def _follow_guest(context: PlacementContext, observed: Observed) -> str | None:
    guest, place, held = observed.followed, observed.claimed_on, observed.held
    assert guest is not None and place is not None and held is not None
    [row] = observed.rows.values()
    selection = Selection(
        host=place.host,
        node=place.node,
        cell=place.cell,
        allocations=held.allocations,
        mappings={"": sorted(held.allocations)},
        weight=0.0,
        generation=held.consumer.generation,
    )
    follow = follow_guest(guest=guest, selection=selection, before=row.attempt, at=context.clock())
    return None if await context.write(f"cell/{place.cell}", follow) else "the instance has changed since"


async def _end_instance(context: PlacementContext, observed: Observed) -> str | None:
    [(cell, row)] = observed.rows.items()
    deleted = await context.write(f"cell/{cell}", DeleteInstances((row.uuid,), context.clock(), cell))
    context.record((), deleted.ended)
    return None


_REPAIRS: Mapping[str, Callable[[PlacementContext, Observed], Routine[str | None]]] = {
    FREE_CLAIM: _free_claim,
    CLAIM_AGAIN: _claim_again,
    DESTROY_GUEST: _destroy_guest,
    MAP_AGAIN: _map_again,
    FOLLOW_GUEST: _follow_guest,
    END_INSTANCE: _end_instance,
}


@transaction
def map_again(connection: Connection, instance: Instance, cell: str, seen: InstanceMapping | None) -> bool:
    """Map an instance to the cell that has it, unless its mapping has changed; returns whether it was mapped.

    ``seen``: the mapping that the audit has read, None if there was none. ``instance``: the row in the cell.
    An instance that has ended in the meantime gets no mapping.
    """
    of = instance
    here = instance_mappings.c.instance_uuid == of.uuid
    row = connection.execute(sa.select(instance_mappings).where(here).with_for_update()).one_or_none()
    if (row and InstanceMapping(*row)) != seen or find_past((of.uuid,))(connection):
        return False
    if row is not None:
        epoch = max(row.epoch, of.epoch)
        connection.execute(sa.update(instance_mappings).where(here).values(cell=cell, epoch=epoch))
        return True
    values = {
        "instance_uuid": of.uuid,
        "cell": cell,
        "epoch": of.epoch,
        "request_id": of.request_id,
        "project_id": of.project_id,
        "user_id": of.user_id,
        "deleted": False,
        "accepted_at": None,
    }
    insert_missing(connection, sa.insert(instance_mappings), values)
    return True
