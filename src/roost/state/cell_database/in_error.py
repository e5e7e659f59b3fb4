"""The end of instances of which no further attempt is made: they are in error once their claims are freed."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ABANDONED, ERROR
from roost.state.cell_database.history import line, with_line
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances
from roost.storage import entering, in_batches, one_of, transaction


@entering(ERROR)
def put_in_error(connection: Connection, uuids: tuple[str, ...], at: float) -> None:
    """Put abandoned instances in error, after their claims were freed."""
    values: dict[str, object] = {"state": ERROR, "alternates": "[]", "selection": None, "owner": None}
    told = line(ERROR, at)
    values["history"] = with_line(told)
    for some in in_batches(uuids):
        abandoned = connection.execute(_ABANDONED, {"uuids": some}).scalars().all()
        if abandoned:
            these = instances.c.uuid.in_(abandoned)
            connection.execute(sa.update(instances).where(these).values(**values, changed_at=at))
            note_changes(connection, abandoned, told)


@transaction
def find_in_error(connection: Connection, uuids: tuple[str, ...]) -> list[str]:
    """Return which of the named instances are in error: their claims were freed before."""
    return [
        uuid
        for some in in_batches(uuids)
        for uuid in connection.execute(_IN_ERROR, {"uuids": some}).scalars()
    ]


_NAMED = one_of(instances.c.uuid, "uuids")
_IN_ERROR = sa.select(instances.c.uuid).where(_NAMED, instances.c.state == ERROR)
_ABANDONED = (
    sa.select(instances.c.uuid)
    .where(_NAMED, instances.c.state == ABANDONED)
    .order_by(instances.c.uuid)
    .with_for_update()
)
