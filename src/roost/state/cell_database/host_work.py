"""The work of hosts: builds, stops, starts, deletions, and orders to destroy that outlive an instance's stay.

An instance whose host has something to do is itself the order (`roost.model.instance.AT_HOST`). If an attempt
ends without its host, because it took too long or the host does not answer, the order stays here until the
host has acknowledged it. A host with such orders is not up: its guests may still take room that was given to
others.

Work that a host has not done yet is read by observers that measure its time by clocks of their own.
"""

from collections.abc import Collection, Iterable

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, AT_HOST, DELETING, AttemptKey, DestroyOrder, Instance
from roost.model.move import MoveWork
from roost.state.cell_database.guests import FORGET_UNKNOWN_GUEST
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import held_hosts, instances, orders
from roost.state.leases import VACANT, Stamp, read_stamps
from roost.storage import in_batches, one_of, one_of_constants, transaction

FOR_HOSTS = frozenset(AT_HOST)
"""States in which an instance is work for its host."""

SESSION = "host"
"""The kind of the leases that are the sessions of hosts. The lease of a host is named ``host/NAME``."""


def orders_topic(cell: str) -> str:
    """Return the topic: a host of a cell may have work."""
    return f"cell/{cell}/orders"


class HostWork(msgspec.Struct, frozen=True):
    """The work of hosts: instances in states of `FOR_HOSTS`, orders to destroy, and parts of moves."""

    instances: list[Instance]
    orders: list[DestroyOrder]
    moves: list[MoveWork] = []

    def by_host(self) -> "dict[str, HostWork]":
        """Return the work by host. Hosts without work are left out."""
        found: dict[str, HostWork] = {}
        for instance in self.instances:
            found.setdefault(instance.host or "", HostWork([], [])).instances.append(instance)
        for order in self.orders:
            found.setdefault(order.host, HostWork([], [])).orders.append(order)
        return found


@transaction
def work_of_hosts(connection: Connection, hosts: tuple[str, ...]) -> HostWork:
    """Return the work of some hosts."""
    found: list[Instance] = []
    for some in in_batches(hosts):
        found += [instance_of(row) for row in connection.execute(_WORK, {"hosts": some})]
    return HostWork(found, read_orders(connection, hosts))


_WORK = INSTANCES.where(one_of_constants(instances.c.state, FOR_HOSTS), one_of(instances.c.host, "hosts"))
_ORDERS = sa.select(orders).where(one_of(orders.c.host, "hosts"))
_OWING = sa.select(orders.c.host).distinct()


def read_orders(connection: Connection, hosts: Iterable[str]) -> list[DestroyOrder]:
    """Return the orders that some hosts have not acknowledged."""
    return [
        DestroyOrder(row.instance_uuid, row.attempt, row.host)
        for some in in_batches(hosts)
        for row in connection.execute(_ORDERS, {"hosts": some})
    ]


@transaction
def hosts_with_orders(connection: Connection) -> frozenset[str]:
    """Return the hosts that have not acknowledged an order to destroy."""
    return frozenset(connection.execute(_OWING).scalars())


@transaction
def give_orders(connection: Connection, given: Collection[DestroyOrder], at: float) -> None:
    """Store orders until they are acknowledged.

    An order that is stored already is not stored twice: an attempt that took too long may be deleted later,
    on a host that has not acknowledged its end yet.
    """
    if given:
        acknowledge(connection, given)
        rows = [
            {"host": each.host, "instance_uuid": each.instance, "attempt": each.attempt, "at": at}
            for each in given
        ]
        connection.execute(sa.insert(orders), rows)


def acknowledge(connection: Connection, done: Collection[DestroyOrder]) -> None:
    """Remove orders that were carried out."""
    carried_out = {(each.host, each.instance, each.attempt) for each in done}
    # Mostly there are none: an instance that is deleted is itself the order.
    given = [
        tuple(row)
        for some in in_batches(each.host for each in done)
        for row in connection.execute(_GIVEN, {"hosts": some})
    ]
    rows = [
        {"of_host": host, "key": instance, "of_attempt": attempt}
        for host, instance, attempt in given
        if (host, instance, attempt) in carried_out
    ]
    if rows:
        connection.execute(_ACKNOWLEDGE, rows)
        connection.execute(FORGET_UNKNOWN_GUEST, rows)


_GIVEN = sa.select(orders.c.host, orders.c.instance_uuid, orders.c.attempt).where(
    one_of(orders.c.host, "hosts")
)
_ACKNOWLEDGE = sa.delete(orders).where(
    orders.c.host == sa.bindparam("of_host"),
    orders.c.instance_uuid == sa.bindparam("key"),
    orders.c.attempt == sa.bindparam("of_attempt"),
)


def idle_hosts(connection: Connection, hosts: Collection[str]) -> frozenset[str]:
    """Return those of some hosts whose agents are silent, or carry out no orders as they are held."""
    held = frozenset(connection.execute(_HELD).scalars())
    stamps = read_stamps(connection, [session_name(host) for host in hosts])
    silent = {host for host in hosts if stamps.get(session_name(host), ("",))[0] == VACANT}
    return frozenset(silent | held.intersection(hosts))


def session_name(host: str) -> str:
    """Return the name of the lease that is the session of a host."""
    return f"{SESSION}/{host}"


@transaction
def attempts_assigned(connection: Connection) -> dict[AttemptKey, Stamp]:
    """Return the attempts that no host has confirmed yet.

    Attempts on held hosts are left out. The agent may be held because the database was restored to an earlier
    state, and then it may have confirmed the attempt in the state that was lost.
    """
    return {AttemptKey(row.uuid, row.attempt): () for row in connection.execute(_ASSIGNED)}


_HELD = sa.select(held_hosts.c.host).where(held_hosts.c.accepted.is_(False))
_ASSIGNED = sa.select(instances.c.uuid, instances.c.attempt).where(
    instances.c.state == ASSIGNED, instances.c.host.not_in(_HELD)
)


@transaction
def deletions_awaited(connection: Connection) -> dict[AttemptKey, Stamp]:
    """Return the attempts whose hosts are to destroy them, each with the stamp of its host's session."""
    query = sa.select(instances.c.uuid, instances.c.attempt, instances.c.host).where(
        instances.c.state == DELETING
    )
    found = connection.execute(query).all()
    stamps = read_stamps(connection, {session_name(row.host or "") for row in found})
    return {AttemptKey(row.uuid, row.attempt): stamps.get(session_name(row.host or ""), ()) for row in found}
