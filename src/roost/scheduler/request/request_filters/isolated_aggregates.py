"""Aggregates whose hosts are reserved for requests that require a trait."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, outside_aggregates


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
