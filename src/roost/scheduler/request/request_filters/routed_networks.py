"""Networks that reach only some hosts: a segment is a provider in the aggregates of the hosts that it
reaches."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import RequestFilterFailed
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, within_aggregates


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
