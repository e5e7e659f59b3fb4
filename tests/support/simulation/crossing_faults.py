"""Faults of moves to other cells that are put in on purpose: a step of a crossing lacks its rule."""

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.model.move import Move
from roost.model.move_states import CLEANING, DONE, FREEING, RESUMING, REVERTING, STARTING, STOPPED, UNDOING
from roost.state.api_database.crossings import Crossing, read_crossings, switch_mapping
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database.arriving_halves import continue_arriving, let_arrive
from roost.state.cell_database.leaving_halves import let_leave, note_ready, read_halves, resume_leaving
from roost.state.cell_database.move_halves import put_into_cell
from roost.state.cell_database.move_rows import carried_text
from roost.state.cell_database.moves import revert_move
from roost.state.cell_database.tables import moves
from support.simulation.world import Faults
from support.works import arguments_of, is_of


class Changed(msgspec.Struct, frozen=True):
    """A work that is changed by a function, which gets the work and a connection."""

    work: Any
    change: Callable[[Any, sa.Connection], Any]

    def __call__(self, connection: sa.Connection) -> Any:
        return self.change(self.work, connection)


def _change(kind: Callable[..., Any], change: Callable[[Any, sa.Connection], Any]) -> Faults:
    return Faults(work=lambda _, work: Changed(work, change) if is_of(work, kind) else work)


def _switched_early(work: Any, connection: sa.Connection) -> Any:
    """Take a target that was told to start its guest for one that has started it."""
    found: dict[str, Move] = work(connection)
    return {
        uuid: msgspec.structs.replace(each, state=CLEANING, ends_as=DONE)
        if each.side == "arriving" and each.state in (STOPPED, STARTING)
        else each
        for uuid, each in found.items()
    }


def _nothing_stays(work: Any, connection: sa.Connection) -> Any:
    """Free the source as soon as the instance has left: it is told nothing."""
    left = work(connection)
    if left:
        of_it = moves.c.uuid == arguments_of(work)["uuid"]
        connection.execute(sa.update(moves).where(of_it).values(state=FREEING))
    return left


def _shown(work: Any, connection: sa.Connection) -> Any:
    """Put an instance into the target's cell while its guest is prepared."""
    result = work(connection)
    half = arguments_of(work)["half"]
    if result == "arrived":
        put_into_cell(connection, half, 0.0)
    return result


def _no_epoch(work: Any, connection: sa.Connection) -> Any:
    """Map an instance to the target of a crossing whatever has happened to it since."""
    crossing = arguments_of(work)["crossing"]
    of_it = instance_mappings.c.instance_uuid == crossing.instance
    connection.execute(sa.update(instance_mappings).where(of_it).values(cell=crossing.target))
    return True


def _given_early(work: Any, connection: sa.Connection) -> Any:
    """Give the start away as soon as the target is ready, while the guest runs at the source."""
    work(connection)
    of_it = moves.c.uuid == arguments_of(work)["uuid"]
    connection.execute(sa.update(moves).where(of_it).values(state=STARTING))


def _returned_early(work: Any, connection: sa.Connection) -> Any:
    """Take a source that was told to start its guest again for one that has started it."""
    found: dict[str, Move] = work(connection)
    return {
        uuid: msgspec.structs.replace(each, state=UNDOING, carried=None)
        if each.side == "leaving" and each.state == RESUMING
        else each
        for uuid, each in found.items()
    }


def _discarded_early(work: Any, connection: sa.Connection) -> Any:
    """Take each instance for one whose mapping names the source's cell."""
    found: dict[str, Crossing] = work(connection)
    return {uuid: msgspec.structs.replace(each, mapped=each.source) for uuid, each in found.items()}


def _back_early(work: Any, connection: sa.Connection) -> Any:
    """Give the start back as soon as a revert is asked for, while the guest runs at the target."""
    result = work(connection)
    of_it = moves.c.uuid == arguments_of(work)["uuid"], moves.c.state == REVERTING
    connection.execute(sa.update(moves).where(*of_it).values(state=RESUMING))
    return result


def _no_revert_epoch(work: Any, connection: sa.Connection) -> Any:
    """Have a source start its guest again whatever has come of that start before."""
    _set_epoch(connection, arguments_of(work)["uuid"], 0)
    return work(connection)


def _no_continue_epoch(work: Any, connection: sa.Connection) -> Any:
    """Have a target take the start back whatever has come of that revert since."""
    _set_epoch(connection, arguments_of(work)["uuid"], arguments_of(work)["seen"])
    return work(connection)


def _set_epoch(connection: sa.Connection, uuid: str, epoch: int) -> None:
    there = read_halves((uuid,))(connection)[uuid]
    if there.carried is not None:
        text = carried_text(msgspec.structs.replace(there.carried, epoch=epoch))
        connection.execute(sa.update(moves).where(moves.c.uuid == uuid).values(carried=text))


SWITCHED_EARLY = _change(read_halves, _switched_early)
NOTHING_STAYS = _change(let_leave, _nothing_stays)
SHOWN = _change(let_arrive, _shown)
NO_EPOCH = _change(switch_mapping, _no_epoch)
GIVEN_EARLY = _change(note_ready, _given_early)
RETURNED_EARLY = _change(read_halves, _returned_early)
DISCARDED_EARLY = _change(read_crossings, _discarded_early)
BACK_EARLY = _change(revert_move, _back_early)
NO_REVERT_EPOCH = _change(resume_leaving, _no_revert_epoch)
NO_CONTINUE_EPOCH = _change(continue_arriving, _no_continue_epoch)
