"""Amounts of nodes: what placement has of each, its whole tree of providers added up."""

from typing import NamedTuple

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Int64, Rows
from roost.fleet.host_levels import tree_uses
from roost.scheduler.nodes.table import NodeTable


class TreeAmounts(NamedTuple):
    """Amounts of one resource class in the trees of some nodes: int64[n] each, see `TreeUses`.

    They are 0 for a node that placement does not have.
    """

    capacity: Int64
    used: Int64
    reserved: Int64
    total: Int64


def node_amounts(table: NodeTable, fleet: Fleet, resource_class: str, nodes: Rows) -> TreeAmounts:
    """Return the amounts of a resource class on nodes. ``nodes``: intp[n], indexes of the table."""
    roots, *amounts = tree_uses(fleet, resource_class)
    fleet.meter.spend_rows(len(roots))
    return TreeAmounts(*(each[nodes] for each in by_node(table, fleet, roots, *amounts)))


def by_node(table: NodeTable, fleet: Fleet, roots: Rows, *columns: Int64) -> list[Int64]:
    """Return the values of each node's root provider by the node's index, 0 without one: int64[size] each.

    ``roots``: intp[n], rows of the fleet, which the values of the ``columns``, int64[n], belong to.
    """
    found = table.indexes_of_rows(fleet, roots)
    there = found >= 0
    every = bool(there.all())
    places = found if every else found[there]
    by_index = []
    for values in columns:
        column = np.zeros(table.size, dtype=np.int64)
        column[places] = values if every else values[there]
        by_index.append(column)
    return by_index
