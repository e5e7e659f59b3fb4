"""The work of hosts that they do not know yet."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import DELETING, DestroyOrder, Instance
from roost.process.context import Context
from roost.state.cell_database.host_work import FOR_HOSTS, HostWork
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances, orders
from roost.storage import in_batches, one_of, one_of_constants, short_read

Known = frozenset[tuple[bool, str, int]]
"""Orders that a host knows: whether to destroy, instance, attempt."""


async def new_work(context: Context, database: str, known: Mapping[str, Known]) -> dict[str, HostWork]:
    """Return by host the work that it does not know yet.

    Reads the keys of all work, but the rows of new work alone: agents that are busy for long do not make each
    look longer. Raises `StorageError`.
    """
    keys = await context.read(database, read_work_keys(known))
    found: dict[str, HostWork] = {}
    if keys.instances:
        for host, instance in await context.read(database, read_instances_with_work(keys.instances)):
            # It may have changed since.
            key = (instance.state == DELETING, instance.uuid, instance.attempt)
            if host in known and key not in known[host]:
                found.setdefault(host, HostWork([], [])).instances.append(instance)
    for order in keys.orders:
        found.setdefault(order.host, HostWork([], [])).orders.append(order)
    return found


class NewKeys(msgspec.Struct, frozen=True):
    """Instances with work for hosts that the hosts do not know, and orders to destroy of that kind."""

    instances: tuple[str, ...]
    orders: tuple[DestroyOrder, ...]


@short_read
def read_work_keys(connection: Connection, known: Mapping[str, Known]) -> NewKeys:
    """Read the keys of work that hosts do not know, without the instances' rows. One statement."""
    found, given = list[str](), list[DestroyOrder]()
    for uuid, attempt, host, state in connection.execute(_KEYS).all():
        if host not in known or (state in _TO_DESTROY, uuid, attempt) in known[host]:
            continue
        if state == _ORDER:
            given.append(DestroyOrder(uuid, attempt, host))
        else:
            found.append(uuid)
    return NewKeys(tuple(found), tuple(given))


@short_read
def read_instances_with_work(connection: Connection, uuids: tuple[str, ...]) -> list[tuple[str, Instance]]:
    """Read instances with work for their hosts, each with its host."""
    return [
        (row.host, instance_of(row))
        for some in in_batches(uuids)
        for row in connection.execute(_NAMED, {"uuids": some}).all()
    ]


_ORDER = "order"
"""In place of a state: an order to destroy a guest of which the cell has no instance any more."""
_TO_DESTROY = (DELETING, _ORDER)
_OF_HOSTS = one_of_constants(instances.c.state, FOR_HOSTS)
_KEYS = sa.union_all(
    sa.select(instances.c.uuid, instances.c.attempt, instances.c.host, instances.c.state).where(_OF_HOSTS),
    sa.select(orders.c.instance_uuid, orders.c.attempt, orders.c.host, sa.literal(_ORDER)),
)
_NAMED = INSTANCES.where(one_of(instances.c.uuid, "uuids"), _OF_HOSTS)
