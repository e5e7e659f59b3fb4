"""What an endpoint does for agents in its cell's database, each as the statements of one transaction."""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agents.types import Position, SessionKey
from roost.cells.arriving import INSTANCES
from roost.cells.building import AttemptKey, ConfirmAttempt, ReportResults, state_after
from roost.cells.cell_work import CellWork
from roost.cells.ending import Destroyed
from roost.cells.guests import Compared, GuestsReported
from roost.cells.node_reports import KeepReports
from roost.cells.orders import FOR_HOSTS, HostWork, WorkOfHosts
from roost.cells.rows import instance_of
from roost.cells.tables import instances, leases, nodes, orders
from roost.cells.watching import SESSION, session_name
from roost.leases import VACANT, AcquireLease, Lease, read_lease
from roost.model.instance import (
    DELETING,
    DESTROYED,
    ON_ITS_HOST,
    BuildResult,
    DestroyOrder,
    Instance,
)
from roost.model.node import NodeReport
from roost.model.record import Attempt
from roost.storage import DatabaseIdentity, in_batches, read_identity


class SessionOpened(msgspec.Struct, frozen=True):
    """A session that was opened: its epoch, the position before it, and what the cell says is on the host."""

    epoch: int
    before: Position
    expected: tuple[Instance, ...]
    orders: tuple[DestroyOrder, ...]


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """Open the session of a host; None while another agent has it.

    ``previous``: nonces that the same agent drew before. ``at``: seconds since the epoch.
    """

    host: str
    nonce: str
    previous: tuple[str, ...]
    service_version: int
    at: float

    def __call__(self, connection: Connection) -> SessionOpened | None:
        name = session_name(self.host)
        there = read_lease(connection, name)
        mine = there is not None and there.holder in self.previous
        lease = AcquireLease(
            name=name,
            kind=SESSION,
            holder=self.nonce,
            host=self.host,
            service_version=self.service_version,
            now=self.at,
            seen=there if mine else None,
        )(connection)
        if lease is None:
            return None
        identity = read_identity(connection)
        before = Position(identity.uuid, identity.incarnation)
        if there is not None:
            before = Position(identity.uuid, identity.incarnation, there.epoch, there.counter)
        query = INSTANCES.where(instances.c.host == self.host, instances.c.state.in_(ON_ITS_HOST))
        return SessionOpened(
            lease.epoch,
            before,
            tuple(instance_of(row) for row in connection.execute(query)),
            tuple(WorkOfHosts((self.host,))(connection).orders),
        )


class PollStored(msgspec.Struct, frozen=True):
    """What came of a poll.

    ``before``: the counter before it. ``ended``: the ends of attempts for the records. ``is_reported``: there
    is a report of the host; None if that was not looked at. ``refused``: nodes of reports that are another
    host's. ``is_counted``: the counter is that of this poll now.
    """

    before: int
    work: HostWork
    ended: list[Attempt] = []
    compared: Compared | None = None
    is_reported: bool | None = None
    refused: frozenset[str] = frozenset()
    is_counted: bool = True


class SessionGone(msgspec.Struct, frozen=True):
    """The session is not the agent's any more."""


class PollLate(msgspec.Struct, frozen=True):
    """A later poll of the session has arrived before."""


class StorePoll(CellWork, frozen=True, kw_only=True):
    """Store what a poll brings, if the session is the agent's and no later poll has arrived.

    ``wants_orders``: what the host has to do is read. ``is_sign``: look whether there is a
    report of the host.
    """

    session: SessionKey
    counter: int
    results: tuple[BuildResult, ...]
    destroyed: tuple[DestroyOrder, ...]
    reports: tuple[NodeReport, ...]
    guests: Mapping[str, int] | None
    at: float
    cell: str
    wants_orders: bool = True
    is_sign: bool = True

    @property
    def enters(self) -> Collection[str]:
        entered = {state_after(result) for result in self.results}
        return entered | {DESTROYED} if self.destroyed else entered

    def __call__(self, connection: Connection) -> PollStored | SessionGone | PollLate:
        host = self.session.host
        lease = _held(connection, self.session, lock=True)
        if lease is None:
            return SessionGone()
        if lease.counter >= self.counter:
            return PollLate()
        connection.execute(_COUNT, {"of_name": lease.name, "new_counter": self.counter})
        ended = ReportResults(self.results, self.at, self.cell)(connection) if self.results else []
        Destroyed(self.destroyed, self.at)(connection)
        is_reported, refused = None, frozenset[str]()
        if self.reports:
            refused = self._of_others(connection)
            KeepReports(tuple(each for each in self.reports if each.node not in refused))(connection)
        if self.reports or self.is_sign:
            is_reported = connection.execute(_REPORTED, {"of_host": host}).first() is not None
        compared = None if self.guests is None else GuestsReported(host, self.guests, self.at)(connection)
        work = WorkOfHosts((host,))(connection) if self.wants_orders else HostWork([], [])
        return PollStored(lease.counter, work, ended, compared, is_reported, refused)

    def _of_others(self, connection: Connection) -> frozenset[str]:
        """The nodes of the reports that are another host's."""
        if not self.reports:
            return frozenset()
        named = nodes.c.node.in_([each.node for each in self.reports])
        query = sa.select(nodes.c.node).where(named, nodes.c.host != self.session.host)
        return frozenset(connection.execute(query).scalars())


_COUNT = (
    sa.update(leases)
    .where(leases.c.name == sa.bindparam("of_name"))
    .values(counter=sa.bindparam("new_counter"))
)
_REPORTED = sa.select(nodes.c.node).where(nodes.c.host == sa.bindparam("of_host")).limit(1)


class ConfirmBuild(msgspec.Struct, frozen=True):
    """Whether a host is to start what it has prepared; None if the session is not the agent's any more."""

    session: SessionKey
    key: AttemptKey
    at: float

    def __call__(self, connection: Connection) -> bool | None:
        if _held(connection, self.session, lock=True) is None:
            return None
        return ConfirmAttempt(self.key, self.session.host, self.at)(connection)


class ReadIdentity(msgspec.Struct, frozen=True):
    """The identity of the cell's database."""

    def __call__(self, connection: Connection) -> DatabaseIdentity:
        return read_identity(connection)


class HoldsSession(msgspec.Struct, frozen=True):
    """Whether a session is the agent's."""

    session: SessionKey

    def __call__(self, connection: Connection) -> bool:
        return _held(connection, self.session) is not None


class ReachesRoot(msgspec.Struct, frozen=True):
    """Whether a root provider is a node of a session's host; None if the cell knows no such node."""

    session: SessionKey
    root: str

    def __call__(self, connection: Connection) -> bool | None:
        host = connection.execute(sa.select(nodes.c.host).where(nodes.c.node == self.root)).scalar()
        return None if host is None else host == self.session.host


class FreeSessions(msgspec.Struct, frozen=True):
    """Take the sessions of all hosts from their agents, which the caller knows to be gone."""

    def __call__(self, connection: Connection) -> None:
        connection.execute(sa.update(leases).where(leases.c.kind == SESSION).values(holder=VACANT))


class CloseSession(msgspec.Struct, frozen=True):
    """Give a session back. Its row stays: the next session continues its epochs."""

    session: SessionKey

    def __call__(self, connection: Connection) -> None:
        mine = (
            leases.c.name == session_name(self.session.host),
            leases.c.holder == self.session.nonce,
            leases.c.epoch == self.session.epoch,
        )
        connection.execute(sa.update(leases).where(*mine).values(holder=VACANT))


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
        for order in connection.execute(sa.select(orders)):
            key = (True, order.instance_uuid, order.attempt)
            if order.host in self.known and key not in self.known[order.host]:
                given = DestroyOrder(order.instance_uuid, order.attempt, order.host)
                found.setdefault(order.host, HostWork([], [])).orders.append(given)
        return found

    def _instances(self, connection: Connection) -> list[tuple[str, Instance]]:
        columns = (instances.c.uuid, instances.c.attempt, instances.c.host, instances.c.state)
        keys = sa.select(*columns).where(instances.c.state.in_(FOR_HOSTS))
        new = [
            row.uuid
            for row in connection.execute(keys)
            if row.host in self.known
            and (row.state == DELETING, row.uuid, row.attempt) not in self.known[row.host]
        ]
        found = []
        for some in in_batches(new):
            for row in connection.execute(INSTANCES.where(instances.c.uuid.in_(some))):
                found.append((row.host, instance_of(row)))
        return found


def _held(connection: Connection, session: SessionKey, *, lock: bool = False) -> Lease | None:
    """The lease of a session; None if the session is not the agent's any more."""
    lease = read_lease(connection, session_name(session.host), lock=lock)
    mine = lease is not None and (lease.holder, lease.epoch) == (session.nonce, session.epoch)
    return lease if mine else None
