"""An availability zone is a set of aggregates that placement knows too."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.request.request_filters.narrowed_query import Facts, within_aggregates


def ask_for_zone(query: CandidateQuery, spec: RequestSpec, facts: Facts) -> CandidateQuery:
    """``member_of`` any aggregate of the zone asked for.

    The default zone also has the hosts that name none, which are in no aggregate: that one is left to
    the filter.
    """
    zone = spec.availability_zone
    if zone is None or zone == facts.options.default_availability_zone:
        return query
    aggregates = facts.table.aggregates_with("availability_zone", zone)
    return within_aggregates(query, aggregates) if aggregates else query
