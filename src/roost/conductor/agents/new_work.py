"""What hosts have to do that they do not know yet."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.arriving import INSTANCES
from roost.cells.orders import FOR_HOSTS, HostWork
from roost.cells.rows import instance_of
from roost.cells.tables import instances, orders
from roost.model.instance import DELETING, DestroyOrder, Instance
from roost.storage import in_batches

Known = frozenset[tuple[bool, str, int]]
"""Orders that a host knows: whether to destroy, instance, attempt."""


class NewWork(msgspec.Struct, frozen=True):
    """What hosts have to do that they do not know yet, by host.

    Reads the keys of all work, and the rest of what is new alone: agents that are busy for long do not make
    each look longer.
    """

    known: Mapping[str, Known]

    def __call__(self, connection: Connection) -> dict[str, HostWork]:
        found: dict[str, HostWork] = {}
        for host, instance in self._instances(connection):
            found.setdefault(host, HostWork([], [])).instances.append(instance)
        for order in connection.execute(_ORDERS):
            key = (True, order.instance_uuid, order.attempt)
            if order.host in self.known and key not in self.known[order.host]:
                given = DestroyOrder(order.instance_uuid, order.attempt, order.host)
                found.setdefault(order.host, HostWork([], [])).orders.append(given)
        return found

    def _instances(self, connection: Connection) -> list[tuple[str, Instance]]:
        new = [
            uuid
            for uuid, attempt, host, state in connection.execute(_KEYS).all()
            if host in self.known and (state == DELETING, uuid, attempt) not in self.known[host]
        ]
        return [
            (row.host, instance_of(row))
            for some in in_batches(new)
            for row in connection.execute(_NAMED, {"uuids": some}).all()
        ]


_ORDERS = sa.select(orders)
_KEYS = sa.select(instances.c.uuid, instances.c.attempt, instances.c.host, instances.c.state).where(
    instances.c.state.in_(sorted(FOR_HOSTS))
)
_NAMED = INSTANCES.where(instances.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
