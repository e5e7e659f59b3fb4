"""Reach: the providers that may serve each tree, which are its own and the sharing providers that reach it.

A sharing provider has the trait ``MISC_SHARES_VIA_AGGREGATE``. It serves every tree that has a provider in
one of its aggregates.

Source: upstream's ``anchors_for_sharing_providers`` in ``placement.objects.research_context``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.model.request import CandidateQuery

_TOGETHER = 20
"""Members of aggregates whose trees are found for one unit of work."""


class Reach(NamedTuple):
    """All pairs of a tree and a provider that may serve it, as parallel columns.

    Provider ``rows[i]`` may serve the tree with root ``anchors[i]``. ``shared[i]``: it is in another tree.
    """

    anchors: Rows
    rows: Rows
    shared: Bools


def reach_of(fleet: Fleet) -> Reach:
    """Return the pairs of a fleet: each provider with its own tree, then sharing ones with other trees."""
    own = fleet.rows()
    anchors, rows = [fleet.roots(own)], [own]
    for row in fleet.sharing().rows().tolist():
        served = trees_served(fleet, row)
        anchors.append(served)
        rows.append(np.full(len(served), row, np.intp))
    shared = np.zeros(sum(map(len, rows)), dtype=np.bool_)
    shared[len(own) :] = True
    return Reach(np.concatenate(anchors), np.concatenate(rows), shared)


def trees_served(fleet: Fleet, row: int) -> Rows:
    """Return the roots of the other trees that a sharing provider serves, ascending: intp[n].

    Raises `TooMuchWork`.
    """
    members = [fleet.in_aggregate(name).rows() for name in fleet.aggregates_of(row)]
    if not members:
        return np.zeros(0, dtype=np.intp)
    together = np.concatenate(members)
    fleet.meter.spend_once(len(together) // _TOGETHER)
    roots: Rows = np.unique(fleet.roots(together)).astype(np.intp)
    others: Rows = roots[roots != fleet.root.item(row)]
    return others


def sharing_that_serve(fleet: Fleet, root: int) -> list[int]:
    """Return the rows of the sharing providers of other trees that serve a tree, ascending.

    ``root``: the row of the tree's root.
    """
    aggregates = {name for row in fleet.subtree(root) for name in fleet.aggregates_of(row)}
    sharing = fleet.sharing()
    found = set[int]()
    if len(sharing):
        for name in aggregates:
            members = fleet.in_aggregate(name).rows()
            found.update(members[sharing.among(members)].tolist())
    return sorted(row for row in found if fleet.root.item(row) != root)


def is_flat(fleet: Fleet, query: CandidateQuery) -> bool:
    """Return whether every candidate certainly has a single provider, without matching any rows.

    True if no provider has a parent, each group requests resources, and no sharing provider has one of the
    requested classes.
    """
    if fleet.has_trees or not query.groups or not all(group.resources for group in query.groups):
        return False
    sharing = fleet.sharing()
    if not len(sharing):
        return True
    inventories = [fleet.inventory_columns(name) for name in query.resources]
    return all(columns.slot(row) < 0 for row in sharing.rows().tolist() for columns in inventories)


def only_roots_match(fleet: Fleet, matched: Iterable[Rows]) -> bool:
    """Return whether all matching providers are roots that do not share: then each candidate has only one."""
    sharing = fleet.sharing()
    return all(
        (not fleet.has_trees or bool((fleet.parent[rows] < 0).all()))
        and not (len(sharing) and bool(sharing.among(rows).any()))
        for rows in matched
    )
