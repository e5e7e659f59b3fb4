"""One constraint at a time, judged on every provider; and which providers each tree can reach."""

from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import (
    FORBIDDEN,
    FORBIDDEN_AGGREGATES,
    IN_TREE,
    MEMBER_OF,
    REQUIRED,
    RESOURCES,
    ROOT_FORBIDDEN,
    ROOT_REQUIRED,
    Constraint,
)
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any


class Reach(NamedTuple):
    """Which providers a tree has to choose from: its own, and those that share with it.

    Parallel columns: provider ``rows[i]`` may serve the tree with root ``anchors[i]``; ``shared[i]`` says
    that it is of another tree.
    """

    anchors: Rows
    rows: Rows
    shared: Bools


def reach_of(fleet: Fleet) -> Reach:
    """What each tree can reach."""
    rows = fleet.rows()
    anchors = [fleet.roots(rows)]
    served = [rows]
    for row in fleet.sharing().rows().tolist():
        near = [fleet.in_aggregate(name).rows() for name in fleet.aggregates_of(row)]
        if near:
            roots = np.unique(fleet.roots(np.concatenate(near)))
            roots = roots[roots != fleet.roots(row)]
            anchors.append(roots)
            served.append(np.full(len(roots), row, np.intp))
    shared = np.zeros(sum(map(len, served)), dtype=np.bool_)
    shared[len(rows) :] = True
    return Reach(np.concatenate(anchors), np.concatenate(served), shared)


def met(fleet: Fleet, rows: Rows, constraint: Constraint) -> Bools:
    """For each of ``rows`` whether it meets a constraint by itself: bool[len(rows)].

    In the unsuffixed group a provider is also where its root is. What concerns the root of the tree is asked
    of that; what only whole combinations can break is met.
    """
    names, kind = constraint.names, constraint.kind
    roots = fleet.roots(rows)
    meets: Bools = np.ones(len(rows), dtype=np.bool_)
    if kind == RESOURCES:
        stock = fleet.inventory_columns(names[0])
        meets = stock.fits_in(stock.slots(rows), constraint.amount)
    elif kind in (REQUIRED, FORBIDDEN):
        meets = in_any(fleet.with_trait, names, rows) == (kind == REQUIRED)
    elif kind in (MEMBER_OF, FORBIDDEN_AGGREGATES):
        inside = in_any(fleet.in_aggregate, names, rows)
        if not constraint.group:
            inside |= in_any(fleet.in_aggregate, names, roots)
        meets = inside == (kind == MEMBER_OF)
    elif kind in (ROOT_REQUIRED, ROOT_FORBIDDEN):
        meets = in_any(fleet.with_trait, names, roots) == (kind == ROOT_REQUIRED)
    elif kind == IN_TREE:
        meets = roots == (fleet.root.item(fleet.row(names[0])) if names[0] in fleet else -1)
    return meets
