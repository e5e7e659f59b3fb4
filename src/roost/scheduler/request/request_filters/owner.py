"""Providers that Nova's agents own, in contrast to providers of other services in the same trees."""

import msgspec

from roost.model.request import CandidateQuery, all_of
from roost.model.spec import RequestSpec
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, with_root_traits

OWNER = "OWNER_NOVA"
SERVICE_VERSION = 73
"""The first version of nova-compute that gives its providers the trait."""


def require_owner(query: CandidateQuery, spec: RequestSpec, facts: FilterFacts) -> CandidateQuery:
    """Require OWNER_NOVA on the root and the groups of PCI devices, once all services are new enough."""
    if OWNER in query.root_required or facts.table.oldest_service_version < SERVICE_VERSION:
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
