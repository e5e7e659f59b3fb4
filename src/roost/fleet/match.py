"""The providers that can serve a request group, or one class of it, found by vector operations.

The rarest resource class is asked first, so that every later step looks only at the rows still in play.
"""

from collections.abc import Callable, Iterable

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.rowset import RowSet
from roost.model.allocation import Resources
from roost.model.request import RequestGroup


def match(fleet: Fleet, group: RequestGroup, among: Rows | None = None) -> Rows:
    """The rows, ascending, of the providers that can serve the whole of ``group`` by themselves; of those
    ``among``, if given.

    Its traits and aggregates too must be their own: an aggregate of the root spans the tree only for the
    unsuffixed group.
    """
    if group.resources:
        rows = match_resources(fleet, group.resources, among)
    else:
        rows = fleet.rows() if among is None else among
    rows = match_traits(fleet, rows, group.required, group.forbidden)
    return match_places(fleet, rows, group)


def match_resources(fleet: Fleet, resources: Resources, among: Rows | None = None) -> Rows:
    """The rows, ascending, on which every one of ``resources`` fits; of those ``among``, if given."""
    stocks = sorted(((fleet.inventory_columns(name), name) for name in resources), key=lambda pair: pair[0].n)
    if among is None:
        (first, name), *stocks = stocks
        rows: Rows = first.row[first.fitting(resources[name])].astype(np.intp)
        if not first.ascending:
            rows = np.sort(rows)
    else:
        rows = among
    for stock, name in stocks:
        rows = rows[stock.fits_in(stock.slots(rows), resources[name])]
    return rows


def match_traits(
    fleet: Fleet,
    rows: Rows,
    required: Iterable[frozenset[str]],
    forbidden: Iterable[str],
) -> Rows:
    """Those of ``rows`` that have a trait of every set in ``required`` and none in ``forbidden``."""
    for any_of in sorted(required, key=sorted):
        rows = rows[in_any(fleet.with_trait, any_of, rows)]
    for trait in sorted(forbidden):
        rows = rows[~fleet.with_trait(trait).among(rows)]
    return rows


def match_places(
    fleet: Fleet,
    rows: Rows,
    group: RequestGroup,
    *,
    roots_span_trees: bool = False,
) -> Rows:
    """Those of ``rows`` that are where the group wants to be: aggregates and tree.

    With ``roots_span_trees`` a provider is also where the root of its tree is: either of the two must be
    in all the aggregates asked for, and neither may be in a forbidden one.
    """
    spanned = roots_span_trees and fleet.has_trees
    if group.member_of:
        itself: Bools = np.ones(len(rows), dtype=np.bool_)
        root: Bools = np.full(len(rows), spanned, dtype=np.bool_)
        for any_of in sorted(group.member_of, key=sorted):
            itself &= in_any(fleet.in_aggregate, any_of, rows)
            if spanned:
                root &= in_any(fleet.in_aggregate, any_of, fleet.roots(rows))
        rows = rows[itself | root]
    if group.forbidden_aggregates:
        rows = rows[~in_any(fleet.in_aggregate, group.forbidden_aggregates, rows)]
        if spanned:
            rows = rows[~in_any(fleet.in_aggregate, group.forbidden_aggregates, fleet.roots(rows))]
    if group.in_tree is not None:
        tree = fleet.root.item(fleet.row(group.in_tree)) if group.in_tree in fleet else -1
        rows = rows[fleet.roots(rows) == tree]
    return rows


def in_any(index: Callable[[str], RowSet], names: Iterable[str], rows: Rows) -> Bools:
    """For each of ``rows`` whether it is in the set of one of ``names``: bool[len(rows)]."""
    sets = [index(name).among(rows) for name in names]
    if len(sets) == 1:
        return sets[0]
    inside: Bools = np.zeros(len(rows), dtype=np.bool_)
    for each in sets:
        inside |= each
    return inside
