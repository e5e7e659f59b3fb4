"""Faults that are put in on purpose: what conductors send is changed, so that a rule is missing."""

from typing import Any

import msgspec
import sqlalchemy as sa

from machine.simulation.world import Faults
from roost.cells.arriving import AddInstances
from roost.cells.ending import DeleteInstances
from roost.cells.tables import fences


class WithoutFences(msgspec.Struct, frozen=True):
    """A work before which the fences are lost."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        connection.execute(sa.delete(fences))
        return self.work(connection)


def _no_fence(_: str, work: Any) -> Any:
    return WithoutFences(work) if isinstance(work, AddInstances) else work


def _no_tombstone(_: str, work: Any) -> Any:
    if isinstance(work, DeleteInstances):
        return WithoutTombstone(work)
    return work


class WithoutTombstone(msgspec.Struct, frozen=True):
    """A deletion that leaves nothing behind."""

    work: DeleteInstances

    def __call__(self, connection: sa.Connection) -> Any:
        deleted = self.work(connection)
        connection.execute(sa.delete(fences).where(fences.c.instance_uuid.in_(self.work.uuids)))
        return deleted


NO_FENCE = Faults(work=_no_fence)
NO_TOMBSTONE = Faults(work=_no_tombstone)
NO_CONFIRMATION = Faults(confirms=False)
