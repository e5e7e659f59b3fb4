"""Searches for instances of a cell by facts that only the cell has."""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE, ASSIGNED, STARTING, BuildAttempt, Instance
from roost.state.cell_database.arrivals import INSTANCES
from roost.state.cell_database.rows import attempt_of, instance_of
from roost.state.cell_database.tables import build_attempts, instances
from roost.storage import in_batches, one_of, transaction


@transaction
def search_instances(
    connection: Connection,
    *,
    most: int,
    after: str = "",
    request_ids: tuple[str, ...] | None = None,
    project_id: str | None = None,
    state: str | None = None,
    host: str | None = None,
    changed_since: float | None = None,
) -> list[str]:
    """Return the uuids of the first ``most`` instances after one, in order, that meet all conditions.

    ``changed_since``: the time of the last change of state or host, in seconds since the epoch.
    """
    query = sa.select(instances.c.uuid).where(instances.c.uuid > after)
    values = {} if request_ids is None else {"requests": request_ids}
    if request_ids is not None:
        query = query.where(one_of(instances.c.request_id, "requests"))
    for name, value in (("project_id", project_id), ("state", state), ("host", host)):
        if value is not None:
            query = query.where(instances.c[name] == value)
    if changed_since is not None:
        query = query.where(instances.c.changed_at >= changed_since)
    query = query.order_by(instances.c.uuid).limit(most)
    return list(connection.execute(query, values).scalars())


class DescribedInstance(msgspec.Struct, frozen=True):
    """An instance, its attempts that have ended without a guest, and when it changed last."""

    instance: Instance
    attempts: list[BuildAttempt]
    changed_at: float


@transaction
def describe_instances(connection: Connection, uuids: tuple[str, ...]) -> Mapping[str, DescribedInstance]:
    """Describe instances by uuid; those that are not in the cell are left out."""
    found = {
        row.uuid: DescribedInstance(instance_of(row), [], row.changed_at)
        for some in in_batches(uuids)
        for row in connection.execute(_DESCRIBED, {"uuids": some})
    }
    # Mostly there are none: the first attempt at an instance succeeds.
    tried = [uuid for uuid, each in found.items() if _may_have_failed(each.instance)]
    for some in in_batches(tried):
        for row in connection.execute(_ATTEMPTS, {"uuids": some}):
            found[row.instance_uuid].attempts.append(attempt_of(row))
    return found


def _may_have_failed(instance: Instance) -> bool:
    """Return whether an attempt at the instance may have ended without a guest."""
    return instance.attempt > 1 or instance.state not in (ASSIGNED, STARTING, ACTIVE)


_DESCRIBED = INSTANCES.add_columns(instances.c.changed_at).where(one_of(instances.c.uuid, "uuids"))
_ATTEMPTS = (
    sa.select(build_attempts)
    .where(one_of(build_attempts.c.instance_uuid, "uuids"))
    .order_by(build_attempts.c.instance_uuid, build_attempts.c.attempt)
)
