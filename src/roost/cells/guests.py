"""Guests that hosts say they have, compared with the instances that run there.

Nothing is destroyed here: a guest that the cell does not know is told of and left alone.
"""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.cell_work import CellWork
from roost.cells.tables import instances
from roost.model.instance import ACTIVE, LOST, ON_ITS_HOST

VANISHED = "its host says that the guest is not there"
"""The reason of an instance that is lost."""


class ExpectedGuests(msgspec.Struct, frozen=True):
    """The instances that run on a host, with their attempts: uuid -> attempt. Lost ones are not expected."""

    host: str

    def __call__(self, connection: Connection) -> dict[str, int]:
        query = sa.select(instances.c.uuid, instances.c.attempt).where(
            instances.c.state == ACTIVE, instances.c.host == self.host
        )
        return {row.uuid: row.attempt for row in connection.execute(query)}


class Compared(msgspec.Struct, frozen=True):
    """What a comparison has found: uuids of instances that were ``lost``, that are ``found`` again, and of
    guests that have ``unknown`` instances or attempts."""

    lost: frozenset[str]
    found: frozenset[str]
    unknown: frozenset[str]


class GuestsReported(CellWork, frozen=True):
    """A host says which guests run on it: uuid -> attempt.

    An active instance of the host without its guest is lost; a lost one whose guest runs is active again.
    """

    host: str
    guests: Mapping[str, int]
    at: float

    def __call__(self, connection: Connection) -> Compared:
        query = sa.select(instances.c.uuid, instances.c.attempt, instances.c.state).where(
            instances.c.state.in_(ON_ITS_HOST), instances.c.host == self.host
        )
        known = {(row.uuid, row.attempt): row.state for row in connection.execute(query.with_for_update())}
        running = {*self.guests.items()}
        lost = [key for key, state in known.items() if state == ACTIVE and key not in running]
        found = [key for key, state in known.items() if state == LOST and key in running]
        self._put(connection, [uuid for uuid, _ in lost], LOST, VANISHED)
        self._put(connection, [uuid for uuid, _ in found], ACTIVE, None)
        return Compared(
            lost=frozenset(uuid for uuid, _ in lost),
            found=frozenset(uuid for uuid, _ in found),
            unknown=frozenset(uuid for uuid, attempt in running if (uuid, attempt) not in known),
        )

    def _put(self, connection: Connection, uuids: list[str], state: str, reason: str | None) -> None:
        if uuids:
            values = {"state": state, "reason": reason, "changed_at": self.at}
            connection.execute(sa.update(instances).where(instances.c.uuid.in_(uuids)).values(**values))
