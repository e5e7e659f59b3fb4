"""Ways to narrow a query, and the data that request filters read."""

from collections.abc import Callable, Mapping

import msgspec

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions


class FilterFacts(msgspec.Struct, frozen=True):
    """The data that request filters read beside the request spec.

    ``required_traits``: each trait that a request group requires by itself. ``aggregates``: the aggregates in
    placement of the providers that the request spec names (network segments), by provider.
    """

    table: NodeTable
    options: SchedulerOptions
    required_traits: frozenset[str] = frozenset()
    aggregates: Mapping[str, frozenset[str]] = {}

    def with_traits_of(self, query: CandidateQuery) -> "FilterFacts":
        """Return the same facts with the traits that the groups of a query require."""
        terms = (any_of for group in query.groups for any_of in group.required if len(any_of) == 1)
        return msgspec.structs.replace(self, required_traits=frozenset[str]().union(*terms))


SpecFilter = Callable[[CandidateQuery, RequestSpec, SchedulerOptions], CandidateQuery]
TableFilter = Callable[[CandidateQuery, RequestSpec, FilterFacts], CandidateQuery]


def with_root_traits(query: CandidateQuery, *traits: str) -> CandidateQuery:
    """Return the query with traits that the tree's root must have."""
    return msgspec.structs.replace(query, root_required=query.root_required.union(traits))


def within_aggregates(query: CandidateQuery, *any_of: frozenset[str]) -> CandidateQuery:
    """Return the query for hosts in one aggregate of each set, if it has an unsuffixed group.

    Granular groups are not changed: child providers need not be in the aggregate of their root, and a sharing
    provider outside of it may serve one. `roost.scheduler.request.places` restricts the hosts too.
    """
    groups = tuple(
        group if group.granular else msgspec.structs.replace(group, member_of=(*group.member_of, *any_of))
        for group in query.groups
    )
    return msgspec.structs.replace(query, groups=groups)


def outside_aggregates(query: CandidateQuery, aggregates: frozenset[str]) -> CandidateQuery:
    """Return the query for hosts that are in none of these aggregates, if it has an unsuffixed group."""
    groups = tuple(
        group
        if group.granular
        else msgspec.structs.replace(group, forbidden_aggregates=group.forbidden_aggregates | aggregates)
        for group in query.groups
    )
    return msgspec.structs.replace(query, groups=groups)


def within_tree(query: CandidateQuery, root: str) -> CandidateQuery:
    """Return the query for one tree; without an unsuffixed group, the tree must serve all groups."""
    alone = all(group.granular for group in query.groups)
    groups = tuple(
        msgspec.structs.replace(group, in_tree=root) if alone or not group.granular else group
        for group in query.groups
    )
    return msgspec.structs.replace(query, groups=groups)
