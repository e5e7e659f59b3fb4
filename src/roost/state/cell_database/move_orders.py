"""The work of hosts by moves: guests to build, to stop, to start again and to destroy.

As with builds, the state of a move is the order: `roost.model.move_states.AT_SOURCE` and ``AT_TARGET`` say
what each state wants of the two hosts. A source that is to destroy what it has left is up nevertheless: its
room is still held by the move.
"""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, Instance, OrderKind
from roost.model.move import Move, MovePlace, MoveWork, at_place, finds_disks, other_place
from roost.model.move_states import AT_SOURCE, AT_TARGET, GOING, OFF, STOPPING, UNDER_WAY
from roost.state.cell_database.move_rows import MOVES, NAMED_MOVES, SOURCE, TARGET, is_here, move_of
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances, moves
from roost.storage import in_batches, one_of, one_of_constants


class MoveKey(msgspec.Struct, frozen=True):
    """Work of a host by a move. ``move``: the move's uuid. ``instance``, ``attempt``: of the guest."""

    kind: OrderKind
    instance: str
    attempt: int
    host: str
    move: str

    @property
    def key(self) -> tuple[OrderKind, str, int]:
        """The kind of the order, the instance and the attempt."""
        return self.kind, self.instance, self.attempt


def move_key(side: str, instance: str, attempt: int, host: str, state: str, move: str) -> MoveKey:
    """Return the key of the work of a host on a side of a move."""
    return MoveKey((AT_SOURCE if side == SOURCE else AT_TARGET)[state], instance, attempt, host, move)


def _keys(side: str) -> sa.Select[tuple[str, int, str, str, str, str]]:
    query = sa.select(
        moves.c.instance_uuid,
        moves.c[f"{side}_attempt"],
        moves.c[f"{side}_host"],
        moves.c.state,
        sa.literal_column(f"'{side}'"),
        moves.c.uuid,
    ).where(one_of_constants(moves.c.state, AT_SOURCE if side == SOURCE else AT_TARGET), is_here(side))
    if side == SOURCE:
        return query
    # A host that gives an instance another size stops the guest before it builds the next.
    return query.where((moves.c.state != STOPPING) | (moves.c.source_host != moves.c.target_host))


KEYS = (_keys(SOURCE), _keys(TARGET))
"""The queries of the work of hosts by moves: instance, attempt, host, state, side, move."""

_OF_HOSTS: sa.CompoundSelect[Any] = sa.union_all(
    *(
        query.where(one_of(moves.c[f"{side}_host"], "hosts"))
        for side, query in zip((SOURCE, TARGET), KEYS, strict=True)
    )
)


def work_by_moves(connection: Connection, hosts: Collection[str]) -> dict[str, list[MoveWork]]:
    """Return the work of some hosts by moves, by host."""
    keys = [
        move_key(side, instance, attempt, host, state, move)
        for some in in_batches(hosts)
        for instance, attempt, host, state, side, move in connection.execute(_OF_HOSTS, {"hosts": some})
    ]
    return read_move_work(connection, keys)


def read_move_work(connection: Connection, keys: Iterable[MoveKey]) -> dict[str, list[MoveWork]]:
    """Return work of hosts with its instances, by host. Work that has changed meanwhile is left out."""
    wanted = set(keys)
    found: dict[str, list[MoveWork]] = {}
    if not wanted:
        return found
    uuids = {each.move for each in wanted}
    under_way = [
        move_of(row) for some in in_batches(uuids) for row in connection.execute(NAMED_MOVES, {"uuids": some})
    ]
    rows = _instances_of(connection, under_way)
    for move in under_way:
        instance = rows.get(move.instance) or _carried(move)
        if instance is None:
            continue
        for place, at in ((move.source, AT_SOURCE), (move.target, AT_TARGET)):
            kind = at.get(move.state)
            if place is None or kind is None:
                continue
            if place is move.target and move.stays and move.state == STOPPING:
                continue
            if MoveKey(kind, move.instance, place.attempt, place.host, move.uuid) in wanted:
                found.setdefault(place.host, []).append(_work_at(move, place, instance))
    return found


def _carried(move: Move) -> Instance | None:
    """Return the instance of a half of a move, of which the cell has no row."""
    return None if move.carried is None else move.carried.instance


def _work_at(move: Move, place: MovePlace, instance: Instance) -> MoveWork:
    """Return the work of a host of a move, with what it needs to know of the other one."""
    there = at_place(instance, place, starts=move.at_source != OFF)
    over = (move.target or move.source).attempt
    if place is move.source:
        kind = AT_SOURCE[move.state]
        goes_to = move.target if kind == "migrate" else None
        beside = move.target.attempt if move.stays and move.target is not None else None
        return MoveWork(
            kind, there, over, None if goes_to is None else at_place(instance, goes_to), beside=beside
        )
    kind = AT_TARGET[move.state]
    if kind in ("build", "receive"):
        there = msgspec.structs.replace(there, finds_disks=finds_disks(move))
    beside = move.source.attempt if move.stays else None
    return MoveWork(kind, there, over, begun=move.state in GOING, beside=beside)


def _instances_of(connection: Connection, found: Iterable[Move]) -> dict[str, Instance]:
    """Return the instances of moves by uuid, without those that are gone."""
    return {
        row.uuid: instance_of(row)
        for some in in_batches(each.instance for each in found)
        for row in connection.execute(_INSTANCES, {"uuids": some})
    }


_INSTANCES = INSTANCES.where(one_of(instances.c.uuid, "uuids"))


def guests_of_moves(connection: Connection, hosts: Collection[str]) -> list[tuple[str, Instance]]:
    """Return the guests that some hosts may have beside those of their instances, each with its host.

    They are those that a target prepares or starts, and those that are kept stopped: none of them is to be
    taken for one that runs, so all are ``assigned``.
    """
    found = []
    there = [
        move_of(row)
        for some in in_batches(hosts)
        for row in connection.execute(_UNDER_WAY_ON, {"hosts": some})
    ]
    rows = _instances_of(connection, there)
    wanted = {*hosts}
    for move in there:
        instance = rows.get(move.instance)
        other = other_place(move, None if instance is None else instance.attempt)
        instance = instance or _carried(move)
        if instance is not None and other is not None and other.host in wanted:
            found.append((other.host, msgspec.structs.replace(at_place(instance, other), state=ASSIGNED)))
    return found


_UNDER_WAY_ON = MOVES.where(
    one_of(moves.c.source_host, "hosts") | one_of(moves.c.target_host, "hosts"),
    one_of_constants(moves.c.state, UNDER_WAY),
)
