"""Hosts that are silent and may be evacuated by themselves: the proof that they are dead, or why not.

    unproved ─▶ fencing ─▶ dead        a command powers the machine off
    unproved ─▶ dead                   the fence of its agent has stopped the guests

A row names the session that the host had when it was written. It counts as long as nobody has opened that
session again; one that does not count is removed. A conductor that begins a command writes it down before, so
that another one does not begin it too; one that stands still is followed by another, which has seen the
row stand still.

At most `share` of a cell's hosts are taken for dead at once: those whose command is under way, and those
whose instances have still to leave. Each transaction that lets one more be holds the limits of moves.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.departure import Departure
from roost.model.instance import (
    ASSIGNED,
    IN_PLACE,
    LOST,
    POWERING_OFF,
    POWERING_ON,
    REBUILDS,
    SHELVING,
    STARTING,
)
from roost.model.move import ARRIVING, BY_OPERATOR, LEAVING, DeathProof, MoveRefused, ProofKind, SessionStamp
from roost.model.move_states import (
    ENDED,
    LIMITED,
    REQUESTED,
    SEEKING,
    SENDING,
    WAITS_FOR_SOURCE,
    WAITS_FOR_TARGET,
)
from roost.model.text import clean_text
from roost.state.cell_database.host_fences import ToldFence, read_fences
from roost.state.cell_database.host_work import SESSION, session_name
from roost.state.cell_database.move_changes import stamp_of
from roost.state.cell_database.move_limits import EVACUATION, hold_limits
from roost.state.cell_database.tables import instances, leases, moves, silent_hosts
from roost.state.leases import VACANT, Lease, read_stamps
from roost.storage import in_batches, one_of, one_of_constants, short_read, transaction

UNPROVED: Final = "unproved"
"""Nothing proves that no guest runs there."""
FENCING: Final = "fencing"
"""A command that powers its machine off is under way."""
DEAD: Final = "dead"
"""No guest runs there: its instances are evacuated."""

EVACUABLE: Final = (*IN_PLACE, LOST, POWERING_OFF, POWERING_ON, *REBUILDS, SHELVING)
"""States of instances that go on by the proof that their host is dead: evacuated, or shelved."""


class SilentHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is silent.

    ``epoch`` and ``counter``: of its session, which nobody holds. ``tries``: commands that were begun.
    ``kind``: of the proof, None without one. ``words``: the evidence, or why there is none. ``conductor``:
    who wrote it, and ``at`` when, in seconds since the epoch.
    """

    host: str
    epoch: int
    counter: int
    state: str
    tries: int = 0
    kind: ProofKind | None = None
    words: str
    conductor: str
    at: float

    @property
    def session(self) -> SessionStamp:
        """The session that nobody may have opened since."""
        return SessionStamp(VACANT, self.epoch, self.counter)

    def counts(self, session: Lease | None) -> bool:
        """Return whether nobody has opened the session of the host since the row was written."""
        return session is not None and session.stamp == (VACANT, self.epoch, self.counter)


class Outlook(msgspec.Struct, frozen=True):
    """The knowledge of a cell about hosts that are silent.

    ``told``: the fences that their agents have told. ``leaving``: of hosts with instances that can be
    evacuated or shelved without them, these. ``awaited``: hosts for which builds or moves wait that go on
    without a host that is dead. ``known``: all rows of silent hosts of the cell.
    """

    told: Mapping[str, ToldFence]
    leaving: Mapping[str, list[Departure]]
    awaited: frozenset[str]
    known: Mapping[str, SilentHost]


@short_read
def read_silent_hosts(connection: Connection) -> dict[str, SilentHost]:
    """Return all rows by host, also those that do not count any more."""
    return {row.host: _host_of(row) for row in connection.execute(sa.select(silent_hosts))}


@transaction
def read_outlook(connection: Connection, hosts: tuple[str, ...]) -> Outlook:
    """Return what the cell knows of some hosts, and of those that are dead."""
    leaving: dict[str, list[Departure]] = {}
    awaited: set[str] = set()
    known = read_silent_hosts()(connection)
    dead = (row.host for row in known.values() if row.state == DEAD)
    for some in in_batches({*hosts, *dead}):
        tried = {
            (uuid, attempt): number
            for uuid, attempt, number in connection.execute(_TRIED, {"hosts": some}).all()
        }
        for row in connection.execute(_LEAVING, {"hosts": some}):
            departure = Departure(row.uuid, row.host, row.attempt, tried.get((row.uuid, row.attempt), 0))
            leaving.setdefault(row.host, []).append(departure)
        for query in (_AWAITING_BUILDS, *AWAITING_MOVES):
            awaited.update(connection.execute(query, {"hosts": some}).scalars())
    return Outlook(read_fences(connection, hosts), leaving, frozenset(awaited), known)


@transaction
def note_unproved(connection: Connection, row: SilentHost) -> bool:
    """Store why a host is not taken for dead.

    Returns False if that is known, or the host is back, dead, or being powered off by another command.
    """
    there = _locked(connection, row)
    if there is None or there.state == DEAD or (there.state, there.words) == (UNPROVED, row.words):
        return False
    if there.state == FENCING and there.tries != row.tries:
        # Only the command that is under way ends it.
        return False
    _put(connection, msgspec.structs.replace(row, tries=there.tries))
    return True


@transaction
def begin_command(connection: Connection, row: SilentHost, tries: int) -> int | str | None:
    """Note that a command to power a host off begins; returns its number, or why it does not begin.

    ``tries``: as many were begun as far as the conductor knows. None: another conductor has begun one, or the
    host is back.
    """
    hold_limits(connection)
    there = _locked(connection, row)
    if there is None or there.state == DEAD or there.tries != tries:
        return None
    if (refusal := _why_not_now(connection, row.host)) is not None:
        return refusal
    _put(connection, msgspec.structs.replace(row, tries=tries + 1))
    return tries + 1


@transaction
def note_dead(connection: Connection, row: SilentHost) -> bool | str:
    """Store the proof that a host is dead; returns whether it is new, or why it is not stored.

    A proof by a command needs that no other was begun since. That the fence of its agent is in force follows
    from the session: nothing is told of another fence without opening it.
    """
    hold_limits(connection)
    there = _locked(connection, row)
    if there is None:
        return "the host is back"
    if there.state == DEAD:
        return False
    if row.kind == "command":
        if (there.state, there.tries) != (FENCING, row.tries):
            return "another conductor has taken the host"
    else:
        if (refusal := _why_not_now(connection, row.host)) is not None:
            return refusal
    _put(connection, row)
    return True


@transaction
def forget_silent(connection: Connection, rows: tuple[SilentHost, ...]) -> None:
    """Remove the rows of hosts that are back."""
    for row in rows:
        mine = silent_hosts.c.host == row.host, silent_hosts.c.epoch == row.epoch
        connection.execute(sa.delete(silent_hosts).where(*mine, silent_hosts.c.counter == row.counter))


def share(hosts: int) -> int:
    """Return how many hosts of so many are taken for dead at once, at most."""
    return max(1, hosts // 10)


def checked_proof(
    connection: Connection, host: str, proof: DeathProof, *, lock: bool = False
) -> DeathProof | MoveRefused:
    """Return the proof that a host is dead with the stamp of its session, or why it is none.

    An operator's gets the stamp of now; others are of the session that they name, and of the row of the
    silent host. ``lock``: nobody opens the session before the transaction ends.
    """
    stamp = stamp_of(connection, host, lock=lock)
    if proof.kind != BY_OPERATOR and (proof.stamp != stamp or not _is_proved(connection, host, stamp)):
        return MoveRefused(f"host {host} is back, or nothing proves that it is dead", is_early=True)
    if stamp is not None and stamp.holder != VACANT:
        why = f"the agent of host {host} has not been silent for long enough"
        return MoveRefused(why, is_early=True)
    return msgspec.structs.replace(proof, stamp=stamp)


def _is_proved(connection: Connection, host: str, session: SessionStamp | None) -> bool:
    row = connection.execute(sa.select(silent_hosts).where(silent_hosts.c.host == host)).one_or_none()
    return row is not None and row.state == DEAD and _host_of(row).session == session


def _locked(connection: Connection, row: SilentHost) -> SilentHost | None:
    """Lock the session of a host, and return the row that counts; a new one if there is none.

    None: the session is not that of ``row`` any more.
    """
    name = session_name(row.host)
    if read_stamps(connection, [name], lock=True).get(name) != (VACANT, row.epoch, row.counter):
        return None
    there = connection.execute(sa.select(silent_hosts).where(silent_hosts.c.host == row.host)).one_or_none()
    if there is None or _host_of(there).session != row.session:
        return msgspec.structs.replace(row, state="", tries=0, kind=None)
    return _host_of(there)


def _why_not_now(connection: Connection, host: str) -> str | None:
    """Return why a host is not taken for dead now, as too many are at once."""
    number = connection.execute(_HOSTS).scalar_one()
    others = _under_way(connection) - {host}
    if len(others) < share(number):
        return None
    return (
        f"{len(others)} other host(s) of the cell are evacuated by themselves now, and at most "
        f"{share(number)} of {number} may be at once"
    )


def _under_way(connection: Connection) -> set[str]:
    """Return the hosts whose command is under way, and those whose instances have still to leave."""
    rows = [_host_of(row) for row in connection.execute(sa.select(silent_hosts))]
    stamps = read_stamps(connection, [session_name(row.host) for row in rows])
    current = [row for row in rows if stamps.get(session_name(row.host)) == (VACANT, row.epoch, row.counter)]
    dead = sorted(row.host for row in current if row.state == DEAD)
    leaving = {
        host
        for query in (_UNTRIED, _MOVING)
        for some in in_batches(dead)
        for host in connection.execute(query, {"hosts": some}).scalars()
    }
    return leaving | {row.host for row in current if row.state == FENCING}


def _put(connection: Connection, row: SilentHost) -> None:
    connection.execute(sa.delete(silent_hosts).where(silent_hosts.c.host == row.host))
    values = msgspec.structs.asdict(msgspec.structs.replace(row, words=clean_text(row.words)))
    connection.execute(sa.insert(silent_hosts), values)


def _host_of(row: "sa.Row[tuple[object, ...]]") -> SilentHost:
    return SilentHost(**row._asdict())


_HOSTS = sa.select(sa.func.count()).select_from(leases).where(leases.c.kind == SESSION)
_IS_LEAVING = (
    one_of(instances.c.host, "hosts"),
    one_of_constants(instances.c.state, EVACUABLE),
)
_LEAVING = (
    sa.select(instances.c.uuid, instances.c.host, instances.c.attempt)
    .where(*_IS_LEAVING)
    .order_by(instances.c.changed_at, instances.c.uuid)
)
_AWAITING_BUILDS = (
    sa.select(instances.c.host)
    .distinct()
    .where(one_of(instances.c.host, "hosts"), one_of_constants(instances.c.state, (ASSIGNED, STARTING)))
)
AWAITING_MOVES = tuple(
    sa.select(column)
    .distinct()
    .where(
        one_of(column, "hosts"),
        one_of_constants(moves.c.state, states),
        # The half in the other host's cell waits for that cell, and one on its own host for its evacuation.
        sa.or_(moves.c.side.is_(None), moves.c.side != elsewhere),
        sa.or_(moves.c.target_host.is_(None), moves.c.source_host != moves.c.target_host),
    )
    for column, states, elsewhere in (
        (moves.c.source_host, WAITS_FOR_SOURCE, ARRIVING),
        (moves.c.target_host, WAITS_FOR_TARGET, LEAVING),
    )
)
_ENDED_HERE = (
    one_of(moves.c.source_host, "hosts"),
    moves.c.kind == EVACUATION,
    one_of_constants(moves.c.state, ENDED),
)
_TRIED = (
    sa.select(moves.c.instance_uuid, moves.c.source_attempt, sa.func.count())
    .where(*_ENDED_HERE)
    .group_by(moves.c.instance_uuid, moves.c.source_attempt)
)
_UNTRIED = (
    sa.select(instances.c.host)
    .distinct()
    .where(
        *_IS_LEAVING,
        # One that is locked by a move waits for a word or for the host, perhaps for ever.
        instances.c.move.is_(None),
        ~sa.exists().where(
            moves.c.instance_uuid == instances.c.uuid,
            moves.c.source_attempt == instances.c.attempt,
            moves.c.kind == EVACUATION,
            one_of_constants(moves.c.state, ENDED),
        ),
    )
)
_MOVING = (
    sa.select(moves.c.source_host)
    .distinct()
    .where(
        one_of(moves.c.source_host, "hosts"),
        moves.c.kind == EVACUATION,
        one_of_constants(moves.c.state, (REQUESTED, SEEKING, SENDING, *LIMITED)),
    )
)
