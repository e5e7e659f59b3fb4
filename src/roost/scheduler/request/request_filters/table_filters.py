"""Request filters that read the node table and placement as well: places, reserved aggregates, owners."""

from typing import Final

import msgspec

from roost.model.request import CandidateQuery, all_of
from roost.model.spec import RequestSpec
from roost.scheduler.errors import RequestFilterFailed
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.places import target_of
from roost.scheduler.request.request_filters.narrowed_query import (
    FilterFacts,
    TableFilter,
    outside_aggregates,
    with_root_traits,
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


TENANT_KEY = "filter_tenant_id"
"""The metadata key whose value is a project's id, or the prefix of such keys."""


def ask_for_tenant_aggregates(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Ask for hosts in any aggregate of the project, by option.

    Raises:
        RequestFilterFailed: the project has none, and the options demand one.
    """
    options = facts.options.request_filters
    if not options.limit_tenants_to_placement_aggregate:
        return query
    aggregates = frozenset(
        aggregate
        for key, value, found in facts.table.aggregates_by_metadata()
        if value == spec.project_id
        for aggregate in found
        if key.startswith(TENANT_KEY)
    )
    if aggregates:
        return within_aggregates(query, aggregates)
    if options.placement_aggregate_required_for_tenants:
        raise RequestFilterFailed(f"no aggregate is for project {spec.project_id!r}")
    return query


def ask_for_zone(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Ask for hosts in any aggregate of the requested zone, by ``member_of``.

    The default zone is left to the filter: it also has the hosts whose aggregates name no zone.
    """
    zone = spec.availability_zone
    if zone is None or zone == facts.options.default_availability_zone:
        return query
    aggregates = facts.table.aggregates_with("availability_zone", zone)
    return within_aggregates(query, aggregates) if aggregates else query


def leave_out_isolated_aggregates(
    query: CandidateQuery, spec: RequestSpec, facts: FilterFacts
) -> CandidateQuery:
    """Forbid aggregates with ``trait:NAME=required`` for traits that the request does not require."""
    if not facts.options.request_filters.enable_isolated_aggregate_filtering:
        return query
    isolated = frozenset(
        aggregate
        for key, value, found in facts.table.aggregates_by_metadata()
        if key.startswith("trait:")
        and value == "required"
        and key.removeprefix("trait:") not in facts.required_traits
        for aggregate in found
    )
    return outside_aggregates(query, isolated) if isolated else query


def segments_of(spec: RequestSpec, options: SchedulerOptions) -> frozenset[str]:
    """Return the network segments that a request must reach, by option: uuids of providers."""
    if not options.request_filters.query_placement_for_routed_network_aggregates:
        return frozenset()
    return frozenset(each for network in spec.requested_networks for each in network.segments)


def ask_for_segments(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Ask for hosts in any aggregate of the segments of each routed network or port, by option.

    Raises:
        RequestFilterFailed: a segment is in no aggregate.
    """
    if not facts.options.request_filters.query_placement_for_routed_network_aggregates:
        return query
    for network in spec.requested_networks:
        if not network.segments:
            continue
        for segment in network.segments:
            if not facts.aggregates.get(segment):
                name = f"port {network.port_id}" if network.port_id else f"network {network.network_id}"
                raise RequestFilterFailed(f"{name}: segment {segment} is in no aggregate")
        reached = frozenset[str]().union(*(facts.aggregates[segment] for segment in network.segments))
        query = within_aggregates(query, reached)
    return query


OWNER = "OWNER_NOVA"
OWNER_SERVICE_VERSION = 73
"""The first version of nova-compute that gives its providers the trait."""


def require_owner(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Require OWNER_NOVA on the root and the groups of PCI devices, once all services are new enough."""
    if OWNER in query.root_required or facts.table.oldest_service_version < OWNER_SERVICE_VERSION:
        return query
    query = with_root_traits(query, OWNER)
    if not spec.pci_groups:
        return query
    groups = tuple(
        msgspec.structs.replace(group, required=(*group.required, *all_of(OWNER)))
        if group.suffix in spec.pci_groups
        else group
        for group in query.groups
    )
    return msgspec.structs.replace(query, groups=groups)


TABLE_FILTERS: Final[tuple[TableFilter, ...]] = (
    ask_for_destination,
    ask_for_tenant_aggregates,
    ask_for_zone,
    leave_out_isolated_aggregates,
    ask_for_segments,
    require_owner,
)
