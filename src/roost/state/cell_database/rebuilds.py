"""Rebuilds: the guest of an instance is made anew on its host, from another image or from the same one.

It is the next attempt of the instance, on the same host with the same claim. So the host destroys what it has
of the attempt before, and builds as it builds any attempt. A late report of the attempt before changes
nothing.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    ACTIVE,
    LOST,
    REBUILDING,
    REBUILDING_STOPPED,
    STOPPED,
    ChangeRefused,
    Instance,
    Requester,
    Transition,
)
from roost.model.spec import Image
from roost.state.cell_database.history import MOST_OF_GUESTS, has_heard, transition_line, with_line
from roost.state.cell_database.move_changes import locked_instance
from roost.state.cell_database.rows import spec_text
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances, nodes
from roost.storage import entering, short_read

_FROM = (ACTIVE, STOPPED, LOST)


@entering(REBUILDING, REBUILDING_STOPPED)
def rebuild_instance(
    connection: Connection, *, instance: str, image: Image | None, word: str, by: Requester, at: float
) -> Instance | ChangeRefused | None:
    """Have the host of an instance make its guest anew; None: the cell has no such instance.

    ``image``: the new one; None: the same as before. ``word``: the uuid of the user's word; one that comes
    again changes nothing.
    """
    locked = locked_instance(connection, instance)
    if locked is None:
        return None
    if has_heard(connection, instance, word):
        return locked
    if (refusal := why_not_rebuilt(locked)) is not None:
        return ChangeRefused(refusal)
    assert locked.spec is not None and locked.selection is not None
    ended = sa.select(sa.func.max(build_attempts.c.attempt)).where(build_attempts.c.instance_uuid == instance)
    state = REBUILDING_STOPPED if locked.state == STOPPED else REBUILDING
    attempt = 1 + max(locked.attempt, connection.execute(ended).scalar() or 0)
    spec = locked.spec if image is None else msgspec.structs.replace(locked.spec, image=image)
    told = transition_line(
        Transition(
            state=state,
            at=at,
            attempt=attempt,
            host=locked.host,
            node=locked.node,
            ordinal=locked.selection.ordinal,
            by=by,
            word=word,
        )
    )
    values = {
        "state": state,
        "attempt": attempt,
        "spec": spec_text(spec),
        "reason": None,
        "began": at,
        "changed_at": at,
        "history": with_line(told, MOST_OF_GUESTS),
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == instance).values(**values))
    note_changes(connection, [instance], told)
    return msgspec.structs.replace(locked, state=state, attempt=attempt, spec=spec, reason=None)


def why_not_rebuilt(instance: Instance) -> str | None:
    """Return why an instance cannot be rebuilt now; None if it can."""
    if instance.state not in _FROM:
        return f"the instance is {instance.state}: only one that is {', '.join(_FROM)} can be rebuilt"
    if instance.move is not None:
        return "the instance moves: it cannot be rebuilt before the move has ended"
    if instance.spec is None or instance.selection is None:
        return "the cell does not know what the instance was built from"
    return None


@short_read
def nodename_of(connection: Connection, node: str) -> str | None:
    """Return the name of a node of this cell by its root provider; None if the cell does not know it."""
    name: str | None = connection.execute(sa.select(nodes.c.nodename).where(nodes.c.node == node)).scalar()
    return name
