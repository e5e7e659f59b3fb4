"""An availability zone is a set of aggregates that placement knows too."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, within_aggregates


def ask_for_zone(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Ask for hosts in any aggregate of the requested zone, by ``member_of``.

    The default zone is left to the filter: it also has the hosts whose aggregates name no zone.
    """
    zone = spec.availability_zone
    if zone is None or zone == facts.options.default_availability_zone:
        return query
    aggregates = facts.table.aggregates_with("availability_zone", zone)
    return within_aggregates(query, aggregates) if aggregates else query
