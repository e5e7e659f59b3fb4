"""Providers that Nova's agents own, as against those that other services put into the same trees."""

import msgspec

from roost.model.request import CandidateQuery, all_of
from roost.model.spec import RequestSpec
from roost.scheduler.request.request_filters.narrowed_query import Facts, with_root_traits

OWNER = "OWNER_NOVA"
SERVICE_VERSION = 73
"""The version of nova-compute from which on it gives its providers the trait."""


def require_owner(query: CandidateQuery, spec: RequestSpec, facts: Facts) -> CandidateQuery:
    """OWNER_NOVA on the root and on the groups of PCI devices, once all nodes report a new enough service."""
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
