"""The traces of instances: build requests, mappings, and rows in the databases of cells and of cell0."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.requests import read_requested
from roost.nova.database.states import OFFLOADED
from roost.nova.database.tables import cell_mappings, instance_mappings, instances
from roost.storage import in_batches, transaction


class ApiTraces(NamedTuple):
    """The traces of some instances in the API database.

    ``requested``: those with a build request. ``mapped``: the uuid of the cell of each that is mapped to one,
    cell0 included.
    """

    requested: frozenset[str]
    mapped: Mapping[str, str]


class RowTrace(NamedTuple):
    """The row of an instance in a cell. ``id`` is the row's, which stays when the instance is deleted.

    ``launched``: it has run on a host.
    """

    uuid: str
    id: int
    host: str | None
    nodename: str | None
    state: str | None
    task: str | None
    deleted: bool
    launched: bool


@transaction
def read_api_traces(connection: Connection, uuids: Collection[str]) -> ApiTraces:
    """Return the traces of some instances in the API database, all of one moment.

    Nova maps an instance to its cell before it deletes the build request. So an instance that has neither
    here comes into no cell any more.
    """
    requested = read_requested(uuids)(connection)
    mapped = {
        uuid: cell.lower()
        for some in in_batches(uuids)
        for uuid, cell in connection.execute(_MAPPED.where(instance_mappings.c.instance_uuid.in_(some)))
    }
    return ApiTraces(requested, mapped)


@transaction
def read_row_traces(connection: Connection, uuids: Collection[str]) -> dict[str, RowTrace]:
    """Return the rows of those of some instances that the cell has, also of deleted ones."""
    return {
        row.uuid: _trace(*row)
        for some in in_batches(uuids)
        for row in connection.execute(_ROWS.where(instances.c.uuid.in_(some)))
    }


@transaction
def read_latest_rows(connection: Connection, after: int, most: int) -> list[RowTrace]:
    """Return the latest rows with an id above ``after``, at most ``most``, the newest first."""
    query = _ROWS.where(instances.c.id > after).order_by(instances.c.id.desc()).limit(most)
    return [_trace(*row) for row in connection.execute(query)]


@transaction
def read_offloaded(connection: Connection, most: int) -> list[str]:
    """Return instances that are shelved and offloaded and that nothing is done with, at most ``most``."""
    return [*connection.execute(_OFFLOADED.limit(most)).scalars()]


def _trace(uuid: str, id_: int, host: Any, node: Any, state: Any, task: Any, *rest: Any) -> RowTrace:
    deleted, launched_at = rest
    return RowTrace(uuid, id_, host, node, state, task, bool(deleted), launched_at is not None)


# An index has the rows without a host.
_OFFLOADED = (
    sa.select(instances.c.uuid)
    .where(
        instances.c.host.is_(None),
        instances.c.deleted == 0,
        instances.c.vm_state == OFFLOADED,
        instances.c.task_state.is_(None),
    )
    .order_by(instances.c.id.desc())
)
_MAPPED = sa.select(instance_mappings.c.instance_uuid, cell_mappings.c.uuid).where(
    instance_mappings.c.cell_id == cell_mappings.c.id
)
_ROWS = sa.select(
    instances.c.uuid,
    instances.c.id,
    instances.c.host,
    instances.c.node,
    instances.c.vm_state,
    instances.c.task_state,
    instances.c.deleted,
    instances.c.launched_at,
)
