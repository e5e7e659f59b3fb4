"""The hosts whose agents carry out no orders until an operator has accepted the state of the cell."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.text import clean_text
from roost.state.cell_database.tables import held_hosts
from roost.storage import in_batches, insert_missing, one_of, transaction


class HeldHost(msgspec.Struct, frozen=True):
    """A host whose agent carries out no orders.

    ``at``: since when, in seconds since the epoch. ``accepted``: an operator has accepted the cell's state;
    the agent learns of it with the answer to its next poll.
    """

    host: str
    reason: str
    at: float
    accepted: bool = False


@transaction
def hold_host(connection: Connection, host: str, reason: str, at: float) -> bool:
    """Note that the agent of a host carries out no orders. Returns whether an operator has accepted that."""
    mine = held_hosts.c.host == host
    reason = clean_text(reason)
    there = connection.execute(sa.select(held_hosts).where(mine).with_for_update()).one_or_none()
    if there is None:
        row = HeldHost(host, reason, at)
        insert_missing(connection, sa.insert(held_hosts), msgspec.structs.asdict(row))
        return False
    if there.reason != reason:
        # An operator has accepted another reason, not this one.
        values = {"reason": reason, "at": at, "accepted": False}
        connection.execute(sa.update(held_hosts).where(mine).values(values))
        return False
    return bool(there.accepted)


@transaction
def release_hosts(connection: Connection, hosts: list[str]) -> None:
    """Note that the agents of hosts carry out orders again."""
    for some in in_batches(hosts):
        connection.execute(_RELEASE, {"hosts": some})


_RELEASE = sa.delete(held_hosts).where(one_of(held_hosts.c.host, "hosts"))


@transaction
def accept_held_host(connection: Connection, host: str) -> bool:
    """Accept the state of the cell for a host, as an operator. Returns False if its agent does not wait."""
    mine = held_hosts.c.host == host
    return bool(connection.execute(sa.update(held_hosts).where(mine).values(accepted=True)).rowcount)


@transaction
def read_held_hosts(connection: Connection) -> dict[str, HeldHost]:
    """Return all hosts whose agents carry out no orders, by name."""
    rows = connection.execute(sa.select(held_hosts).order_by(held_hosts.c.host))
    return {row.host: HeldHost(**row._asdict()) for row in rows}
