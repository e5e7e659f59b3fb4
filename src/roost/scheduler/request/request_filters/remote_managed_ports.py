"""Ports that a SmartNIC serves need nodes with such ports."""

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.request_filters.narrowed_query import with_root_traits


def require_remote_managed_ports(
    query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions
) -> CandidateQuery:
    """Require COMPUTE_REMOTE_MANAGED_PORTS on the root if one of the ports is remotely managed."""
    if not any(network.port_id and network.remote_managed for network in spec.requested_networks):
        return query
    return with_root_traits(query, "COMPUTE_REMOTE_MANAGED_PORTS")
