"""The rows of compute nodes, and the stamps by which changed ones are found."""

import datetime
from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import compute_nodes
from roost.storage import in_batches, transaction

Stamp = tuple[int, datetime.datetime | None]
"""The id of a row and when it was changed, by the clock of its writer: compared for equality only."""

NodeRow = sa.Row[Any]
"""All columns of ``compute_nodes``."""


class StampedNode(NamedTuple):
    """The names of a compute node, and the stamp of its row."""

    node: str
    host: str
    stamp: Stamp


@transaction
def read_stamps(connection: Connection, hosts: Collection[str] | None = None) -> list[StampedNode]:
    """Return the compute nodes of some hosts, or of all, with their stamps.

    A node without a free disk is left out: its compute has not reported yet.
    """
    if hosts is None:
        rows = list(connection.execute(_STAMPS))
    else:
        rows = [
            row
            for some in in_batches(hosts)
            for row in connection.execute(_STAMPS.where(compute_nodes.c.host.in_(some)))
        ]
    return [StampedNode(uuid, host, (id_, at)) for uuid, host, id_, at in rows if uuid and host]


@transaction
def read_nodes(connection: Connection, nodes: Collection[str]) -> list[NodeRow]:
    """Return the rows of some compute nodes, named by their uuids."""
    return [
        row
        for some in in_batches(nodes)
        for row in connection.execute(_ROWS.where(compute_nodes.c.uuid.in_(some)))
        if row.host
    ]


def content_of(row: NodeRow) -> int:
    """Return a hash of a row without its stamp: a compute may write its row without a change."""
    values = tuple(row)
    return hash((values[:_STAMP], values[_STAMP + 1 :]))


_STAMP = [each.key for each in compute_nodes.c].index("updated_at")

# Source: HostState of Nova ignores rows without a free disk. With a condition on uuid or host, MariaDB would
# read all rows through an index.
_THERE = (
    compute_nodes.c.deleted == 0,
    compute_nodes.c.free_disk_gb.is_not(None),
)
_STAMPS = sa.select(
    compute_nodes.c.uuid, compute_nodes.c.host, compute_nodes.c.id, compute_nodes.c.updated_at
).where(*_THERE)
_ROWS = sa.select(compute_nodes).where(*_THERE)
