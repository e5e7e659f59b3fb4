"""A cell that a test drives in place of agents and conductors."""

import time
from collections.abc import Callable, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import AttemptKey, DestroyOrder, Instance
from roost.model.node import NodeReport
from roost.model.record import RecordSink
from roost.model.service_version import SERVICE_VERSION
from roost.model.spec import Selection
from roost.model.text import is_storable
from roost.state.cell_database import Cell
from roost.state.cell_database.building import fail_attempts
from roost.state.cell_database.conductor_work import abandon_instance, put_in_error, reassign_instance
from roost.state.cell_database.deletions import forget_destroyed, note_destroyed
from roost.state.cell_database.host_work import SESSION, session_name
from roost.state.cell_database.nodes import keep_reports
from roost.state.cell_database.reported import MAX_HOST
from roost.state.cell_database.tables import leases
from roost.storage import Database, in_batches

IN_PROCESS = "in process"
"""The holder of the sessions of hosts whose agents are in the process of the cell."""


class DrivenCell(Cell):
    """What conductors and agents do in a cell, each as one call."""

    def __init__(
        self,
        name: str,
        database: Database,
        clock: Callable[[], float] = time.time,
        records: RecordSink | None = None,
    ) -> None:
        super().__init__(name, database, clock, records)
        self.now = clock

    async def fail(self, keys: Sequence[AttemptKey], reason: str) -> None:
        """End attempts that no host has confirmed."""
        await self.write(fail_attempts(tuple(keys), reason, self.now(), self.name))

    async def reassign(
        self, uuid: str, attempt: int, selection: Selection, alternates: Sequence[Selection]
    ) -> None:
        """Give an instance whose attempt failed to another host, if it is still wanted.

        A later attempt is left alone: somebody else has moved the instance meanwhile.
        """
        await self.write(
            reassign_instance(
                key=AttemptKey(uuid, attempt),
                selection=selection,
                alternates=tuple(alternates),
                at=self.now(),
            )
        )

    async def abandon(self, uuid: str, attempt: int, reason: str) -> None:
        """Make no further attempt for an instance whose attempt failed, if it is still wanted."""
        await self.write(abandon_instance(key=AttemptKey(uuid, attempt), reason=reason, at=self.now()))

    async def give_up(self, uuids: Sequence[str]) -> None:
        """Put abandoned instances in error, their claims having been freed."""
        await self.write(put_in_error(tuple(uuids), self.now()))

    async def destroyed(self, done: Sequence[Instance]) -> None:
        """Agents have destroyed these instances."""
        orders = tuple(DestroyOrder(each.uuid, each.attempt, each.host) for each in done if each.host)
        await self.write(note_destroyed(orders, self.now()))

    async def forget(self, uuids: Sequence[str]) -> None:
        """Remove destroyed instances, their claims having been freed."""
        await self.write(forget_destroyed(tuple(uuids), self.now()))

    async def heartbeat(self, reports: Sequence[NodeReport]) -> None:
        """Keep what agents in this process report of their nodes; their hosts are alive.

        A node with the names of another one (host and nodename) replaces it.
        """
        await self.write(keep_reports(tuple(reports)))
        await self.write(BeatHosts(tuple({each.host for each in reports}), self.now()))


class BeatHosts(msgspec.Struct, frozen=True):
    """Hosts whose agents are in this process are alive. ``at``: seconds since the epoch."""

    hosts: tuple[str, ...]
    at: float

    def __call__(self, connection: Connection) -> None:
        there: dict[str, str] = {}
        names = {session_name(host): host for host in self.hosts if is_storable(host, MAX_HOST)}
        for some in in_batches(names):
            found = sa.select(leases.c.name, leases.c.holder).where(leases.c.name.in_(some))
            there.update((row.name, row.holder) for row in connection.execute(found))
        new = [
            {
                "name": name,
                "kind": SESSION,
                "holder": IN_PROCESS,
                "epoch": 1,
                "counter": 0,
                "host": host,
                "service_version": SERVICE_VERSION,
                "since": self.at,
            }
            for name, host in names.items()
            if name not in there
        ]
        if new:
            connection.execute(sa.insert(leases), new)
        if there:
            rows = [{"key": name, "by": holder or IN_PROCESS} for name, holder in there.items()]
            connection.execute(_BEAT, rows)


_BEAT = (
    sa.update(leases)
    .where(leases.c.name == sa.bindparam("key"))
    .values(counter=leases.c.counter + 1, holder=sa.bindparam("by"))
)
