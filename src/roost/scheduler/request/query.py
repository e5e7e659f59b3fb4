"""Turns a request spec into the candidate queries that placement is asked.

`roost.scheduler.request.demand` turns flavor, image and the rest into request groups; the request filters
narrow the query by the node table and the options.
"""

from collections.abc import Sequence
from typing import get_args

from roost.fleet import Fleet
from roost.model.allocation import GroupPolicy
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import RequestSpec, ServerGroup
from roost.placement.errors import BadRequest
from roost.placement.known_names import check_query
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.demand import Demand
from roost.scheduler.request.demand.moves import check_move
from roost.scheduler.request.places import RequestedPlace, places_of, target_of
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.request_filters.table_filters import TABLE_FILTERS
from roost.scheduler.request.scheduling_request import PlacementQueries
from roost.scheduler.selection.claim_result import one_line

GROUP_POLICIES: tuple[str, ...] = get_args(GroupPolicy)
"""The policies of server groups. A request with another one is refused."""

_UNLIMITED_HINTS = frozenset(("group", "same_host", "different_host"))
"""Hints that name hosts. A limit of candidates could cut these hosts off, so that it is not applied. Source:
Nova, ``resources_from_request_spec``."""


def candidate_query(spec: RequestSpec, table: NodeTable, options: SchedulerOptions) -> CandidateQuery:
    """Return the first query of `placement_queries`."""
    return placement_queries(spec, FilterFacts(table, options)).query


def placement_queries(spec: RequestSpec, facts: FilterFacts) -> PlacementQueries:
    """Return the queries for one instance of ``spec``, request filters applied.

    Raises:
        BadRequestSpec: the spec cannot be turned into a query, or a filter leaves no place for it.
    """
    _check_server_group(spec.group)
    demand = Demand(spec, facts.options)
    if spec.operation != "create":
        check_move(spec, demand.devices, facts.table)
    spec, queries = demand.spec, demand.queries
    if facts.options.request_filters.enable_isolated_aggregate_filtering:
        facts = facts.with_traits_of(queries[0])
    query, *fallbacks = [_narrowed(each, spec, facts) for each in queries]
    places = tuple(places_of(spec, facts.table))
    if all(group.granular for group in query.groups):
        places += _place_by_aggregates(spec, facts)
    return PlacementQueries(query, tuple(fallbacks), _limit(spec, facts), places, demand)


def _narrowed(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    for table_filter in TABLE_FILTERS:
        query = table_filter(query, spec, facts)
    return query


def _place_by_aggregates(spec: RequestSpec, facts: FilterFacts) -> tuple[RequestedPlace, ...]:
    """Return the nodes in the aggregates of the request filters, if no group of the query can name these."""
    [group] = _narrowed(CandidateQuery(groups=(RequestGroup(),)), spec, facts).groups
    if not group.member_of and not group.forbidden_aggregates:
        return ()
    nodes = facts.table.in_aggregates(group.member_of, group.forbidden_aggregates)
    return (RequestedPlace("aggregates", nodes, True),)


def _limit(spec: RequestSpec, facts: FilterFacts) -> int | None:
    limit = facts.options.request_filters.max_placement_results
    if not limit or spec.group is not None or not _UNLIMITED_HINTS.isdisjoint(spec.scheduler_hints):
        return None
    nodes = target_of(spec, facts.table)
    return limit if nodes is None or len(nodes) == 1 else None


def _check_server_group(group: ServerGroup | None) -> None:
    if group is not None and group.policy not in GROUP_POLICIES:
        raise BadRequestSpec(
            f"server group {group.uuid}: policy {group.policy!r} is none of {', '.join(GROUP_POLICIES)}"
        )


def check_queries(fleet: Fleet, queries: Sequence[CandidateQuery]) -> None:
    """Check that placement knows the classes and traits of at least one of the queries.

    A query for huge pages of a size that no host has finds nothing, but another size may be served.

    Raises:
        BadRequestSpec: each query names a class or trait that does not exist.
    """
    errors = []
    for query in queries:
        try:
            check_query(fleet, query)
        except BadRequest as error:
            errors.append(error)
    if len(errors) == len(queries):
        raise BadRequestSpec(f"placement cannot serve the request: {one_line(errors[0])}") from errors[0]
