"""Shelved instances: they have no host and no claim, and what is kept of them waits for another host.

    active, stopped ──▶ shelving ──▶ offloaded ──▶ shelved ──▶ unshelving ──▶ assigned ──▶ …

The claim is freed after the host has said that the guest is gone, as at the end of an instance. So the
consumer that held it has ended too: placement forgets an empty one, and its generations would begin again at
1, with which a late write of before could pass for a new one. Each unshelving therefore draws a consumer.

What an unshelving builds is the next attempt of the instance. If none can be built, the claim is freed and
the instance is shelved again: its disks are where they were.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    ABANDONED,
    ASSIGNED,
    FAILED,
    IN_PLACE,
    OFFLOADED,
    SHELVED,
    SHELVING,
    STARTING,
    UNSHELVING,
    AttemptKey,
    ChangeRefused,
    DestroyOrder,
    Instance,
    Requester,
    Shelf,
    Transition,
)
from roost.model.move import has_attachments
from roost.model.spec import Selection
from roost.state.cell_database.conductor_work import Ownership, owned
from roost.state.cell_database.history import (
    MOST_OF_GUESTS,
    enter_state,
    has_heard,
    line,
    line_of_attempt,
    transition_line,
    with_line,
)
from roost.state.cell_database.host_work import give_orders, idle_hosts
from roost.state.cell_database.move_changes import locked_instance
from roost.state.cell_database.nodes import find_hosts_with_store, find_shelf_store
from roost.state.cell_database.rows import (
    INSTANCES,
    alternates_text,
    instance_of,
    selection_text,
    shelf_text,
)
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances, nodes
from roost.storage import entering, in_batches, one_of

_TO_SHELF = (SHELVING, OFFLOADED, SHELVED)
"""States of instances that are shelved, or about to be."""

_BACK = (UNSHELVING, ASSIGNED, STARTING, FAILED)
"""States of shelved instances that are about to run again."""

NO_SHELF = (
    "the driver of its host does not keep the disks of guests that are shelved: it can be shelved only if "
    "its disk may be made anew from its image, so that what is on it is lost (discard_disks)"
)
"""Why an instance cannot be shelved."""


@entering(SHELVING)
def shelve_instance(
    connection: Connection, *, instance: str, discards_disks: bool, word: str, by: Requester, at: float
) -> Instance | ChangeRefused | None:
    """Have the host of an instance destroy its guest; None: the cell has no such instance.

    ``discards_disks``: its disk is made anew from its image when it is unshelved. Otherwise it is refused
    unless the disks are in a store that other hosts have. ``word``: the uuid of the user's word; one that
    comes again changes nothing. An instance that is shelved, or about to be, is returned as it is.
    """
    locked = locked_instance(connection, instance)
    if locked is None or locked.state in _TO_SHELF or has_heard(connection, instance, word):
        return locked
    if (refusal := _why_not_shelved(locked)) is not None:
        return ChangeRefused(refusal)
    assert locked.host is not None and locked.node is not None
    store = None if discards_disks else find_shelf_store(locked.node)(connection)
    if store is None and not discards_disks:
        return ChangeRefused(NO_SHELF)
    shelf = Shelf(host=locked.host, node=locked.node, attempt=locked.attempt, store=store)
    told = transition_line(Transition(state=SHELVING, at=at, by=by, word=word))
    values = {
        "state": SHELVING,
        "reason": None,
        "shelf": shelf_text(shelf),
        "changed_at": at,
        "history": with_line(told, MOST_OF_GUESTS),
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == instance).values(**values))
    note_changes(connection, [instance], told)
    return msgspec.structs.replace(locked, state=SHELVING, reason=None, shelf=shelf)


def _why_not_shelved(instance: Instance) -> str | None:
    if instance.state not in IN_PLACE:
        return f"the instance is {instance.state}: only one that is {' or '.join(IN_PLACE)} can be shelved"
    if instance.move is not None:
        return "the instance moves: it cannot be shelved before the move has ended"
    if instance.spec is None or instance.selection is None:
        return "the cell does not know what the instance was built from and what it holds"
    return None


def note_offloaded(connection: Connection, done: Collection[DestroyOrder], at: float) -> None:
    """Note that hosts have destroyed the guests of instances that are to be shelved.

    A host that is not the instance's, or an attempt that is not the present one, frees nothing.
    """
    of_guests = {(each.instance, each.attempt, each.host) for each in done}
    for some in in_batches(each.instance for each in done):
        shelving = connection.execute(_SHELVING, {"uuids": some}).all()
        ended = [row.uuid for row in shelving if (row.uuid, row.attempt, row.host) in of_guests]
        if ended:
            enter_state(connection, ended, OFFLOADED, at)


_SHELVING = (
    sa.select(instances.c.uuid, instances.c.attempt, instances.c.host)
    .where(one_of(instances.c.uuid, "uuids"), instances.c.state == SHELVING)
    .order_by(instances.c.uuid)
    .with_for_update()
)


def offload_without_host(
    connection: Connection, keys: Iterable[AttemptKey], host: str, at: float, reason: str
) -> None:
    """Shelve instances on a host that is given up or dead, whose rows are locked; nobody waits for it.

    ``reason``: in their histories. The host is ordered to destroy what it has, in case it comes back.
    """
    given = [DestroyOrder(key.instance, key.attempt, host) for key in keys]
    if given:
        enter_state(connection, [each.instance for each in given], OFFLOADED, at, reason)
        give_orders(given, at)(connection)


HOST_GIVEN_UP = "the shelving goes on without the host, which was given up"
"""The reason in the history of an instance whose host has not destroyed its guest."""


@entering(SHELVED)
def put_on_shelf(connection: Connection, freed: Mapping[str, str], at: float) -> None:
    """Let instances be shelved whose claims were freed: their guests are gone, or could not be built.

    ``freed``: the consumer of each that holds nothing any more, by instance. One that has another consumer by
    now was shelved and unshelved meanwhile, and is left as it is.
    """
    told = line(SHELVED, at)
    values: dict[str, object] = {
        "state": SHELVED,
        "host": None,
        "node": None,
        "selection": None,
        "alternates": "[]",
        "owner": None,
        "changed_at": at,
        "history": with_line(told, MOST_OF_GUESTS),
    }
    for some in in_batches(sorted(freed)):
        rows = connection.execute(_FREED, {"uuids": some})
        shelved = [row.uuid for row in rows if freed[row.uuid] == (row.consumer or row.uuid)]
        if shelved:
            connection.execute(sa.update(instances).where(instances.c.uuid.in_(shelved)).values(**values))
            note_changes(connection, shelved, told)


_FREED = (
    sa.select(instances.c.uuid, instances.c.consumer)
    .where(
        one_of(instances.c.uuid, "uuids"),
        (instances.c.state == OFFLOADED)
        | ((instances.c.state == ABANDONED) & instances.c.shelf.is_not(None)),
    )
    .order_by(instances.c.uuid)
    .with_for_update()
)


@entering(UNSHELVING)
def unshelve_instance(
    connection: Connection, *, instance: str, consumer: str, by: Requester, at: float
) -> Instance | ChangeRefused | None:
    """Have a conductor look for a host for a shelved instance; None: the cell has no such instance.

    ``consumer``: drawn for the word, and never used again; it has the claim from now on. A word that comes
    again changes nothing. An instance that is about to run again is returned as it is.
    """
    locked = locked_instance(connection, instance)
    if locked is None or has_heard(connection, instance, consumer):
        return locked
    if locked.shelf is not None and locked.state in _BACK:
        return locked
    if (refusal := why_not_unshelved(locked)) is not None:
        return ChangeRefused(refusal)
    assert locked.shelf is not None
    shelf = msgspec.structs.replace(locked.shelf, by=by, run="")
    told = transition_line(Transition(state=UNSHELVING, at=at, by=by, word=consumer))
    values = {
        "state": UNSHELVING,
        "reason": None,
        "consumer": consumer,
        "shelf": shelf_text(shelf),
        "owner": None,
        "changed_at": at,
        "history": with_line(told, MOST_OF_GUESTS),
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == instance).values(**values))
    note_changes(connection, [instance], told)
    return msgspec.structs.replace(
        locked, state=UNSHELVING, reason=None, consumer=consumer, shelf=shelf, owner=None
    )


def why_not_unshelved(instance: Instance) -> str | None:
    """Return why an instance cannot be unshelved now; None if it can."""
    if instance.state in (SHELVING, OFFLOADED):
        return f"the instance is {instance.state}: it can be unshelved once it is {SHELVED}"
    if instance.state != SHELVED or instance.shelf is None or instance.spec is None:
        return f"the instance is {instance.state}: only one that is {SHELVED} can be unshelved"
    return None


@entering(ASSIGNED)
def assign_unshelved(
    connection: Connection,
    *,
    unshelved: Instance,
    selection: Selection,
    alternates: tuple[Selection, ...],
    run: str,
    at: float,
) -> bool:
    """Give a shelved instance to the host that is claimed for it; returns whether its owner still had it.

    ``unshelved``: as its owner has taken it. It is the next attempt of the instance.
    """
    assert unshelved.owner is not None and unshelved.shelf is not None
    attempt = _next_attempt(connection, unshelved)
    told = line_of_attempt(at, attempt, selection.host, selection.node, selection.ordinal)
    key = AttemptKey(unshelved.uuid, unshelved.attempt)
    assigned = (
        sa.update(instances)
        .where(*owned(key, UNSHELVING, Ownership(unshelved.owner, unshelved.owner_epoch)))
        .values(
            state=ASSIGNED,
            host=selection.host,
            node=selection.node,
            attempt=attempt,
            selection=selection_text(selection),
            alternates=alternates_text(alternates),
            shelf=shelf_text(msgspec.structs.replace(unshelved.shelf, run=run)),
            owner=None,
            began=at,
            changed_at=at,
            history=with_line(told, MOST_OF_GUESTS),
        )
    )
    if connection.execute(assigned).rowcount == 0:
        return False
    note_changes(connection, [unshelved.uuid], told)
    return True


def take_off_shelf(connection: Connection, uuids: Collection[str]) -> None:
    """Give shelved instances that are deleted, whose rows are locked, to hosts that remove what is kept.

    The host is the one that has an attempt, or where the instance ran, or another one with its disks. If
    nothing is kept, or no host is left, the instance has none. One whose agent is silent is asked only if no
    other one can do it. The order to destroy is of an attempt of its own: the result of an earlier order,
    which kept disks and ports, must not end the deletion.
    """
    rows = [row for some in in_batches(uuids) for row in connection.execute(_NAMED, {"uuids": some})]
    for instance in map(instance_of, rows):
        host = instance.host or _host_of_shelf(connection, instance)
        if host is not None:
            values = {"host": host, "attempt": _next_attempt(connection, instance)}
            of_it = instances.c.uuid == instance.uuid
            connection.execute(sa.update(instances).where(of_it).values(**values))


def ask_another_host(connection: Connection, uuid: str, host: str) -> str | None:
    """Have another host remove what is kept of a shelved instance that is deleted, in place of a silent one.

    Returns its name; None: no other one can, or the silent host may have a guest of it. The row is locked.
    """
    row = connection.execute(_NAMED, {"uuids": [uuid]}).one_or_none()
    instance = None if row is None else instance_of(row)
    # Instances that were taken off the shelf have a host, and no node.
    if instance is None or instance.node is not None:
        return None
    other = _host_of_shelf(connection, instance, without=host)
    if other is None or idle_hosts(connection, [other]):
        return None
    values = {"host": other, "attempt": _next_attempt(connection, instance)}
    connection.execute(sa.update(instances).where(instances.c.uuid == uuid).values(**values))
    return other


def _host_of_shelf(connection: Connection, instance: Instance, without: str | None = None) -> str | None:
    """Return the host that removes what is kept of a shelved instance. ``without``: not this one."""
    shelf = instance.shelf
    attached = instance.spec is not None and has_attachments(instance.spec)
    if shelf is None or (shelf.store is None and not attached):
        return None
    hosts = [*connection.execute(_HOST_OF_NODE, {"node": shelf.node}).scalars()]
    if shelf.store is not None:
        with_store = find_hosts_with_store(shelf.store)(connection)
        hosts = [host for host in hosts if host in with_store]
        hosts += sorted(with_store.difference(hosts))
    hosts = [host for host in hosts if host != without]
    idle = idle_hosts(connection, hosts)
    hosts.sort(key=idle.__contains__)
    return hosts[0] if hosts else None


def _next_attempt(connection: Connection, instance: Instance) -> int:
    """Return the number of an attempt that an instance has not had."""
    ended = sa.select(sa.func.max(build_attempts.c.attempt)).where(
        build_attempts.c.instance_uuid == instance.uuid
    )
    return 1 + max(instance.attempt, connection.execute(ended).scalar() or 0)


_NAMED = INSTANCES.where(one_of(instances.c.uuid, "uuids"))
_HOST_OF_NODE = sa.select(nodes.c.host).where(nodes.c.node == sa.bindparam("node"))
