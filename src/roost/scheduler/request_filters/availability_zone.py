"""An availability zone is an aggregate that placement knows too."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters.narrowing import narrowed


def ask_for_zone(
    query: CandidateQuery, spec: RequestSpec, table: NodeTable, options: SchedulerOptions
) -> CandidateQuery:
    """``member_of`` any aggregate of the zone asked for.

    The default zone also has the hosts that name none, which are in no aggregate: that one is left to
    the filter.
    """
    zone = spec.availability_zone
    if zone is None or zone == options.default_availability_zone:
        return query
    aggregates = table.aggregates_with("availability_zone", zone)
    return narrowed(query, member_of=aggregates) if aggregates else query
