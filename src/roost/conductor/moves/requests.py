"""The words of operators about moves: a move is accepted, confirmed, reverted, aborted.

Each is one transaction in the cell that has the instance, and durable when it is answered. A move needs no
request in the API database that is handed to the cell later: its instance cannot move while its cell is down.
"""

from collections.abc import Collection

import msgspec

from roost.conductor.instances.instance_cell import cell_of
from roost.model.instance import Requester
from roost.model.move import ARRIVING, DeathProof, Move, MoveKind, MoveRefused
from roost.model.move_states import SOURCE_KEPT
from roost.model.request import RequestGroup
from roost.model.spec import Flavor, RequestSpec
from roost.process.context import Context
from roost.records.redact import without_secrets
from roost.state.cell_database.move_ends import abort_move
from roost.state.cell_database.moves import begin_move, confirm_move, find_moves, revert_move
from roost.storage import StorageError


async def request_move(
    context: Context,
    *,
    uuid: str,
    instance: str,
    kind: MoveKind,
    by: Requester,
    to_host: str | None = None,
    forced: bool = False,
    confirms: bool = True,
    flavor: Flavor | None = None,
    proof: DeathProof | None = None,
    groups: tuple[RequestGroup, ...] | None = None,
    attached: bool = True,
    across: bool = False,
    in_place: bool = False,
) -> Move | MoveRefused | None:
    """Accept the move of an instance; None: it is unknown, in no cell yet, or deleted.

    ``uuid``: drawn for the move; a repeated call has the same. ``forced``: no filter evaluates
    ``to_host``. ``flavor``: the new one of a resize. ``proof``: that the host is dead, of an evacuation.
    ``groups``, ``attached`` and ``in_place``: see `begin_move`. ``across``: the target may be in another
    cell. Raises `StorageError`.
    """
    cell = await cell_of(context, instance)
    if cell is None:
        return None
    begin = begin_move(
        uuid=uuid,
        instance=instance,
        kind=kind,
        by=by,
        at=context.clock(),
        to_host=to_host,
        forced=forced,
        confirms=confirms,
        flavor=None if flavor is None else _without_secrets(flavor),
        proof=proof,
        groups=groups,
        attached=attached,
        across=across,
        in_place=in_place,
    )
    return await context.write(f"cell/{cell}", begin)


def _without_secrets(flavor: Flavor) -> Flavor:
    return without_secrets(RequestSpec(project_id="", user_id="", flavor=flavor)).flavor


async def settle_move(context: Context, cell: str, move: Move, *, confirm: bool) -> Move | MoveRefused | None:
    """Confirm or revert a move of a cell; None: it is gone. Raises `StorageError`.

    The word for an instance that has left the cell is said in the one that has it.
    """
    settle = confirm_move if confirm else revert_move
    if move.other_cell is not None and move.state in SOURCE_KEPT:
        cell = move.other_cell
    done = await context.write(f"cell/{cell}", settle(move.uuid, context.clock()))
    if isinstance(done, Move) and done.side == ARRIVING:
        # The half of the source is the move, and follows.
        return msgspec.structs.replace(move, state=done.state, ends_as=done.ends_as)
    return done


async def stop_move(context: Context, cell: str, uuid: str, user: str) -> Move | MoveRefused | None:
    """Abort a move of a cell; None: the cell has no such move. Raises `StorageError`."""
    done = await context.write(f"cell/{cell}", abort_move(uuid, f"{user} aborted the move", context.clock()))
    if done is None or isinstance(done, MoveRefused):
        return done
    if done.ended is not None:
        context.record((), (done.ended,))
    return done.move


async def find_move(context: Context, cells: Collection[str], uuid: str) -> tuple[str, Move] | None:
    """Return the cell of a move, and the move. Raises `StorageError` if it may be in a cell that is down."""
    silent: StorageError | None = None
    for cell in cells:
        try:
            found = (await context.read(f"cell/{cell}", find_moves((uuid,)))).get(uuid)
        except StorageError as error:
            silent = error
            continue
        if found is not None and found.side != ARRIVING:
            return cell, found
    if silent is not None:
        raise silent
    return None
