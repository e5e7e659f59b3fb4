"""The extent of orders to destroy: disks and ports that go with a guest, and the attempt that stays."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.types import PortsReleased
from roost.model.instance import (
    ABANDONED,
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    STARTING,
    DestroyOrder,
)
from roost.model.move_states import SOURCE_KEPT
from roost.state.cell_database.arrivals import find_deleted
from roost.state.cell_database.tables import instances, moves
from roost.storage import in_batches, one_of, one_of_constants, short_read


class Destruction(msgspec.Struct, frozen=True):
    """The extent of an order to destroy.

    ``deletes``: its disks too, as the instance is deleted. ``released``: the ports that the instance loses
    with a guest that is not its own any more. ``beside``: another attempt on the host, which is left alone.
    """

    deletes: bool
    released: PortsReleased
    beside: int | None = None


@short_read
def read_destructions(
    connection: Connection, given: tuple[DestroyOrder, ...]
) -> dict[DestroyOrder, Destruction]:
    """Return what some orders destroy.

    Of two attempts on the host of an instance that is being deleted the later one is destroyed last, and the
    disks end with it.
    """
    uuids = sorted({each.instance for each in given})
    deleted = find_deleted(tuple(uuids))(connection)
    rows = {
        row.uuid: row for some in in_batches(uuids) for row in connection.execute(_STATES, {"uuids": some})
    }
    kept = _attempts_kept(connection, given)
    found = {}
    for each in given:
        row = rows.get(each.instance)
        ends_here = row is not None and row.state == DELETING and row.host == each.host
        # One that is gone has lost its ports.
        released: PortsReleased = "host" if row is None else _released(row.state, row.shelf is not None)
        found[each] = Destruction(each.instance in deleted or ends_here, released, kept.get(each))
    return found


def _released(state: str, is_shelved: bool) -> PortsReleased:
    """Return the ports that an instance loses. One that is being built has its next attempt bind them."""
    if is_shelved and state not in (DELETING, DESTROYED):
        return "unbound"
    return "all" if state in _ENDING else "host" if state in _BUILT else "none"


def _attempts_kept(connection: Connection, given: tuple[DestroyOrder, ...]) -> dict[DestroyOrder, int]:
    """Return the attempts on the same hosts that orders leave alone; orders without one are left out."""
    found = {}
    for row in (
        row
        for some in in_batches({each.instance for each in given})
        for query in (_KEPT_BY_INSTANCES, _KEPT_BY_MOVES)
        for row in connection.execute(query, {"uuids": some})
    ):
        for each in given:
            if (each.instance, each.host) == (row[0], row[1]) and each.attempt != row[2]:
                found[each] = row[2]
    return found


_STATES = sa.select(instances.c.uuid, instances.c.state, instances.c.shelf, instances.c.host).where(
    one_of(instances.c.uuid, "uuids")
)
_KEPT_BY_INSTANCES = sa.select(instances.c.uuid, instances.c.host, instances.c.attempt).where(
    one_of(instances.c.uuid, "uuids"), instances.c.state.not_in((DELETING, ERROR))
)
_KEPT_BY_MOVES = sa.select(moves.c.instance_uuid, moves.c.source_host, moves.c.source_attempt).where(
    one_of(moves.c.instance_uuid, "uuids"),
    # The host of the instance may have been tried before another one.
    moves.c.in_place.is_(sa.true()),
    one_of_constants(moves.c.state, SOURCE_KEPT),
)
_BUILT = (ASSIGNED, STARTING, FAILED)
_ENDING = (ABANDONED, ERROR, DELETING, DESTROYED)
