"""What the providers of a candidate must serve, and which providers could.

A granular group is one term. So is every class of the unsuffixed group, which may be spread over a tree and
the providers that share with it.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any, match, match_places, match_resources, match_traits
from roost.model.allocation import Resources
from roost.model.request import CandidateQuery, RequestGroup


class Options(NamedTuple):
    """The providers that could serve a term, for each tree.

    Parallel, by anchor, then by row: provider ``rows[i]`` is an option for the tree with root ``anchors[i]``.
    A sharing provider is an option of many anchors.
    """

    anchors: Rows
    rows: Rows


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What one provider must serve. Terms that ask for the same share one ``options``."""

    group: RequestGroup
    resources: Resources
    options: Options


class Match(NamedTuple):
    """A term to be: ``rows`` can serve it wherever they are, ascending. ``asked`` is equal for terms that
    differ in their suffix only; they share ``rows``."""

    group: RequestGroup
    resources: Resources
    asked: Hashable
    rows: Rows


def matches_of(fleet: Fleet, query: CandidateQuery) -> list[Match]:
    """The terms of a query, in order, with the rows that match each."""
    found: dict[Hashable, Rows] = {}
    matches = []
    for group, resources in _parts(query):
        asked = _asked(group, resources)
        if asked not in found:
            found[asked] = _matching(fleet, group, resources)
        matches.append(Match(group, resources, asked, found[asked]))
    return matches


def terms_of(fleet: Fleet, matches: Sequence[Match]) -> list[Term]:
    """The terms themselves."""
    found: dict[Hashable, Options] = {}
    for each in matches:
        if each.asked not in found:
            found[each.asked] = _options(fleet, each.group, each.rows)
    return [Term(each.group, each.resources, found[each.asked]) for each in matches]


def _parts(query: CandidateQuery) -> Iterator[tuple[RequestGroup, Resources]]:
    for group in query.groups:
        if group.granular:
            yield group, group.resources
        else:
            for name, amount in group.resources.items():
                yield group, {name: amount}


def _asked(group: RequestGroup, resources: Resources) -> Hashable:
    return (
        group.granular,
        frozenset(resources.items()),
        group.required,
        group.forbidden,
        group.member_of,
        group.forbidden_aggregates,
        group.in_tree,
    )


def _matching(fleet: Fleet, group: RequestGroup, resources: Resources) -> Rows:
    if group.granular:
        return match(fleet, group)
    # Traits required of the unsuffixed group are met by its providers together: judged on whole combinations.
    rows = match_traits(fleet, match_resources(fleet, resources), (), group.forbidden)
    return match_places(fleet, rows, group, roots_span_trees=True)


def _options(fleet: Fleet, group: RequestGroup, rows: Rows) -> Options:
    """The rows that match a term by the anchors that they can serve.

    How a sharing provider serves other trees is upstream's rule: for a granular group always; for the
    unsuffixed group only without ``in_tree``, if it is in the aggregates asked for by itself, and not for
    a tree whose root is in a forbidden one.
    """
    anchors = fleet.roots(rows)
    sharing = fleet.sharing()
    if len(sharing) and (group.granular or group.in_tree is None):
        shared = rows[sharing.among(rows)]
        if not group.granular:
            for any_of in group.member_of:
                shared = shared[in_any(fleet.in_aggregate, any_of, shared)]
        served = [(row, _served(fleet, row)) for row in shared.tolist()]
        anchors = np.concatenate([anchors, *(roots for _, roots in served)])
        rows = np.concatenate([rows, *(np.full(len(roots), row, np.intp) for row, roots in served)])
        if not group.granular and group.forbidden_aggregates:
            allowed = ~in_any(fleet.in_aggregate, group.forbidden_aggregates, anchors)
            anchors, rows = anchors[allowed], rows[allowed]
    elif (anchors[1:] >= anchors[:-1]).all():
        return Options(anchors, rows)
    order = np.lexsort((rows, anchors))
    return Options(anchors[order], rows[order])


def _served(fleet: Fleet, row: int) -> Rows:
    """The roots of the other trees that a sharing provider serves."""
    reached = [fleet.in_aggregate(name).rows() for name in fleet.aggregates_of(row)]
    if not reached:
        return np.zeros(0, dtype=np.intp)
    roots: Rows = np.unique(fleet.roots(np.concatenate(reached))).astype(np.intp)
    others: Rows = roots[roots != fleet.root.item(row)]
    return others
