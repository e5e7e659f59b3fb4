"""Looks nodes up in a cell's database: by their names, and whether instances are on them."""

from collections.abc import Collection
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.cell import Cell
from roost.cells.tables import instances, nodes
from roost.model.instance import ON_ITS_HOST
from roost.storage import in_batches


class NodeName(NamedTuple):
    """The uuid of a node's root provider, the name of its compute service and its own."""

    node: str
    host: str
    nodename: str


class NodesCalled(msgspec.Struct, frozen=True):
    """The nodes of the cell whose own name is one of ``names``."""

    names: tuple[str, ...]

    def __call__(self, connection: Connection) -> list[NodeName]:
        query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)
        return [
            NodeName(*row)
            for some in in_batches(self.names)
            for row in connection.execute(query.where(nodes.c.nodename.in_(some)))
        ]


async def names_of(cell: Cell, uuids: Collection[str]) -> dict[str, NodeName]:
    """The names of those of the nodes that are in the cell, by uuid."""
    return {each.node: each for each in await _named(cell, uuids, nodes.c.node)}


async def nodes_called(cell: Cell, names: Collection[str]) -> set[NodeName]:
    """The nodes of the cell of which the uuid, the own name or the service's name is one of ``names``."""
    return set(await _named(cell, names, nodes.c.node, nodes.c.nodename, nodes.c.host))


async def count_instances(cell: Cell, uuids: Collection[str]) -> dict[str, int]:
    """How many instances each of the nodes has; nodes without any are left out."""
    counted = sa.func.count().label("instances")

    def read(connection: Connection) -> dict[str, int]:
        return {
            row.node: row.instances
            for some in in_batches(uuids)
            for row in connection.execute(
                sa.select(instances.c.node, counted)
                .where(instances.c.node.in_(some), instances.c.state.in_(ON_ITS_HOST))
                .group_by(instances.c.node)
            )
        }

    return await cell.read(read)


async def _named(cell: Cell, names: Collection[str], *columns: sa.Column[str]) -> list[NodeName]:
    query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)

    def read(connection: Connection) -> list[NodeName]:
        return [
            NodeName(*row)
            for some in in_batches(names)
            for column in columns
            for row in connection.execute(query.where(column.in_(some)))
        ]

    return await cell.read(read)
