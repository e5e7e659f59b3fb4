"""The terms of a query, and the providers that could serve each term.

A term is the part of a query that one provider must serve: a granular group, or one resource class of the
unsuffixed group, which several providers may serve together.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any, match, match_location, match_resources, match_traits
from roost.fleet.reach import trees_served
from roost.model.allocation import Resources
from roost.model.request import CandidateQuery, RequestGroup


class Options(NamedTuple):
    """The providers that could serve a term, with the tree that each could serve.

    Parallel columns, sorted by anchor, then by row: provider ``rows[i]`` is an option for the tree with root
    ``anchors[i]``. A sharing provider is an option for many trees.
    """

    anchors: Rows
    rows: Rows


_SORTED = 10
"""Options that are sorted for one unit of work."""
_NO_ROWS = np.zeros(0, dtype=np.intp)
NO_OPTIONS = Options(_NO_ROWS, _NO_ROWS)
"""Placeholder of a term whose options are stored elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A part of a query that one provider must serve. Terms with equal demands share one ``options``."""

    group: RequestGroup
    resources: Resources
    options: Options


class TermMatch(NamedTuple):
    """A term with the providers that match it, in any tree.

    ``rows`` ascend. ``demand`` is equal for terms that differ only in the suffix of their group; they share
    ``rows``.
    """

    group: RequestGroup
    resources: Resources
    demand: Hashable
    rows: Rows


class AskedTerm(NamedTuple):
    """A term without its providers. ``demand`` is equal for terms that differ only in the group's suffix."""

    group: RequestGroup
    resources: Resources
    demand: Hashable


def split_terms(query: CandidateQuery) -> Iterator[AskedTerm]:
    """Yield the terms of a query in the order of its groups."""
    for group, resources in _split(query):
        yield AskedTerm(group, resources, _demand(group, resources))


def match_terms(fleet: Fleet, query: CandidateQuery) -> list[TermMatch]:
    """Return the terms of a query in the order of its groups, each with the providers that match it."""
    found: dict[Hashable, Rows] = {}
    matches = []
    for group, resources, demand in split_terms(query):
        if demand not in found:
            found[demand] = matching_rows(fleet, group, resources)
        matches.append(TermMatch(group, resources, demand, found[demand]))
    return matches


def terms_of(fleet: Fleet, matches: Sequence[TermMatch]) -> list[Term]:
    """Return the terms of a query with their options, in the order of ``matches``."""
    found: dict[Hashable, Options] = {}
    for each in matches:
        if each.demand not in found:
            found[each.demand] = _options(fleet, each.group, each.rows)
    return [Term(each.group, each.resources, found[each.demand]) for each in matches]


def surely_local(fleet: Fleet, query: CandidateQuery, terms: Sequence[Term], anchors: Rows) -> Bools:
    """Return for each anchor whether counting proves a local candidate: bool[len(anchors)].

    Terms are *rivals* if they take from the same class or must not share a provider. If each rival has at
    least as many options as there are rivals, all rivals can have different providers. Every other term
    can have its first option. Then only the traits that the unsuffixed group requires remain to be
    checked on these first options.
    """
    if query.same_subtree:
        return np.zeros(len(anchors), dtype=np.bool_)
    isolated = sum(query.isolates(term.group) for term in terms)
    demanding = Counter(name for term in terms for name in term.resources)
    rivals = [
        (isolated > 1 and query.isolates(term.group)) or any(demanding[name] > 1 for name in term.resources)
        for term in terms
    ]
    sure = np.ones(len(anchors), dtype=np.bool_)
    local = np.zeros(len(anchors), dtype=np.bool_)
    first_options: list[Rows] = []
    fleet.meter.spend_rows(4 * fleet.n_rows * len(terms))
    for term, rival in zip(terms, rivals, strict=True):
        at, rows = term.options
        options = np.bincount(at, minlength=fleet.n_rows)
        own = np.bincount(at[fleet.roots(rows) == at], minlength=fleet.n_rows)
        local |= (own[anchors] == options[anchors]) & bool(term.resources)
        if rival:
            sure &= options[anchors] >= sum(rivals)
        elif not term.group.granular:
            first_options.append(rows[(np.cumsum(options) - options)[anchors]])
    for group in query.groups:
        for any_of in () if group.granular else group.required:
            sure &= np.logical_or.reduce(
                [in_any(fleet.with_trait, any_of, rows) for rows in first_options]
                or [np.zeros(len(anchors), dtype=np.bool_)]
            )
    return sure & local


def _split(query: CandidateQuery) -> Iterator[tuple[RequestGroup, Resources]]:
    for group in query.groups:
        if group.granular:
            yield group, group.resources
        else:
            for name, amount in group.resources.items():
                yield group, {name: amount}


def _demand(group: RequestGroup, resources: Resources) -> Hashable:
    return (
        group.granular,
        frozenset(resources.items()),
        group.required,
        group.forbidden,
        group.member_of,
        group.forbidden_aggregates,
        group.in_tree,
    )


def matching_rows(fleet: Fleet, group: RequestGroup, resources: Resources, among: Rows | None = None) -> Rows:
    """Return the providers that could serve a term by themselves in their own tree, ascending.

    ``among``: the rows to look at, ascending; None for all.
    """
    if group.granular:
        return match(fleet, group, among)
    # The providers of the unsuffixed group need its required traits only jointly: the search checks them.
    rows = match_traits(fleet, match_resources(fleet, resources, among), (), group.forbidden)
    return match_location(fleet, rows, group, roots_span_trees=True)


def _options(fleet: Fleet, group: RequestGroup, rows: Rows) -> Options:
    """Return the options of a term: each of the matching ``rows`` with every tree that it could serve.

    For a granular group a sharing provider serves all trees that it reaches. For the unsuffixed group it
    serves other trees only if the group has no ``in_tree`` and the provider itself is in the demanded
    aggregates, and it serves no tree whose root is in a forbidden aggregate.
    Source: the behaviour of upstream at microversion 1.39, which the differential tests compare.
    """
    anchors = fleet.roots(rows)
    sharing = fleet.sharing()
    if len(sharing) and (group.granular or group.in_tree is None):
        shared = rows[sharing.among(rows)]
        if not group.granular:
            for any_of in group.member_of:
                shared = shared[in_any(fleet.in_aggregate, any_of, shared)]
        served = [(row, trees_served(fleet, row)) for row in shared.tolist()]
        anchors = np.concatenate([anchors, *(roots for _, roots in served)])
        rows = np.concatenate([rows, *(np.full(len(roots), row, np.intp) for row, roots in served)])
        if not group.granular and group.forbidden_aggregates:
            allowed = ~in_any(fleet.in_aggregate, group.forbidden_aggregates, anchors)
            anchors, rows = anchors[allowed], rows[allowed]
    elif (anchors[1:] >= anchors[:-1]).all():
        return Options(anchors, rows)
    fleet.meter.spend(len(rows) // _SORTED)
    order = np.lexsort((rows, anchors))
    return Options(anchors[order], rows[order])
