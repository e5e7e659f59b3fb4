"""The scheduling request of a run with another request spec."""

from msgspec.structs import replace

from roost.fleet import Fleet
from roost.model.spec import RequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.query import PlacementQueries, placement_queries
from roost.scheduler.request.request_filters import FilterFacts
from roost.scheduler.request.request_filters.routed_networks import segments_of
from roost.scheduler.request.scheduling_request import SchedulingRequest


def queries_for(
    fleet: Fleet, table: NodeTable, spec: RequestSpec, options: SchedulerOptions
) -> PlacementQueries:
    """Return the placement queries of a spec, where the state of placement is a fleet. Raises:
    `SchedulerError`."""
    aggregates = {
        segment: frozenset(fleet.aggregates_of(fleet.row(segment)) if segment in fleet else ())
        for segment in segments_of(spec, options)
    }
    return placement_queries(spec, FilterFacts(table, options, aggregates=aggregates))


def asked_again(
    fleet: Fleet, table: NodeTable, request: SchedulingRequest, spec: RequestSpec
) -> SchedulingRequest:
    """Return the scheduling request with another spec. Raises: `SchedulerError`."""
    asked = queries_for(fleet, table, spec, request.options)
    return replace(
        request,
        spec=spec,
        query=asked.query,
        fallbacks=asked.fallbacks,
        limit=asked.limit,
        places=asked.places,
    )
