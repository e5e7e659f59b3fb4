"""The fences of hosts' agents, as a cell knows them.

What an agent tells belongs to the session in which it tells it. A session that is closed in order keeps its
epoch, and one that was seen to stand still loses its holder and gets the next one. So it is known of a host
that is silent whether its agent was stopped in order; and a process of an earlier version that opens or
closes a session ends the fence without knowing it.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.fence import Fence
from roost.state.cell_database.tables import host_fences
from roost.state.leases import Lease
from roost.storage import in_batches, insert_missing, one_of


class ToldFence(msgspec.Struct, frozen=True):
    """The fence that an agent has told when it opened its session; None: it has none.

    ``epoch``: of the session.
    """

    epoch: int
    fence: Fence | None

    def is_of(self, session: Lease) -> bool:
        """Return whether the session of the host is still the one that was opened then, and held."""
        return not session.vacant and session.epoch == self.epoch

    def was_cut_off(self, session: Lease) -> bool:
        """Return whether the agent fell silent: its session was taken from it, and no other followed."""
        return session.vacant and session.epoch == self.epoch + 1


def keep_fences(connection: Connection, told: Mapping[str, ToldFence]) -> None:
    """Store what the agents of hosts have told."""
    for some in in_batches(told):
        connection.execute(_FORGET, {"hosts": some})
    rows = [
        {
            "host": host,
            "epoch": each.epoch,
            "seconds": None if each.fence is None else each.fence.seconds,
            "stop_seconds": None if each.fence is None else each.fence.stop_seconds,
            "guarded": None if each.fence is None else each.fence.guarded,
        }
        for host, each in sorted(told.items())
    ]
    if rows:
        insert_missing(connection, sa.insert(host_fences), rows)


def read_fences(connection: Connection, hosts: Collection[str]) -> dict[str, ToldFence]:
    """Return what the agents of some hosts have told."""
    return {
        row.host: ToldFence(
            row.epoch,
            None if row.seconds is None else Fence(row.seconds, row.stop_seconds, bool(row.guarded)),
        )
        for some in in_batches(hosts)
        for row in connection.execute(_NAMED, {"hosts": some})
    }


_FORGET = sa.delete(host_fences).where(one_of(host_fences.c.host, "hosts"))
_NAMED = sa.select(host_fences).where(one_of(host_fences.c.host, "hosts"))
