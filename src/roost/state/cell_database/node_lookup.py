"""Looks nodes up in a cell's database: by their names, and whether instances are on them."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ON_ITS_HOST
from roost.state.cell_database.tables import instances, nodes
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


def names_of(uuids: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """A read of the names of those of the nodes that are in the cell."""
    return _named(uuids, nodes.c.node)


def nodes_called(names: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """A read of the nodes of the cell of which the uuid, the own name or the service's name is one of
    ``names``. It may have a node several times."""
    return _named(names, nodes.c.node, nodes.c.nodename, nodes.c.host)


def count_instances(uuids: Collection[str]) -> Callable[[Connection], dict[str, int]]:
    """A read of how many instances each node has, of those nodes that the cell has or has instances of."""
    counted = sa.func.count().label("instances")

    def read(connection: Connection) -> dict[str, int]:
        found: dict[str, int] = {}
        for some in in_batches(uuids):
            there = sa.select(nodes.c.node).where(nodes.c.node.in_(some))
            found |= dict.fromkeys(connection.execute(there).scalars(), 0)
            counts = (
                sa.select(instances.c.node, counted)
                .where(instances.c.node.in_(some), instances.c.state.in_(ON_ITS_HOST))
                .group_by(instances.c.node)
            )
            found |= {row.node: row.instances for row in connection.execute(counts)}
        return found

    return read


def _named(names: Collection[str], *columns: sa.Column[str]) -> Callable[[Connection], list[NodeName]]:
    query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)

    def read(connection: Connection) -> list[NodeName]:
        return [
            NodeName(*row)
            for some in in_batches(names)
            for column in columns
            for row in connection.execute(query.where(column.in_(some)))
        ]

    return read
