"""A shelved instance that is to run again: a new selection for a new consumer, in its own cell.

As with a move, a cell's conductor asks its scheduler, which may know the hosts of this cell alone. The disks
of the instance are where the hosts of its cell find them.
"""

from collections.abc import Collection

import msgspec

from roost.conductor.context import CellConductorContext
from roost.model.instance import Instance
from roost.model.service_version import SHELVES
from roost.model.spec import Destination, RequestedDestination, RequestSpec
from roost.scheduler.request.scheduling_request import HostRequest
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.nodes import find_hosts_without_store

ALTERNATES = 2
"""Alternates of the host of an instance that is unshelved."""


def spec_of_unshelving(instance: Instance, cell: str, without: Collection[str] = ()) -> RequestSpec:
    """Return the request spec by which a host is looked for. ``without``: hosts that are left out.

    A host that was forced when the instance was created does not bind it any more, and the members of its
    server group are those that placement knows now.
    """
    assert instance.spec is not None
    spec, before = instance.spec, instance.spec.requested_destination
    group = spec.group
    return msgspec.structs.replace(
        spec,
        operation="unshelve",
        requested_destination=RequestedDestination(
            cell=cell,
            aggregates=() if before is None else before.aggregates,
            forbidden_aggregates=frozenset() if before is None else before.forbidden_aggregates,
        ),
        group=None if group is None else msgspec.structs.replace(group, hosts=()),
        force_hosts=(),
        force_nodes=(),
        retried_hosts=frozenset(),
        ignore_hosts=spec.ignore_hosts.union(without),
        needs_version=max(spec.needs_version, SHELVES.since),
    )


async def select_host(
    context: CellConductorContext, database: str, cell: str, instance: Instance
) -> Destination | None:
    """Have a host claimed for a shelved instance, which this process owns; None: another one owns it now.

    An earlier owner may have claimed, and cannot say what: its claim is replaced, at its generation. What is
    read belongs to this owner, since nobody had taken the instance over by then.

    Raises: `StorageError`, `SchedulerError`, and what placement raises.
    """
    consumer, shelf = instance.consumer, instance.shelf
    assert shelf is not None and shelf.by is not None
    held = (await context.placement.holdings((consumer,))).get(consumer)
    there = (await context.read(database, find_instances((instance.uuid,)))).get(instance.uuid)
    if there != instance:
        return None
    losing: frozenset[str] = frozenset()
    if shelf.store is not None:
        losing = await context.read(database, find_hosts_without_store(shelf.store))
    request = HostRequest(
        spec_of_unshelving(instance, cell, losing),
        (consumer,),
        ALTERNATES,
        generations={} if held is None else {consumer: held.consumer.generation},
        request_id=shelf.by.request_id,
        of_instances={consumer: instance.uuid},
    )
    (found,) = await context.scheduler.select_destinations(request)
    return found
