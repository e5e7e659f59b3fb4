"""The sessions of hosts' agents in a cell's database: opened, kept by one agent each, given back."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.errors import CellTakenBack, SessionLost
from roost.agent.protocol.types import HistoryPosition, SessionKey
from roost.model.fence import Fence
from roost.model.instance import ACTIVE, ASSIGNED, ON_ITS_HOST, DestroyOrder, Instance
from roost.state.cell_database.host_admission import forget_refused, hold_host, release_hosts
from roost.state.cell_database.host_fences import ToldFence, keep_fences
from roost.state.cell_database.host_work import SESSION, read_orders, session_name
from roost.state.cell_database.move_orders import guests_of_moves
from roost.state.cell_database.move_rows import resting
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances, leases
from roost.state.leases import VACANT, AcquireLease, Lease, acquire, read_leases, read_stamps
from roost.storage import in_batches, one_of, one_of_constants, read_identity, transaction


class SessionGone(msgspec.Struct, frozen=True):
    """The agent does not hold the session any more."""


class TakenBack(msgspec.Struct, frozen=True):
    """A poll that the session had counted is missing: the database was restored to an earlier state."""


def judged(counter: int | None, counted: int) -> int | SessionGone | TakenBack:
    """Return the counter of a message's session, or why the message is refused.

    ``counter``: as of `counters_of`. ``counted``: the last poll that the agent knows to be counted.
    """
    if counter is None:
        return SessionGone()
    return TakenBack() if counter < counted else counter


def refusal_of(
    session: SessionKey,
    why: SessionGone | TakenBack = SessionGone(),  # noqa: B008 - it is frozen
) -> SessionLost | CellTakenBack:
    """Return the error of a message that is refused because of its session."""
    of_it = f"session {session.epoch} of host {session.host}"
    if isinstance(why, SessionGone):
        return SessionLost(f"the {of_it} is another agent's or unknown")
    return CellTakenBack(
        f"the cell's database knows less of {of_it} than its agent: it was taken back to an earlier state"
    )


def counters_of(
    connection: Connection, sessions: Sequence[SessionKey], *, lock: bool = False
) -> list[int | None]:
    """Return the counter of each session; None if the agent does not hold it any more.

    ``lock``: the agents keep their sessions until the transaction ends.
    """
    names = [session_name(session.host) for session in sessions]
    stamps = read_stamps(connection, names, lock=lock)
    return [
        stamp[2] if stamp is not None and stamp[:2] == (session.nonce, session.epoch) else None
        for session, stamp in zip(sessions, map(stamps.get, names), strict=True)
    ]


class SessionOpened(msgspec.Struct, frozen=True):
    """An opened session: its epoch, the position before it, instances and orders of the host in the cell."""

    epoch: int
    before: HistoryPosition
    expected: tuple[Instance, ...]
    orders: tuple[DestroyOrder, ...]


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """Open the session of a host; None while another agent has it.

    ``previous``: nonces that the same agent drew before. ``at``: seconds since the epoch. ``is_held``: the
    agent carries out no orders; if it does, the host does not wait for an operator any more. ``fence``: the
    agent's; None: it has none.
    """

    host: str
    nonce: str
    previous: tuple[str, ...]
    service_version: int
    at: float
    is_held: bool = False
    fence: Fence | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the host."""
        return (self.host,)

    def __call__(self, connection: Connection) -> SessionOpened | None:
        return self.together(connection, [self])[0]

    @classmethod
    def together(cls, connection: Connection, works: Sequence["OpenSession"]) -> list[SessionOpened | None]:
        """Open several sessions, as after an outage of all hosts: see `roost.storage.batches`."""
        present = read_leases(connection, [session_name(work.host) for work in works], lock=True)
        acquired = acquire(connection, [work._acquiring(present) for work in works], present)
        opened = {work.host: lease for work, lease in zip(works, acquired, strict=True) if lease is not None}
        release_hosts([work.host for work in works if work.host in opened and not work.is_held])(connection)
        forget_refused(connection, opened)
        told = {
            work.host: ToldFence(opened[work.host].epoch, work.fence) for work in works if work.host in opened
        }
        keep_fences(connection, told)
        identity = read_identity(connection)
        expected: defaultdict[str, list[Instance]] = defaultdict(list)
        given: defaultdict[str, list[DestroyOrder]] = defaultdict(list)
        for some in in_batches(opened):
            rows = connection.execute(_EXPECTED, {"hosts": some}).all()
            stopped = resting(connection, [row.move for row in rows if row.move])
            for row in rows:
                guest = instance_of(row)
                if row.state == ACTIVE and row.move in stopped:
                    # An agent takes none for a guest that runs but those that are ``active``.
                    guest = msgspec.structs.replace(guest, state=ASSIGNED)
                expected[row.host].append(guest)
            for host, instance in guests_of_moves(connection, some):
                expected[host].append(instance)
        for order in read_orders(connection, opened):
            given[order.host].append(order)
        results: list[SessionOpened | None] = []
        for work in works:
            there = present.get(session_name(work.host))
            before = HistoryPosition(identity.uuid, identity.incarnation)
            if there is not None:
                before = HistoryPosition(identity.uuid, identity.incarnation, there.epoch, there.counter)
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
    one_of(instances.c.host, "hosts"), one_of_constants(instances.c.state, ON_ITS_HOST)
)


@transaction
def hold_session(connection: Connection, session: SessionKey, reason: str, at: float) -> bool | None:
    """Note that the agent of a session carries out no orders.

    Returns whether an operator has accepted that; None if the agent does not hold the session any more: a
    later agent may carry out orders.
    """
    if counters_of(connection, [session], lock=True) == [None]:
        return None
    return hold_host(session.host, reason, at)(connection)


@transaction
def free_all_sessions(connection: Connection) -> None:
    """Take the sessions of all hosts from their agents, which are gone as the caller knows."""
    connection.execute(sa.update(leases).where(leases.c.kind == SESSION).values(holder=VACANT))


@transaction
def close_session(connection: Connection, session: SessionKey) -> None:
    """Give a session back. Its row stays: the next session continues its epochs."""
    mine = (
        leases.c.name == session_name(session.host),
        leases.c.holder == session.nonce,
        leases.c.epoch == session.epoch,
    )
    connection.execute(sa.update(leases).where(*mine).values(holder=VACANT))
