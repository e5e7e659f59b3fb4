"""The instances that are to leave a drained subject by moves: what is left of them, and why.

A failed move is a row, so the number of failed moves of an instance from its present attempt says how often
it was tried.
"""

from collections import Counter
from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.departure import Departure
from roost.model.instance import ACTIVE, IN_PLACE, UNSETTLED
from roost.model.move import ARRIVING, Move, awaited_host, has_attachments
from roost.model.move_states import CLEANING, DONE, ENDED, FAILED_MOVE, SWITCHED, UNDER_WAY
from roost.model.operator_word import Subject
from roost.state.cell_database.host_work import FOR_HOSTS, idle_hosts
from roost.state.cell_database.instance_search import PLACED, count_remaining
from roost.state.cell_database.move_limits import MoveCounts, MoveLimits, count_moves
from roost.state.cell_database.move_rows import MOVES, SOURCE, is_here, move_of
from roost.state.cell_database.moves import STAYS_IN_CELL, keeps_no_disks, refusal_of
from roost.state.cell_database.nodes import nodes_without_disk_store
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances, moves
from roost.storage import in_batches, one_of_constants, transaction

MOST_NAMED = 100
"""Instances of a subject that are named at most. Further ones are counted."""


@transaction
def find_departures(
    connection: Connection, subject: Subject, limits: MoveLimits
) -> tuple[MoveCounts, list[Departure]]:
    """Return the instances on a subject of this cell that can be asked to move, the oldest first.

    With them the moves that are under way or wait to begin, in the same snapshot: so two processes do not
    lock different instances for the same room. No instances if there is no room. Those of a host that is
    silent are left out: it stops no guest, and an evacuation would wait for the end of each move.
    """
    counts = count_moves("asked")(connection)
    if counts.in_cell >= limits.per_cell or subject.host in counts.full_hosts(limits):
        return counts, []
    tried = _tried(connection, subject)
    there = (
        sa.select(instances.c.uuid, instances.c.host, instances.c.attempt)
        .where(*_on(subject), one_of_constants(instances.c.state, IN_PLACE), instances.c.move.is_(None))
        .order_by(instances.c.changed_at, instances.c.uuid)
    )
    rows = connection.execute(there).all()
    idle = idle_hosts(connection, {row.host for row in rows})
    return counts, [
        Departure(row.uuid, row.host, row.attempt, tried[row.uuid, row.attempt])
        for row in rows
        if row.host not in idle
    ]


class StayingInstance(msgspec.Struct, frozen=True):
    """An instance on a drained subject that does not move now.

    ``reason``: why, None while its host or a conductor works on it.

    ``tries``: its moves from its present host that have failed.
    """

    instance: str
    state: str
    reason: str | None
    tries: int


class DrainProgress(msgspec.Struct, frozen=True):
    """The progress of a drain with moves.

    ``left``: the number of instances that are on the subject, those of moves that have not ended among them.
    ``moving``: of moves that are under way. ``moved``: moves from there that are done since it was disabled.
    ``stuck``: the number of instances that cannot move, those of moves that wait for a word or for a host
    which is silent among them. ``staying``: these, and those that are being built, at most `MOST_NAMED`.
    ``waiting``: of instances that may be asked to move, in their turn.
    """

    left: int
    moving: int
    moved: int
    stuck: int
    staying: tuple[StayingInstance, ...]
    waiting: int = 0


@transaction
def describe_drain(connection: Connection, subject: Subject, since: float) -> DrainProgress:
    """Return the progress of the drain of a subject of this cell, which began at ``since`` by the clock."""
    under_way = [
        move
        for row in connection.execute(
            MOVES.where(*_from(subject), one_of_constants(moves.c.state, UNDER_WAY))
        )
        if subject.node in ("", (move := move_of(row)).source.node)
    ]
    left_alone = INSTANCES.where(
        *_on(subject), one_of_constants(instances.c.state, PLACED), instances.c.move.is_(None)
    ).order_by(instances.c.changed_at, instances.c.uuid)
    there = [instance_of(row) for row in connection.execute(left_alone)]
    awaited = {host for move in under_way if (host := awaited_host(move)) is not None}
    awaited |= {each.host for each in there if each.host is not None}
    idle = idle_hosts(connection, awaited)
    staying = [
        StayingInstance(move.instance, ACTIVE, why, 0)
        for move in under_way
        if (why := _why_halted(move, idle)) is not None
    ]
    moving = len(under_way) - len(staying)
    staying += _locked(connection, subject)
    stuck = len(staying)
    failures = _failures(connection, subject)
    without = nodes_without_disk_store({each.node for each in there if each.node is not None})(connection)
    waiting = 0
    for instance in there:
        failed = failures.get((instance.uuid, instance.attempt), [])
        reason = refusal_of(instance) if instance.state in IN_PLACE else instance.reason
        if not subject.host and instance.spec is not None and has_attachments(instance.spec):
            reason = reason or STAYS_IN_CELL
        if instance.node in without:
            reason = reason or keeps_no_disks(instance.host)
        if instance.state in UNSETTLED:
            waits = instance.state in FOR_HOSTS and instance.host in idle
            reason = _idle(instance.host) if waits else None
        elif instance.state in IN_PLACE and reason is None:
            if instance.host in idle:
                reason = _idle(instance.host)
            elif failed:
                reason = failed[-1]
            else:
                waiting += 1
                continue
        stuck += instance.state not in UNSETTLED or reason is not None
        staying.append(StayingInstance(instance.uuid, instance.state, reason, len(failed)))
    left = count_remaining((subject,))(connection).instances.get(subject, 0)
    moved = _moved(connection, subject, since)
    return DrainProgress(left, moving, moved, stuck, tuple(staying[:MOST_NAMED]), waiting)


def _why_halted(move: Move, idle: Collection[str]) -> str | None:
    """Return why a move from a subject does not go on; None if it may. ``idle``: hosts that do nothing."""
    if move.state == SWITCHED:
        return f"move {move.uuid} waits to be confirmed or reverted: it is on another host"
    if (host := awaited_host(move)) in idle:
        return f"move {move.uuid} is {move.state}; {_idle(host)}"
    return None


def _idle(host: str | None) -> str:
    return f"host {host} is silent, or carries out no orders"


def _locked(connection: Connection, subject: Subject) -> list[StayingInstance]:
    """Return the instances that have come to a subject by moves which wait, and cannot move again before."""
    here = INSTANCES.where(*_on(subject), instances.c.move.is_not(None))
    rows = {row.move: row for row in connection.execute(here)}
    found = []
    for some in in_batches(rows):
        for row in connection.execute(MOVES.where(moves.c.uuid.in_(some))):
            why = f"move {row.uuid} waits to be confirmed or reverted"
            if row.state == CLEANING:
                why = f"move {row.uuid} waits for host {row.source_host} to destroy what it had"
            comes = row.source_host != subject.host if subject.host else row.side == ARRIVING
            if comes and row.state in (SWITCHED, CLEANING):
                found.append(StayingInstance(row.instance_uuid, rows[row.uuid].state, why, 0))
    return found


def _tried(connection: Connection, subject: Subject) -> Counter[tuple[str, int]]:
    query = (
        sa.select(moves.c.instance_uuid, moves.c.source_attempt, sa.func.count())
        .where(*_from(subject), one_of_constants(moves.c.state, ENDED))
        .group_by(moves.c.instance_uuid, moves.c.source_attempt)
    )
    return Counter({(uuid, attempt): number for uuid, attempt, number in connection.execute(query)})


def _failures(connection: Connection, subject: Subject) -> dict[tuple[str, int], list[str]]:
    """Return the reasons of failed moves by instance and attempt, in the order of their ends."""
    query = (
        sa.select(moves.c.instance_uuid, moves.c.source_attempt, moves.c.reason)
        .where(*_from(subject), moves.c.state == FAILED_MOVE)
        .order_by(moves.c.changed_at, moves.c.began)
    )
    found: dict[tuple[str, int], list[str]] = {}
    for uuid, attempt, reason in connection.execute(query):
        found.setdefault((uuid, attempt), []).append(reason or "")
    return found


def _moved(connection: Connection, subject: Subject, since: float) -> int:
    done = MOVES.where(*_from(subject), moves.c.state == DONE, moves.c.began >= since)
    if not subject.node:
        number: int = connection.execute(sa.select(sa.func.count()).select_from(done.subquery())).scalar_one()
        return number
    return sum(move_of(row).source.node == subject.node for row in connection.execute(done))


def _on(subject: Subject) -> list[sa.ColumnElement[bool]]:
    """Return the condition that an instance is on a subject: a host, a node, or the whole cell."""
    named = ((instances.c.host, subject.host), (instances.c.node, subject.node))
    return [column == name for column, name in named if name]


def _from(subject: Subject) -> list[sa.ColumnElement[bool]]:
    """Return the condition that a move is from a subject, or from another node of its host."""
    return [is_here(SOURCE), *([moves.c.source_host == subject.host] if subject.host else [])]
