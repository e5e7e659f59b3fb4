"""Searches for instances of a cell by what the cell alone knows of them."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.arriving import FindInstances
from roost.cells.rows import attempt_of
from roost.cells.tables import build_attempts, instances
from roost.model.instance import BuildAttempt, Instance
from roost.storage import in_batches, one_of


class SearchInstances(msgspec.Struct, frozen=True, kw_only=True):
    """The uuids of the first ``most`` instances after one, in order, that meet all of the conditions.

    ``changed_since``: the time of the last change of state or host, in seconds since the epoch.
    """

    most: int
    after: str = ""
    request_id: str | None = None
    project_id: str | None = None
    state: str | None = None
    host: str | None = None
    changed_since: float | None = None

    def __call__(self, connection: Connection) -> list[str]:
        query = sa.select(instances.c.uuid).where(instances.c.uuid > self.after)
        for name in ("request_id", "project_id", "state", "host"):
            if (value := getattr(self, name)) is not None:
                query = query.where(instances.c[name] == value)
        if self.changed_since is not None:
            query = query.where(instances.c.changed_at >= self.changed_since)
        return list(connection.execute(query.order_by(instances.c.uuid).limit(self.most)).scalars())


class DescribedInstance(msgspec.Struct, frozen=True):
    """An instance, its attempts that have ended without a guest, and when it changed last."""

    instance: Instance
    attempts: list[BuildAttempt]
    changed_at: float


class DescribeInstances(msgspec.Struct, frozen=True):
    """Describe those of some instances that are in the cell, by uuid."""

    uuids: tuple[str, ...]

    def __call__(self, connection: Connection) -> Mapping[str, DescribedInstance]:
        there = FindInstances(self.uuids)(connection)
        attempts: dict[str, list[BuildAttempt]] = {uuid: [] for uuid in there}
        changed: dict[str, float] = {}
        for some in in_batches(there):
            changed.update(connection.execute(_CHANGED, {"uuids": some}).all())
            for row in connection.execute(_ATTEMPTS, {"uuids": some}):
                attempts[row.instance_uuid].append(attempt_of(row))
        return {
            uuid: DescribedInstance(instance, attempts[uuid], changed[uuid])
            for uuid, instance in there.items()
        }


_CHANGED = sa.select(instances.c.uuid, instances.c.changed_at).where(one_of(instances.c.uuid, "uuids"))
_ATTEMPTS = (
    sa.select(build_attempts)
    .where(one_of(build_attempts.c.instance_uuid, "uuids"))
    .order_by(build_attempts.c.instance_uuid, build_attempts.c.attempt)
)
