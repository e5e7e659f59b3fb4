"""Projects with aggregates of their own."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.errors import RequestFilterFailed
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, within_aggregates

KEY = "filter_tenant_id"
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
        if key.startswith(KEY)
    )
    if aggregates:
        return within_aggregates(query, aggregates)
    if options.placement_aggregate_required_for_tenants:
        raise RequestFilterFailed(f"no aggregate is for project {spec.project_id!r}")
    return query
