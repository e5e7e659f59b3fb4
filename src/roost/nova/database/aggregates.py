"""The host aggregates of a Nova cloud, and a mark by which their changes are found."""

from collections import defaultdict
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import aggregate_hosts, aggregate_metadata, aggregates, host_mappings
from roost.storage import short_read, transaction


class AggregateRow(NamedTuple):
    """A host aggregate. ``hosts`` are names of compute services."""

    uuid: str
    name: str
    metadata: dict[str, str]
    hosts: frozenset[str]


Mark = tuple[tuple[Any, ...], ...]
"""Numbers of rows, greatest ids, and sums of the times of changes."""


@short_read
def read_mark(connection: Connection) -> Mark:
    """Return a value that differs from an earlier one if a host aggregate has changed since.

    A row that comes has a greater id than all before, and a row that goes leaves fewer. A row that changes
    in place gets another ``updated_at``, unless it was changed in the same second before: see
    `roost.nova.host_aggregates`.
    """
    return tuple(tuple(row) for row in connection.execute(_MARK))


@transaction
def read_aggregates(connection: Connection) -> list[AggregateRow]:
    """Return all host aggregates, in order of their uuids."""
    hosts: defaultdict[int, set[str]] = defaultdict(set)
    for id_, host in connection.execute(_HOSTS):
        hosts[id_].add(host)
    metadata: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for id_, key, value in connection.execute(_METADATA):
        metadata[id_][key] = value
    return [
        AggregateRow(uuid, name or "", metadata[id_], frozenset(hosts[id_]))
        for id_, uuid, name in connection.execute(_AGGREGATES)
    ]


@transaction
def read_mapped(connection: Connection) -> dict[str, int]:
    """Return the id of the cell of each host that is mapped to one."""
    return dict(connection.execute(_MAPPED).all())


def _moments(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return the sum of a column of times, as numbers that all three databases can make."""
    seconds = (
        sa.extract("month", column) * 2_678_400
        + sa.extract("day", column) * 86_400
        + sa.extract("hour", column) * 3_600
        + sa.extract("minute", column) * 60
        + sa.extract("second", column)
    )
    return sa.func.coalesce(sa.func.sum(seconds), 0)


def _marked(table: sa.Table, times: bool) -> sa.Select[Any]:
    changed = _moments(table.c.updated_at) if times else sa.literal(0)
    return sa.select(sa.literal(table.name).label("of"), sa.func.count(), sa.func.max(table.c.id), changed)


# Memberships are never changed in place.
_MARK = sa.union_all(
    _marked(aggregates, times=True),
    _marked(aggregate_hosts, times=False),
    _marked(aggregate_metadata, times=True),
)
_AGGREGATES = (
    sa.select(aggregates.c.id, aggregates.c.uuid, aggregates.c.name)
    .where(aggregates.c.uuid.is_not(None))
    .order_by(aggregates.c.uuid)
)
_HOSTS = sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host).where(
    aggregate_hosts.c.host.is_not(None)
)
_METADATA = sa.select(aggregate_metadata.c.aggregate_id, aggregate_metadata.c.key, aggregate_metadata.c.value)
_MAPPED = sa.select(host_mappings.c.host, host_mappings.c.cell_id)
