"""The lookup of nodes in a cell's database, by name, and the number of instances on them."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ON_ITS_HOST
from roost.state.cell_database.tables import instances, nodes
from roost.storage import in_batches, transaction


class NodeName(NamedTuple):
    """The uuid of a node's root provider, the name of its compute service and its own."""

    node: str
    host: str
    nodename: str


@transaction
def find_nodes_called(connection: Connection, names: tuple[str, ...]) -> list[NodeName]:
    """Return the nodes of the cell whose own name is one of ``names``."""
    query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)
    return [
        NodeName(*row)
        for some in in_batches(names)
        for row in connection.execute(query.where(nodes.c.nodename.in_(some)))
    ]


def names_of(uuids: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """Return a read of the names of nodes; those that are not in the cell are left out."""
    return _named(uuids, nodes.c.node)


def nodes_called(names: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """Return a read of the nodes whose uuid, own name or host is one of ``names``.

    Its answer may have a node several times.
    """
    return _named(names, nodes.c.node, nodes.c.nodename, nodes.c.host)


def count_instances(uuids: Collection[str]) -> Callable[[Connection], dict[str, int]]:
    """Return a read of the number of instances on nodes. Nodes that the cell does not know are left out.

    A node that the cell has only instances of is known.
    """
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
