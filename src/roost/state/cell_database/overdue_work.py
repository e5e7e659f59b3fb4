"""What takes too long, as far as a cell's database tells: for observers with a clock of their own."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, DELETING
from roost.state.cell_database.building import AttemptKey
from roost.state.cell_database.tables import held_hosts, instances
from roost.state.leases import read_stamps

SESSION = "host"
"""The kind of the leases that are the sessions of hosts. The lease of a host is named ``host/NAME``."""

Stamp = tuple[object, ...]
"""What changes as long as something goes on."""


def session_name(host: str) -> str:
    """The name of the lease that is the session of a host."""
    return f"{SESSION}/{host}"


class AttemptsAssigned(msgspec.Struct, frozen=True):
    """The attempts that no host has confirmed yet.

    An attempt on a host that is held is left out. The agent carries out no orders because the database was
    taken back, say, and then it may have confirmed the attempt in the state that was lost.
    """

    def __call__(self, connection: Connection) -> dict[AttemptKey, Stamp]:
        return {AttemptKey(row.uuid, row.attempt): () for row in connection.execute(_ASSIGNED)}


_HELD = sa.select(held_hosts.c.host).where(held_hosts.c.accepted.is_(False))
_ASSIGNED = sa.select(instances.c.uuid, instances.c.attempt).where(
    instances.c.state == ASSIGNED, instances.c.host.not_in(_HELD)
)


class DeletionsAwaited(msgspec.Struct, frozen=True):
    """The attempts whose hosts are to destroy them, each with the stamp of the session of its host."""

    def __call__(self, connection: Connection) -> dict[AttemptKey, Stamp]:
        query = sa.select(instances.c.uuid, instances.c.attempt, instances.c.host).where(
            instances.c.state == DELETING
        )
        found = connection.execute(query).all()
        stamps = read_stamps(connection, {session_name(row.host or "") for row in found})
        return {
            AttemptKey(row.uuid, row.attempt): stamps.get(session_name(row.host or ""), ()) for row in found
        }
