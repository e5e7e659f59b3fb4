"""The limits of moves that are under way at once, and the moves that may begin.

A move is under way from when it gets a target until its instance runs there, or stays on the source: it
counts for both hosts. So the rows are the counters, and a conductor that dies takes no count with it. Each
transaction that lets a move begin, or gives it a target, changes one row of the database before it counts:
two conductors at the same moment do not exceed a limit together, whichever nodes of a cluster of databases
they write to.

Of a move to another cell each cell counts its own host.

A move begins before that, when a conductor takes it for the first time, which its row tells by an owner. Not
more begin from a host than may be under way; but a move that looks for a target makes no host busy for
others. Otherwise two hosts whose moves wait for each other would wait for ever. For the same reason a move
whose attempt has failed does not wait for an alternate.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.move import ARRIVING, LEAVING, Move, MoveKind
from roost.model.move_states import LIMITED, ON_TARGET, REQUESTED, SEEKING, SENDING
from roost.process.options import OptionStruct, option
from roost.state.cell_database.move_changes import give_owner
from roost.state.cell_database.move_rows import NAMED_MOVES, move_of
from roost.state.cell_database.tables import move_turns, moves
from roost.storage import in_batches, one_of_constants, short_read, transaction

EVACUATION: MoveKind = "evacuate"
"""The kind of moves that do not count on their source, which is dead."""

SEEN = 1000
"""Waiting moves that are looked at in one transaction at most, the oldest first."""


class MoveLimits(OptionStruct, frozen=True, kw_only=True, group="conductor"):
    """The limits of moves that are under way at once."""

    per_host: int = option(
        2,
        name="moves_per_host",
        min=1,
        help="Moves of instances from or to one host that are under way at once. Further ones wait. A move "
        "is under way from when it has a target until its instance runs there, or stays where it was.",
    )
    per_cell: int = option(
        20,
        name="moves_per_cell",
        min=1,
        help="Moves of instances in one cell that are under way at once; as many evacuations beside them.",
    )


Counted = Literal["placed", "begun", "asked"]
"""The moves that count: those with a target; also those that look for one; also those that wait to begin."""


class MoveCounts(msgspec.Struct, frozen=True):
    """Numbers of moves: by host, whether they go from it or to it, and in the cell.

    ``in_cell``: those that are no evacuations.
    """

    of_hosts: Mapping[str, int]
    in_cell: int
    evacuations: int = 0

    def full_hosts(self, limits: MoveLimits) -> frozenset[str]:
        """Return the hosts that have as many moves as they may have."""
        return frozenset(host for host, number in self.of_hosts.items() if number >= limits.per_host)


@short_read
def count_moves(connection: Connection, counted: Counted = "placed", but: str = "") -> MoveCounts:
    """Count the moves that have not switched or ended. ``but``: the uuid of one that is left out."""
    of_hosts: Counter[str] = Counter()
    rows = [row for row in connection.execute(_COUNTED[counted]) if row.uuid != but]
    for row in rows:
        if row.kind != EVACUATION and row.side != ARRIVING:
            of_hosts[row.source_host] += 1
        stays = row.target_host == row.source_host and row.kind != EVACUATION
        if row.state in ON_TARGET and row.side != LEAVING and not stays:
            of_hosts[row.target_host] += 1
    evacuations = sum(row.kind == EVACUATION for row in rows)
    return MoveCounts(of_hosts, len(rows) - evacuations, evacuations)


def may_have_target(connection: Connection, move: Move, host: str | None, limits: MoveLimits) -> bool:
    """Return whether a move may be under way from its source to a host, beside the others.

    ``host``: None: it is in another cell.
    """
    hold_limits(connection)
    return has_room(connection, move, host, limits)


def has_room(connection: Connection, move: Move, host: str | None, limits: MoveLimits) -> bool:
    """Return whether the limits allow a move from its source to a host. ``host``: None: it is in another
    cell."""
    counts = count_moves("placed", move.uuid)(connection)
    full = counts.full_hosts(limits)
    loads_source = move.kind != EVACUATION and move.side != ARRIVING and move.source.host in full
    in_cell = counts.evacuations if move.kind == EVACUATION else counts.in_cell
    return in_cell < limits.per_cell and host not in full and not loads_source


@short_read
def find_moves_to_begin(connection: Connection, limits: MoveLimits) -> list[str]:
    """Return the uuids of waiting moves that may begin now, the oldest first."""
    counts = count_moves("begun")(connection)
    # Moves that wait for hosts which have died keep no evacuation from them waiting.
    room = {False: limits.per_cell - counts.in_cell, True: limits.per_cell - counts.evacuations}
    of_hosts = Counter(counts.of_hosts)
    found: list[str] = []
    full = sorted(counts.full_hosts(limits))
    waiting = _WAITING.where(moves.c.source_host.not_in(full) | (moves.c.kind == EVACUATION))
    for row in connection.execute(waiting):
        loads_source = row.kind != EVACUATION
        is_full = loads_source and of_hosts[row.source_host] >= limits.per_host
        if room[not loads_source] > 0 and not is_full:
            room[not loads_source] -= 1
            of_hosts[row.source_host] += loads_source
            found.append(row.uuid)
    return found


@transaction
def begin_moves(connection: Connection, owner: str, limits: MoveLimits) -> list[Move]:
    """Take the waiting moves that may begin, the oldest first; returns them with their new owner."""
    hold_limits(connection)
    begun = []
    for some in in_batches(find_moves_to_begin(limits)(connection)):
        rows = connection.execute(_LOCKED, {"uuids": some}).all()
        begun += [move_of(row) for row in rows]
    begun.sort(key=lambda each: (each.began, each.uuid))
    return give_owner(connection, owner, begun)


def hold_limits(connection: Connection) -> None:
    """Let no other transaction of the cell count moves for a limit until this one has ended."""
    connection.execute(_HOLD)


_IS_WAITING = moves.c.state == REQUESTED, moves.c.owner.is_(None)
_ROWS = sa.select(
    moves.c.uuid, moves.c.kind, moves.c.state, moves.c.source_host, moves.c.target_host, moves.c.side
)
_ASKED = _ROWS.where(one_of_constants(moves.c.state, (REQUESTED, SEEKING, SENDING, *LIMITED)))
_COUNTED: Mapping[Counted, sa.Select[Any]] = {
    "placed": _ROWS.where(one_of_constants(moves.c.state, LIMITED)),
    "begun": _ASKED.where(sa.not_(sa.and_(*_IS_WAITING))),
    "asked": _ASKED,
}
_WAITING = (
    sa.select(moves.c.uuid, moves.c.kind, moves.c.source_host)
    .where(*_IS_WAITING)
    .order_by(moves.c.began, moves.c.uuid)
    .limit(SEEN)
)
_LOCKED = NAMED_MOVES.where(*_IS_WAITING).with_for_update(skip_locked=True)
_HOLD = sa.update(move_turns).values(turns=move_turns.c.turns + 1)
