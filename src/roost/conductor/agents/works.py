"""What an endpoint does for agents in its cell's database, each as the statements of one transaction."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agents.types import Position, SessionKey
from roost.cells.arriving import INSTANCES
from roost.cells.building import AttemptKey, ConfirmAttempt, ReportResults, state_after
from roost.cells.cell_work import CellWork
from roost.cells.ending import Destroyed
from roost.cells.guests import Compared, GuestsReported
from roost.cells.held_hosts import ReleaseHosts
from roost.cells.host_tokens import IssueToken
from roost.cells.node_reports import KeepReports
from roost.cells.orders import FOR_HOSTS, HostWork, WorkOfHosts, read_orders
from roost.cells.rows import instance_of
from roost.cells.tables import instances, leases, nodes, orders
from roost.cells.watching import SESSION, session_name
from roost.leases import VACANT, AcquireLease, Lease, read_lease, read_leases, read_stamps
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

    ``previous``: nonces that the same agent drew before. ``at``: seconds since the epoch. ``is_held``: the
    agent carries out no orders; otherwise the host waits for no operator any more.
    """

    host: str
    nonce: str
    previous: tuple[str, ...]
    service_version: int
    at: float
    is_held: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The host."""
        return (self.host,)

    def __call__(self, connection: Connection) -> SessionOpened | None:
        return self.together(connection, [self])[0]

    @classmethod
    def together(cls, connection: Connection, works: Sequence["OpenSession"]) -> list[SessionOpened | None]:
        """Open several sessions: see `roost.storage.batches`. After an outage all hosts of a cell come."""
        present = read_leases(connection, [session_name(work.host) for work in works], lock=True)
        acquired = AcquireLease.together(connection, [work._acquiring(present) for work in works])
        opened = {work.host: lease for work, lease in zip(works, acquired, strict=True) if lease is not None}
        ReleaseHosts([work.host for work in works if work.host in opened and not work.is_held])(connection)
        identity = read_identity(connection)
        expected: defaultdict[str, list[Instance]] = defaultdict(list)
        given: defaultdict[str, list[DestroyOrder]] = defaultdict(list)
        for some in in_batches(opened):
            for row in connection.execute(_EXPECTED, {"hosts": some}):
                expected[row.host].append(instance_of(row))
        for order in read_orders(connection, opened):
            given[order.host].append(order)
        results: list[SessionOpened | None] = []
        for work in works:
            there = present.get(session_name(work.host))
            before = Position(identity.uuid, identity.incarnation)
            if there is not None:
                before = Position(identity.uuid, identity.incarnation, there.epoch, there.counter)
            results.append(
                None
                if work.host not in opened
                else SessionOpened(
                    opened[work.host].epoch, before, tuple(expected[work.host]), tuple(given[work.host])
                )
            )
        return results

    def _acquiring(self, present: Mapping[str, Lease]) -> AcquireLease:
        there = present.get(session_name(self.host))
        return AcquireLease(
            name=session_name(self.host),
            kind=SESSION,
            holder=self.nonce,
            host=self.host,
            service_version=self.service_version,
            now=self.at,
            seen=there if there is not None and there.holder in self.previous else None,
        )


_EXPECTED = INSTANCES.where(
    instances.c.host.in_(sa.bindparam("hosts", expanding=True)), instances.c.state.in_(sorted(ON_ITS_HOST))
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

    @property
    def keys(self) -> Collection[str]:
        return (self.session.host,)

    def __call__(self, connection: Connection) -> PollStored | SessionGone | PollLate:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(
        cls, connection: Connection, works: "Sequence[StorePoll]"
    ) -> list[PollStored | SessionGone | PollLate]:
        names = [session_name(work.session.host) for work in works]
        stamps = read_stamps(connection, names, lock=True)
        before = [work.judged(stamps.get(name)) for work, name in zip(works, names, strict=True)]
        current = [work for work, judged in zip(works, before, strict=True) if isinstance(judged, int)]
        stored = iter(_store(connection, current) if current else ())
        return [
            msgspec.structs.replace(next(stored), before=judged) if isinstance(judged, int) else judged
            for judged in before
        ]

    def judged(self, stamp: tuple[str, int, int] | None) -> int | SessionGone | PollLate:
        """The counter of the session before this poll, if it is the agent's and the poll is not late."""
        if stamp is None or stamp[:2] != (self.session.nonce, self.session.epoch):
            return SessionGone()
        return PollLate() if stamp[2] >= self.counter else stamp[2]


def _store(connection: Connection, polls: Sequence[StorePoll]) -> list[PollStored]:
    """Store polls whose leases are locked."""
    counted = [{"of_name": session_name(p.session.host), "new_counter": p.counter} for p in polls]
    connection.execute(_COUNT, counted)
    at = max(poll.at for poll in polls)
    ended: list[list[Attempt]] = [[] for _ in polls]
    if any(poll.results for poll in polls):
        reports = [ReportResults(poll.results, poll.at, poll.cell) for poll in polls]
        ended = ReportResults.together(connection, reports)
    if destroyed := tuple(each for poll in polls for each in poll.destroyed):
        Destroyed(destroyed, at)(connection)
    refused = _of_others(connection, polls)
    kept = tuple(
        each
        for poll, others in zip(polls, refused, strict=True)
        for each in poll.reports
        if each.node not in others
    )
    if kept:
        # Milliseconds are unlike any number that the node has had before.
        KeepReports(kept, first=max(int(at * 1000), 1))(connection)
    looked = [poll.session.host for poll in polls if poll.reports or poll.is_sign]
    reported = {
        host
        for some in in_batches(looked)
        for host in connection.execute(_REPORTED, {"hosts": some}).scalars()
    }
    told = [
        GuestsReported(poll.session.host, poll.guests, poll.at) for poll in polls if poll.guests is not None
    ]
    compared = dict(
        zip([each.host for each in told], GuestsReported.together(connection, told), strict=True)
        if told
        else ()
    )
    wanting = tuple(poll.session.host for poll in polls if poll.wants_orders)
    work = WorkOfHosts(wanting)(connection).by_host()
    return [
        PollStored(
            before=0,
            work=work.get(poll.session.host) or HostWork([], []),
            ended=of_it,
            compared=compared.get(poll.session.host),
            is_reported=poll.session.host in reported if poll.reports or poll.is_sign else None,
            refused=others,
        )
        for poll, of_it, others in zip(polls, ended, refused, strict=True)
    ]


def _of_others(connection: Connection, polls: Sequence[StorePoll]) -> list[frozenset[str]]:
    """The nodes of the reports of each poll that are another host's."""
    named = [report.node for poll in polls for report in poll.reports]
    hosts = {
        node: host
        for some in in_batches(named)
        for node, host in connection.execute(_HOSTS_OF, {"nodes": some})
    }
    return [
        frozenset(
            report.node
            for report in poll.reports
            # Of two hosts that report a new node at the same time the first one has it.
            if hosts.setdefault(report.node, poll.session.host) != poll.session.host
        )
        for poll in polls
    ]


_COUNT = (
    sa.update(leases)
    .where(leases.c.name == sa.bindparam("of_name"))
    .values(counter=sa.bindparam("new_counter"))
)
_REPORTED = sa.select(nodes.c.host).where(nodes.c.host.in_(sa.bindparam("hosts", expanding=True))).distinct()
_HOSTS_OF = sa.select(nodes.c.node, nodes.c.host).where(
    nodes.c.node.in_(sa.bindparam("nodes", expanding=True))
)


class ConfirmBuild(msgspec.Struct, frozen=True):
    """Whether a host is to start what it has prepared; None if the session is not the agent's any more."""

    session: SessionKey
    key: AttemptKey
    at: float

    @property
    def keys(self) -> Collection[str]:
        return (self.key.instance,)

    def __call__(self, connection: Connection) -> bool | None:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[ConfirmBuild]") -> list[bool | None]:
        names = [session_name(work.session.host) for work in works]
        stamps = read_stamps(connection, names, lock=True)
        holds = [
            stamps.get(name, ("", 0, 0))[:2] == (work.session.nonce, work.session.epoch)
            for work, name in zip(works, names, strict=True)
        ]
        asked = [
            ConfirmAttempt(work.key, work.session.host, work.at)
            for work, held in zip(works, holds, strict=True)
            if held
        ]
        wanted = iter(ConfirmAttempt.together(connection, asked) if asked else ())
        return [next(wanted) if held else None for held in holds]


class ReadIdentity(msgspec.Struct, frozen=True):
    """The identity of the cell's database."""

    def __call__(self, connection: Connection) -> DatabaseIdentity:
        return read_identity(connection)


class ReachesRoot(msgspec.Struct, frozen=True):
    """Whether a root provider is a node of a session's host; None if the cell knows no such node."""

    session: SessionKey
    root: str

    def __call__(self, connection: Connection) -> bool | SessionGone | None:
        if _held(connection, self.session) is None:
            return SessionGone()
        host = connection.execute(_HOSTS_OF, {"nodes": [self.root]}).first()
        return None if host is None else host[1] == self.session.host


class RenewHostToken(msgspec.Struct, frozen=True):
    """Make a new token of a session's host valid. Answers False if the session is not the agent's."""

    session: SessionKey
    digest: str
    at: float

    def __call__(self, connection: Connection) -> bool:
        if _held(connection, self.session, lock=True) is None:
            return False
        IssueToken(host=self.session.host, digest=self.digest, at=self.at)(connection)
        return True


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


def _held(connection: Connection, session: SessionKey, *, lock: bool = False) -> Lease | None:
    """The lease of a session; None if the session is not the agent's any more."""
    lease = read_lease(connection, session_name(session.host), lock=lock)
    mine = lease is not None and (lease.holder, lease.epoch) == (session.nonce, session.epoch)
    return lease if mine else None
