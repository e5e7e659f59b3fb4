"""Guests that run elsewhere in their cell than it says: its database was taken back to before a move."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE, LOST, MOVED, DestroyOrder, Transition
from roost.model.spec import Selection
from roost.state.cell_database.guests import FORGET_UNKNOWN_GUEST, UnknownGuest, unknown_guests_of
from roost.state.cell_database.history import (
    MOST_OF_GUESTS,
    enter_state,
    transition_line,
    with_line,
)
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.move_changes import locked_instance
from roost.state.cell_database.rows import selection_text
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances
from roost.storage import entering

FOUND = "its guest was found there: the cell's database had been taken back to before it moved"
"""The reason in the history of an instance that is where its guest was found."""


@entering(ACTIVE)
def follow_guest(
    connection: Connection, *, guest: UnknownGuest, selection: Selection, before: int, at: float
) -> bool:
    """Put a lost instance on the host that has its guest; returns whether both are as they were seen.

    ``guest``: of a later attempt than ``before``, that of the instance's row. ``selection``: what the
    instance holds there. The host of before is ordered to destroy what it may have kept.
    """
    row = locked_instance(connection, guest.instance)
    if row is None or (row.state, row.attempt, row.move) != (LOST, before, None) or row.host is None:
        return False
    if guest not in unknown_guests_of(connection, [guest.instance]):
        return False
    give_orders([DestroyOrder(row.uuid, row.attempt, row.host)], at)(connection)
    told = transition_line(
        Transition(
            state=MOVED,
            at=at,
            attempt=guest.attempt,
            host=selection.host,
            node=selection.node,
            reason=FOUND,
        )
    )
    values = {
        "host": selection.host,
        "node": selection.node,
        "attempt": guest.attempt,
        "selection": selection_text(selection),
        "alternates": "[]",
        "history": with_line(told, MOST_OF_GUESTS),
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == row.uuid).values(**values))
    note_changes(connection, [row.uuid], told)
    enter_state(connection, [row.uuid], ACTIVE, at)
    known = {"of_host": guest.host, "key": guest.instance, "of_attempt": guest.attempt}
    connection.execute(FORGET_UNKNOWN_GUEST, known)
    return True
