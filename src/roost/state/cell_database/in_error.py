"""The end of instances of which no further attempt is made: they are in error once their claims are freed."""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ABANDONED, ERROR
from roost.state.cell_database.cell_work import CellWork
from roost.state.cell_database.history import line, with_line
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances
from roost.storage import in_batches, one_of


class GiveUp(CellWork, frozen=True):
    """Put abandoned instances in error, after their claims were freed."""

    uuids: tuple[str, ...]
    at: float

    @property
    def enters(self) -> Collection[str]:
        return (ERROR,)

    def __call__(self, connection: Connection) -> None:
        values: dict[str, object] = {"state": ERROR, "alternates": "[]", "selection": None, "owner": None}
        told = line(ERROR, self.at)
        values["history"] = with_line(told)
        for some in in_batches(self.uuids):
            abandoned = connection.execute(_ABANDONED, {"uuids": some}).scalars().all()
            if abandoned:
                these = instances.c.uuid.in_(abandoned)
                connection.execute(sa.update(instances).where(these).values(**values, changed_at=self.at))
                note_changes(connection, abandoned, told)


class InError(msgspec.Struct, frozen=True):
    """Answers which of the named instances are in error: their claims were freed before."""

    uuids: tuple[str, ...]

    def __call__(self, connection: Connection) -> list[str]:
        return [
            uuid
            for some in in_batches(self.uuids)
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
