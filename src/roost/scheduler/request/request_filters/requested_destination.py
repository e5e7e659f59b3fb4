"""The host, node and aggregates that a request is restricted to."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.request.places import target_of
from roost.scheduler.request.request_filters.narrowed_query import (
    FilterFacts,
    outside_aggregates,
    within_aggregates,
    within_tree,
)


def ask_for_destination(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Ask for the tree of the one requested node, and for the aggregates of the destination.

    By placement's rule, sharing providers outside of the tree do not serve the unsuffixed group then. A query
    cannot ask for a host with several nodes: `roost.scheduler.request.places` restricts the request to them.

    Raises:
        BadRequestSpec: a host or node is unknown.
    """
    nodes = target_of(spec, facts.table)
    if nodes is not None and len(nodes) == 1:
        query = within_tree(query, facts.table.nodes[nodes[0]])
    destination = spec.requested_destination
    if destination is None:
        return query
    if destination.aggregates:
        query = within_aggregates(query, *destination.aggregates)
    if destination.forbidden_aggregates:
        query = outside_aggregates(query, destination.forbidden_aggregates)
    return query
