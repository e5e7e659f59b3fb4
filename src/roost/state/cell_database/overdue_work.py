"""Reads of unfinished work in a cell, for observers that measure its time by clocks of their own."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, DELETING
from roost.state.cell_database.building import AttemptKey
from roost.state.cell_database.tables import held_hosts, instances
from roost.state.leases import read_stamps
from roost.storage import transaction

SESSION = "host"
"""The kind of the leases that are the sessions of hosts. The lease of a host is named ``host/NAME``."""

Stamp = tuple[object, ...]
"""A value that changes as long as work makes progress."""


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
