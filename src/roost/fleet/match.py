"""The providers that match a request group, or one part of it, found by vector operations.

All functions spend from the fleet's meter and may raise `TooMuchWork`.

The rarest resource class is matched first, so that every later step looks only at the remaining rows.
"""

from collections.abc import Callable, Iterable

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.rowset import RowSet
from roost.model.allocation import Resources
from roost.model.request import RequestGroup


def match(fleet: Fleet, group: RequestGroup, among: Rows | None = None) -> Rows:
    """Return the providers that can serve the whole of ``group`` alone: ascending rows.

    ``among``: the rows to look at, ascending; None for all. Only the provider's own traits and aggregates
    count: an aggregate of the root spans the tree for the unsuffixed group only (`match_location`).
    """
    if group.resources:
        rows = match_resources(fleet, group.resources, among)
    else:
        rows = fleet.rows() if among is None else among
    rows = match_traits(fleet, rows, group.required, group.forbidden)
    return match_location(fleet, rows, group)


def match_resources(fleet: Fleet, resources: Resources, among: Rows | None = None) -> Rows:
    """Return the providers on which all ``resources`` fit: ascending rows, out of ``among`` or of all."""
    rarest_first = sorted(
        ((fleet.inventory_columns(name), name) for name in resources), key=lambda pair: pair[0].n
    )
    if among is None:
        (rarest, name), *rarest_first = rarest_first
        fleet.meter.spend_rows(rarest.n)
        rows: Rows = rarest.row[rarest.fitting(resources[name])].astype(np.intp)
        if not rarest.ascending:
            rows = np.sort(rows)
    else:
        rows = among
    for columns, name in rarest_first:
        fleet.meter.spend_rows(len(rows))
        rows = rows[columns.fits_in(columns.slots(rows), resources[name])]
    return rows


def match_traits(
    fleet: Fleet,
    rows: Rows,
    required: Iterable[frozenset[str]],
    forbidden: Iterable[str],
) -> Rows:
    """Return the ``rows`` with a trait of every set in ``required`` and no trait in ``forbidden``."""
    for any_of in sorted(required, key=sorted):
        fleet.meter.spend_rows(len(rows) * len(any_of))
        rows = rows[in_any(fleet.with_trait, any_of, rows)]
    for trait in sorted(forbidden):
        fleet.meter.spend_rows(len(rows))
        rows = rows[~fleet.with_trait(trait).among(rows)]
    return rows


def match_location(
    fleet: Fleet,
    rows: Rows,
    group: RequestGroup,
    *,
    roots_span_trees: bool = False,
) -> Rows:
    """Return the ``rows`` in the aggregates and in the tree that the group demands.

    With ``roots_span_trees`` the aggregates of a root count for its whole tree: either the provider or its
    root must be in all demanded aggregates, and neither may be in a forbidden one.
    Source: microversions 1.21 (``member_of``), 1.31 (``in_tree``) and 1.32 (forbidden aggregates).
    """
    spanned = roots_span_trees and fleet.has_trees
    if group.member_of:
        itself: Bools = np.ones(len(rows), dtype=np.bool_)
        root: Bools = np.full(len(rows), spanned, dtype=np.bool_)
        for any_of in sorted(group.member_of, key=sorted):
            fleet.meter.spend_rows(2 * len(rows) * len(any_of))
            itself &= in_any(fleet.in_aggregate, any_of, rows)
            if spanned:
                root &= in_any(fleet.in_aggregate, any_of, fleet.roots(rows))
        rows = rows[itself | root]
    if group.forbidden_aggregates:
        fleet.meter.spend_rows(2 * len(rows) * len(group.forbidden_aggregates))
        rows = rows[~in_any(fleet.in_aggregate, group.forbidden_aggregates, rows)]
        if spanned:
            rows = rows[~in_any(fleet.in_aggregate, group.forbidden_aggregates, fleet.roots(rows))]
    if group.in_tree is not None:
        rows = rows[fleet.roots(rows) == tree_root(fleet, group.in_tree)]
    return rows


def tree_root(fleet: Fleet, uuid: str) -> int:
    """Return the root of the tree that has provider ``uuid``, -1 if there is no such provider."""
    row = fleet.find_row(uuid)
    return fleet.root.item(row) if row >= 0 else -1


def in_any(index: Callable[[str], RowSet], names: Iterable[str], rows: Rows) -> Bools:
    """Return for each of ``rows`` whether it is in the set of at least one name: bool[len(rows)].

    ``index`` is `Fleet.with_trait` or `Fleet.in_aggregate`.
    """
    return RowSet.any_among([index(name) for name in names], rows)
